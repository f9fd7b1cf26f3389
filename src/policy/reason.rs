//! Why a member is where it is: one closed enum for status, Event, metric and log.

use super::sighting::ProbeFailure;

/// Why a member is in, out or held. The word is the same everywhere a person meets it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// Proven fresh enough.
    CaughtUp,
    /// Its last proof got too old, and nothing more precise is known.
    LeaseExpired,
    /// Its server refuses connections, or says that it takes none.
    Down,
    /// It receives changes and applies none: paused, blocked, or its applier is gone.
    Stalled,
    /// Changes reach it late: it has applied what it received.
    DeliveryLag,
    /// It applies late what it has received.
    ApplyLag,
    /// It does not answer us.
    Unreachable,
    /// It answers, but not with a position: unknown database, failed or unreadable query.
    ProbeFailed,
    /// It refuses the account or the password.
    AuthFailed,
    /// The account lacks a privilege that the probe needs.
    PermissionDenied,
    /// No TLS session as the pool asks for.
    TlsFailed,
    /// It is the primary now, or says that it is.
    RoleChanged,
    /// It has not yet followed the primary's present history, or went back in its own.
    EpochChanged,
    /// Another database answers at its address.
    ForeignServer,
    /// Its pod is not running or not ready.
    PodNotReady,
    /// Its pod is being deleted.
    Terminating,
    /// A person took it out.
    Manual,
    /// No proof has been had since it joined the pool.
    NeverMeasured,
    /// In the list by floor or fallback although it is not fresh.
    Held,
}

impl Reason {
    /// Every reason, in the order of the documentation.
    pub const ALL: [Self; 19] = [
        Self::CaughtUp,
        Self::LeaseExpired,
        Self::Down,
        Self::Stalled,
        Self::DeliveryLag,
        Self::ApplyLag,
        Self::Unreachable,
        Self::ProbeFailed,
        Self::AuthFailed,
        Self::PermissionDenied,
        Self::TlsFailed,
        Self::RoleChanged,
        Self::EpochChanged,
        Self::ForeignServer,
        Self::PodNotReady,
        Self::Terminating,
        Self::Manual,
        Self::NeverMeasured,
        Self::Held,
    ];

    /// The word used in status, Events, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CaughtUp => "CaughtUp",
            Self::LeaseExpired => "LeaseExpired",
            Self::Down => "Down",
            Self::Stalled => "Stalled",
            Self::DeliveryLag => "DeliveryLag",
            Self::ApplyLag => "ApplyLag",
            Self::Unreachable => "Unreachable",
            Self::ProbeFailed => "ProbeFailed",
            Self::AuthFailed => "AuthFailed",
            Self::PermissionDenied => "PermissionDenied",
            Self::TlsFailed => "TlsFailed",
            Self::RoleChanged => "RoleChanged",
            Self::EpochChanged => "EpochChanged",
            Self::ForeignServer => "ForeignServer",
            Self::PodNotReady => "PodNotReady",
            Self::Terminating => "Terminating",
            Self::Manual => "Manual",
            Self::NeverMeasured => "NeverMeasured",
            Self::Held => "Held",
        }
    }
}

impl From<ProbeFailure> for Reason {
    fn from(failure: ProbeFailure) -> Self {
        match failure {
            ProbeFailure::Timeout
            | ProbeFailure::Unreachable
            | ProbeFailure::NameNotResolved
            | ProbeFailure::Refused
            | ProbeFailure::ConnectionLost
            | ProbeFailure::TooManyConnections => Self::Unreachable,
            ProbeFailure::NotAccepting => Self::Down,
            ProbeFailure::AuthFailed => Self::AuthFailed,
            ProbeFailure::PermissionDenied => Self::PermissionDenied,
            ProbeFailure::TlsFailed => Self::TlsFailed,
            ProbeFailure::Interrupted
            | ProbeFailure::DatabaseNotFound
            | ProbeFailure::Protocol
            | ProbeFailure::QueryFailed => Self::ProbeFailed,
        }
    }
}
