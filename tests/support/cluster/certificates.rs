//! The control plane's own authority, and what it signs.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};

type Authority = CertifiedIssuer<'static, KeyPair>;

pub(super) struct Certificates {
    pub(super) authority: Authority,
}

impl Certificates {
    pub(super) fn make(folder: &Path, node: Ipv4Addr) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "lagwarden-tests");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let certificates = Self { authority };
        let names = vec!["localhost".into(), "127.0.0.1".into(), node.to_string()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        let (certificate, key) = certificates.sign(&params);
        fs::write(folder.join("ca.crt"), certificates.authority.pem()).unwrap();
        fs::write(folder.join("apiserver.crt"), certificate).unwrap();
        fs::write(folder.join("apiserver.key"), key).unwrap();
        let accounts = KeyPair::generate().unwrap();
        fs::write(folder.join("accounts.key"), accounts.serialize_pem()).unwrap();
        fs::write(folder.join("accounts.pub"), accounts.public_key_pem()).unwrap();
        certificates
    }

    pub(super) fn client(&self, user: &str, group: Option<&str>) -> (String, String) {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    pub(super) fn sign(&self, params: &CertificateParams) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.clone().signed_by(&key, &self.authority).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}
