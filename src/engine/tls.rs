//! How connections are secured, the same for every engine.
//!
//! | mode | encrypted | the certificate's chain is verified | its name is verified |
//! | --- | --- | --- | --- |
//! | Disable | no | | |
//! | Require | yes | no | no |
//! | `VerifyCa` | yes | yes | no |
//! | `VerifyFull` | yes | yes | yes |
//!
//! These are libpq's words and meanings. The name that is verified is the pool's `serverName`, else the host's own name or
//! address: pods are connected to by address, and certificates name services.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// How far a server's identity is verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TlsMode {
    /// No encryption.
    Disable,
    /// Encryption with whoever answers.
    Require,
    /// The certificate comes from the authority.
    VerifyCa,
    /// And is made out to the server's name.
    VerifyFull,
}

/// Why a TLS configuration cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TlsError {
    /// The mode verifies against an authority, and none was given.
    #[error("no certificate authority is given to verify servers with")]
    NoAuthority,
    /// A certificate of the authority cannot be read.
    #[error("the authority's certificates cannot be used: {0}")]
    BadAuthority(String),
    /// The name is neither a DNS name nor an address.
    #[error("{0:?} is neither a DNS name nor an address")]
    BadName(String),
}

/// How connections are secured. Made once; cheap to clone.
#[derive(Clone)]
pub struct Tls {
    mode: TlsMode,
    authority: Option<Arc<[u8]>>,
    server_name: Option<String>,
    config: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// Connections without encryption.
    pub fn disabled() -> Self {
        Self {
            mode: TlsMode::Disable,
            authority: None,
            server_name: None,
            config: None,
        }
    }

    /// Connections secured as `mode` says: against the certificates in `authority` (PEM), made out to `server_name` rather
    /// than to the server's own name or address.
    pub fn try_new(mode: TlsMode, authority: Option<&[u8]>, server_name: Option<String>) -> Result<Self, TlsError> {
        if let Some(name) = &server_name {
            ServerName::try_from(name.clone()).map_err(|_| TlsError::BadName(name.clone()))?;
        }
        let verifier: Option<Arc<dyn ServerCertVerifier>> = match mode {
            TlsMode::Disable => None,
            TlsMode::Require => Some(Arc::new(Unverified(provider()))),
            TlsMode::VerifyCa => Some(Arc::new(AnyName(chain(authority)?))),
            TlsMode::VerifyFull => Some(chain(authority)?),
        };
        Ok(Self {
            mode,
            authority: authority.map(Arc::from),
            server_name,
            config: verifier.map(|v| config(v).map(Arc::new)).transpose()?,
        })
    }

    /// The configuration for a driver; absent without encryption.
    pub(super) fn config(&self) -> Option<&Arc<ClientConfig>> {
        self.config.as_ref()
    }

    /// The name that a certificate must be made out to, where `own` is the server's own.
    pub(super) fn name<'a>(&'a self, own: &'a str) -> &'a str {
        self.server_name.as_deref().unwrap_or(own)
    }
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.mode == other.mode && self.authority == other.authority && self.server_name == other.server_name
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({:?}, name {:?})", self.mode, self.server_name)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn config(verifier: Arc<dyn ServerCertVerifier>) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError::BadAuthority(e.to_string()))?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn chain(authority: Option<&[u8]>) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let pem = authority.ok_or(TlsError::NoAuthority)?;
    let bad = |why: String| TlsError::BadAuthority(why);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|e| bad(e.to_string()))?;
        roots.add(certificate).map_err(|e| bad(e.to_string()))?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|e| bad(e.to_string()))
}

/// Verifies that the server holds the certificate's key, and nothing else of it.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifies the chain, whatever name the certificate is made out to.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.0.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // The name is checked last, when the chain has been found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let refused = |mode, ca: Option<&[u8]>, name: Option<&str>| {
            Tls::try_new(mode, ca, name.map(str::to_owned)).unwrap_err().to_string()
        };
        assert!(refused(TlsMode::VerifyFull, None, None).contains("no certificate authority"));
        assert!(refused(TlsMode::VerifyCa, Some(b"nonsense"), None).contains("cannot be used"));
        assert!(refused(TlsMode::Require, None, Some("no name!")).contains("neither a DNS name nor an address"));
    }

    #[test]
    fn equal_means_made_of_the_same() {
        let require = || Tls::try_new(TlsMode::Require, None, None).unwrap();
        assert_eq!(require(), require());
        assert_ne!(require(), Tls::disabled());
    }
}
