//! Parses how servers are connected to.

use super::error::Mistakes;
use super::syntax;
use crate::api::v1alpha1::{Members, ReplicaPoolSpec, Tls as TlsFields, TlsMode};

/// How servers are connected to. Names of Secrets and keys only: what they hold is resolved from the objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// Database to connect to.
    pub database: String,
    /// Where the account is.
    pub credentials: CredentialsRef,
    /// How far the connection is trusted.
    pub tls: Tls,
}

/// Where the account's name and password are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CredentialsRef {
    /// Name of the Secret, in the pool's namespace.
    pub secret: String,
    /// Key of the user name.
    pub username_key: String,
    /// Key of the password.
    pub password_key: String,
}

/// How far a connection is trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tls {
    /// No encryption.
    Disable,
    /// Encryption without verification.
    Require,
    /// A certificate of this authority.
    VerifyCa(CaRef),
    /// A certificate of this authority for the expected name.
    VerifyFull {
        /// The authority.
        ca: CaRef,
        /// The name that certificates must carry; absent only for hosts, where it is the host that is connected to.
        server_name: Option<String>,
    },
}

impl Tls {
    /// Where the authority's certificates are, when some are needed.
    pub const fn ca(&self) -> Option<&CaRef> {
        match self {
            Self::Disable | Self::Require => None,
            Self::VerifyCa(ca) | Self::VerifyFull { ca, .. } => Some(ca),
        }
    }
}

/// Where an authority's certificates are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaRef {
    /// Name of the Secret, in the pool's namespace.
    pub secret: String,
    /// Key of the certificates.
    pub key: String,
}

/// The connection; `None` when a mistake was noted.
pub(super) fn connection(spec: &ReplicaPoolSpec, mistakes: &mut Mistakes) -> Option<Connection> {
    let before = mistakes.0.len();
    let credentials = &spec.credentials;
    secret_name(&credentials.secret_name, "spec.credentials.secretName", mistakes);
    secret_key(&credentials.username_key, "spec.credentials.usernameKey", mistakes);
    secret_key(&credentials.password_key, "spec.credentials.passwordKey", mistakes);
    let database = spec.database.clone().unwrap_or_else(|| "postgres".into());
    mistakes.expect(
        (1..=63).contains(&database.chars().count()) && !database.contains('\0'),
        "spec.database",
        format!("{database:?} is not the name of a database"),
        "use 1 to 63 characters",
    );
    let tls = tls(&spec.tls, &spec.members, mistakes);
    let connection = Connection {
        database,
        credentials: CredentialsRef {
            secret: credentials.secret_name.clone(),
            username_key: credentials.username_key.clone(),
            password_key: credentials.password_key.clone(),
        },
        tls: tls?,
    };
    (mistakes.0.len() == before).then_some(connection)
}

fn tls(tls: &TlsFields, members: &Members, mistakes: &mut Mistakes) -> Option<Tls> {
    let before = mistakes.0.len();
    let mode = tls.mode.as_str();
    if let Some(name) = &tls.ca_secret_name {
        secret_name(name, "spec.tls.caSecretName", mistakes);
    }
    secret_key(&tls.ca_key, "spec.tls.caKey", mistakes);
    if let Some(name) = &tls.server_name {
        mistakes.expect(
            syntax::is_host_name(name),
            "spec.tls.serverName",
            format!("{name:?} is not a DNS name"),
            "write the name that the certificate carries",
        );
        mistakes.expect(
            tls.mode == TlsMode::VerifyFull,
            "spec.tls.serverName",
            format!("is given, but mode is {mode}, which compares no name"),
            "use VerifyFull, or remove serverName",
        );
    }
    let verifies = matches!(tls.mode, TlsMode::VerifyCA | TlsMode::VerifyFull);
    if verifies && tls.ca_secret_name.is_none() {
        let remedy = "name the Secret with the certificates of the authority, or use Require";
        mistakes.note(
            "spec.tls.caSecretName",
            format!("is missing, and mode is {mode}"),
            remedy,
        );
    } else if !verifies && tls.ca_secret_name.is_some() {
        let problem = format!("is given, but mode is {mode}, which verifies nothing");
        mistakes.note(
            "spec.tls.caSecretName",
            problem,
            "use VerifyCA or VerifyFull, or remove caSecretName",
        );
    }
    mistakes.expect(
        tls.mode != TlsMode::VerifyFull || tls.server_name.is_some() || members.pod_selector.is_none(),
        "spec.tls.serverName",
        format!("is missing, and mode is {mode}: pods are connected to by address"),
        "name what their certificates carry, or use VerifyCA",
    );
    if mistakes.0.len() > before {
        return None;
    }
    let ca = CaRef {
        secret: tls.ca_secret_name.clone().unwrap_or_default(),
        key: tls.ca_key.clone(),
    };
    Some(match tls.mode {
        TlsMode::Disable => Tls::Disable,
        TlsMode::Require => Tls::Require,
        TlsMode::VerifyCA => Tls::VerifyCa(ca),
        TlsMode::VerifyFull => Tls::VerifyFull {
            ca,
            server_name: tls.server_name.clone(),
        },
    })
}

fn secret_name(name: &str, field: &str, mistakes: &mut Mistakes) {
    let remedy = "use lower-case letters, digits, dashes and dots";
    mistakes.expect(
        syntax::is_dns_name(name),
        field,
        format!("{name:?} is not the name of a Secret"),
        remedy,
    );
}

fn secret_key(key: &str, field: &str, mistakes: &mut Mistakes) {
    let remedy = "use letters, digits, dashes, underscores and dots";
    mistakes.expect(
        syntax::is_secret_key(key),
        field,
        format!("{key:?} is not a key of a Secret"),
        remedy,
    );
}
