//! The forms of names, as regular expressions of the common subset of ECMA, RE2 and Rust. Lengths are bounded beside them.

/// A DNS label, as in names of Services and members.
pub const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// A DNS name in lower case, as in names of Secrets and pods.
pub const DNS_NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// A host name as people write it: upper case and underscores occur.
pub const HOST_NAME: &str =
    "^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?([.][A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*$";
/// A key of a Secret.
pub const SECRET_KEY: &str = "^[-._a-zA-Z0-9]+$";
/// A label's key, with an optional domain.
pub const LABEL_KEY: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// A label's value, which may be empty.
pub const LABEL_VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";
