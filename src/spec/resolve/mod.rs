//! What a pool refers to, read without a client: objects come in, meanings or problems come out.
//!
//! Each question is a pure function over objects that someone else has fetched, an absent one included. A problem names the
//! object, what is the matter and what to do, and its kind is one of a closed set, so that condition, Event, metric and log
//! say the same word. No value of a Secret is ever in one.

mod pods;
mod secret;
mod service;
#[cfg(test)]
mod tests;

use std::fmt;

pub use pods::{Availability, Member, members};
pub use secret::{Account, Authority, account, authority};
pub use service::{Family, ServicePort, ServiceView, SlicePort, duplicates, port_of_new, service, slice_ports};

/// What is the matter, as one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProblemKind {
    /// The Service does not exist, and the pool does not ask to make it.
    ServiceNotFound,
    /// Kubernetes itself publishes endpoints for the Service.
    ServiceHasSelector,
    /// The Service is an alias of a DNS name.
    ServiceIsExternalName,
    /// The Service has no port to publish.
    ServiceHasNoPort,
    /// A port of the Service is not TCP.
    ServicePortNotTcp,
    /// An older pool publishes to the Service.
    DuplicateService,
    /// A named port of the Service is in no member.
    PortNotResolved,
    /// Members would need different ports in one slice.
    PortsDiffer,
    /// No pod is selected.
    NoMembers,
    /// More pods are selected than a pool can have members.
    TooManyMembers,
    /// The Secret does not exist.
    SecretNotFound,
    /// We may not read the Secret.
    SecretForbidden,
    /// The Secret has no such key.
    SecretKeyMissing,
    /// The Secret's value cannot be a name or password.
    SecretValueUnusable,
    /// The Secret's value holds no certificates.
    CaUnreadable,
}

impl ProblemKind {
    /// Every kind, in the order of the documentation.
    pub const ALL: [Self; 15] = [
        Self::ServiceNotFound,
        Self::ServiceHasSelector,
        Self::ServiceIsExternalName,
        Self::ServiceHasNoPort,
        Self::ServicePortNotTcp,
        Self::DuplicateService,
        Self::PortNotResolved,
        Self::PortsDiffer,
        Self::NoMembers,
        Self::TooManyMembers,
        Self::SecretNotFound,
        Self::SecretForbidden,
        Self::SecretKeyMissing,
        Self::SecretValueUnusable,
        Self::CaUnreadable,
    ];

    /// The word used in conditions, Events, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServiceNotFound => "ServiceNotFound",
            Self::ServiceHasSelector => "ServiceHasSelector",
            Self::ServiceIsExternalName => "ServiceIsExternalName",
            Self::ServiceHasNoPort => "ServiceHasNoPort",
            Self::ServicePortNotTcp => "ServicePortNotTcp",
            Self::DuplicateService => "DuplicateService",
            Self::PortNotResolved => "PortNotResolved",
            Self::PortsDiffer => "PortsDiffer",
            Self::NoMembers => "NoMembers",
            Self::TooManyMembers => "TooManyMembers",
            Self::SecretNotFound => "SecretNotFound",
            Self::SecretForbidden => "SecretForbidden",
            Self::SecretKeyMissing => "SecretKeyMissing",
            Self::SecretValueUnusable => "SecretValueUnusable",
            Self::CaUnreadable => "CaUnreadable",
        }
    }
}

/// Something that a pool refers to is not as it must be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Problem {
    /// What is the matter, as one word.
    pub kind: ProblemKind,
    /// The object, as `Kind namespace/name`.
    pub object: String,
    /// What is the matter, in words.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl Problem {
    /// A problem of this kind.
    pub fn new(kind: ProblemKind, object: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            kind,
            object: object.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.object, self.problem, self.remedy)
    }
}

/// `["a", "b"]` as `a and b`; the first three of a longer list, and how many more there are.
fn list<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => "nothing".into(),
        [one] => (*one).into(),
        [first @ .., last] if first.len() < 4 => format!("{} and {last}", first.join(", ")),
        [first @ .., _] => format!("{} and {} more", first[..3].join(", "), words.len() - 3),
    }
}
