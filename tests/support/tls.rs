//! Certificates for servers.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use lagwarden::demo::postgres::Server;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// An authority, and a server's certificate and key made by it.
pub(crate) struct Paper {
    /// The authority's certificate, as PEM.
    pub(crate) authority: String,
    certificate: String,
    key: String,
}

impl Paper {
    /// A certificate for servers of these names and addresses.
    pub(crate) fn for_names(names: &[&str]) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        Self {
            authority: authority.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Gives the certificate and its key to a server, which uses them when `ssl` is on.
    pub(crate) fn give_to(&self, server: &Server) {
        let owner = fs::metadata(server.data()).unwrap();
        for (file, text) in [("server.crt", &self.certificate), ("server.key", &self.key)] {
            let path = server.data().join(file);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
        }
    }
}
