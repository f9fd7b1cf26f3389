//! What Secrets hold: an account, and the certificates of an authority.

use std::fmt;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;

use super::{Problem, ProblemKind, list};
use crate::spec::{CaRef, PoolSpec};

/// An account of the database. Neither part is ever printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The user name.
    pub username: String,
    /// The password; never empty.
    pub password: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account(..)")
    }
}

/// The certificates of an authority, as PEM text with at least one certificate. Whether each is well formed is for the
/// TLS library to say.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The text.
    pub pem: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authority({} bytes)", self.pem.len())
    }
}

/// The account that `pool` names, from its Secret; `None` says that there is no such Secret.
pub fn account(pool: &PoolSpec, secret: Option<&Secret>) -> Result<Account, Vec<Problem>> {
    let wanted = &pool.connection.credentials;
    let object = format!("Secret {}/{}", pool.namespace, wanted.secret);
    let Some(secret) = secret else {
        let remedy = format!(
            "create it with kubectl create secret generic {} -n {} --from-literal={}=... --from-literal={}=...",
            wanted.secret, pool.namespace, wanted.username_key, wanted.password_key
        );
        let problem = "does not exist, and spec.credentials names it";
        return Err(vec![Problem::new(
            ProblemKind::SecretNotFound,
            &object,
            problem,
            remedy,
        )]);
    };
    let read = |key: &str, field: &str| word(secret, &object, key, field);
    match (
        read(&wanted.username_key, "spec.credentials.usernameKey"),
        read(&wanted.password_key, "spec.credentials.passwordKey"),
    ) {
        (Ok(username), Ok(password)) => Ok(Account { username, password }),
        (username, password) => Err(username.err().into_iter().chain(password.err()).collect()),
    }
}

/// The authority that `pool` verifies certificates against, from its Secret; `Ok(None)` when it verifies none.
pub fn authority(pool: &PoolSpec, secret: Option<&Secret>) -> Result<Option<Authority>, Problem> {
    let Some(CaRef { secret: name, key }) = pool.connection.tls.ca() else {
        return Ok(None);
    };
    let object = format!("Secret {}/{name}", pool.namespace);
    let Some(secret) = secret else {
        let remedy = format!(
            "create it with kubectl create secret generic {name} -n {} --from-file={key}=...",
            pool.namespace
        );
        let problem = "does not exist, and spec.tls.caSecretName names it";
        return Err(Problem::new(ProblemKind::SecretNotFound, &object, problem, remedy));
    };
    let bytes = value(secret, &object, key, "spec.tls.caKey")?;
    let unreadable = |found: &str| {
        let remedy = "put the authority's certificates there, as PEM text that begins with -----BEGIN CERTIFICATE-----";
        Problem::new(
            ProblemKind::CaUnreadable,
            &object,
            format!("holds {found} under key {key}"),
            remedy,
        )
    };
    let pem = std::str::from_utf8(bytes).map_err(|_| unreadable("no text"))?;
    match certificates(pem) {
        Ok(()) => Ok(Some(Authority { pem: pem.into() })),
        Err(found) => Err(unreadable(found)),
    }
}

/// Whether `pem` holds whole certificates and nothing that must not be there; otherwise what it holds instead.
fn certificates(pem: &str) -> Result<(), &'static str> {
    let count = |mark: &str| pem.lines().filter(|line| line.trim() == mark).count();
    let begun = count("-----BEGIN CERTIFICATE-----");
    if pem.trim().is_empty() {
        Err("nothing")
    } else if begun == 0 && pem.contains("PRIVATE KEY-----") {
        Err("a private key")
    } else if begun == 0 && pem.contains("-----BEGIN CERTIFICATE REQUEST-----") {
        Err("a request for a certificate")
    } else if begun == 0 && pem.contains("-----BEGIN ") {
        Err("PEM text without a certificate")
    } else if begun == 0 {
        Err("text that is not PEM")
    } else if count("-----END CERTIFICATE-----") != begun {
        Err("a certificate that is cut off")
    } else {
        Ok(())
    }
}

/// A value that is one word: a name or a password.
fn word(secret: &Secret, object: &str, key: &str, field: &str) -> Result<String, Problem> {
    let bytes = value(secret, object, key, field)?;
    let remedy = "write the value again, with kubectl create secret --from-literal rather than by hand";
    let unusable = |found: &str| {
        let problem = format!("holds {found} under key {key}");
        Problem::new(ProblemKind::SecretValueUnusable, object, problem, remedy)
    };
    let text = std::str::from_utf8(bytes).map_err(|_| unusable("no text"))?;
    if text.is_empty() {
        Err(unusable("nothing"))
    } else if text.ends_with(['\n', '\r']) {
        // What `echo password | base64` leaves; no server would know the account.
        Err(unusable("a value that ends with a line break"))
    } else if text.contains('\0') {
        Err(unusable("a value with a zero byte"))
    } else {
        Ok(text.into())
    }
}

fn value<'a>(secret: &'a Secret, object: &str, key: &str, field: &str) -> Result<&'a [u8], Problem> {
    let data = secret.data.as_ref();
    if let Some(ByteString(bytes)) = data.and_then(|data| data.get(key)) {
        return Ok(bytes);
    }
    let keys: Vec<_> = data.into_iter().flat_map(|data| data.keys()).collect();
    let problem = format!("has no key {key}; it has {}", list(&keys));
    let remedy = format!("add the key, or name the one to use in {field}");
    Err(Problem::new(ProblemKind::SecretKeyMissing, object, problem, remedy))
}
