//! What one round trip to a server returned: raw facts, no judgement.
//!
//! An engine fills these in and knows no limit, no retry and no other server. Everything that could not be read is
//! absent or a closed failure kind, never a number.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::moment::Moment;
use super::position::{History, Incarnation, Position};

/// What a server says it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Accepts writes: not in recovery.
    Primary,
    /// Applies another server's changes: in recovery.
    Replica,
}

/// Whether a replica applies what it receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// Not told to stop.
    Running,
    /// Told to pause and about to.
    PauseRequested,
    /// Paused by a person, by `recovery_target`, or because a setting is smaller than the primary's.
    Paused,
}

/// Whether a replica receives changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// Connected to its source and in the streaming state. A stalled link still looks like this.
    Streaming,
    /// A receiver process exists in another state: starting, waiting, restarting, stopping.
    Waiting,
    /// No receiver process: cut off, replaying an archive, or not yet started.
    Absent,
}

/// How the primary sees one directly attached standby.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StandbyView {
    /// Where the standby's connection came from; absent for a local socket.
    pub address: Option<IpAddr>,
    /// `application_name` of the standby's connection.
    pub name: Arc<str>,
    /// Whether the connection is in the streaming state.
    pub streaming: bool,
    /// What the standby last reported as replayed; absent until it reports.
    pub replayed: Option<Position>,
}

/// A server's own answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// What the server says it is.
    pub role: Role,
    /// The history that `position` belongs to.
    pub history: History,
    /// The run of the server process.
    pub incarnation: Incarnation,
    /// On a primary what it has (insert position, without headers that no standby can show); on a replica what it has
    /// applied. Absent when the server has none yet.
    pub position: Option<Position>,
    /// On a primary: what it has made durable, so what standbys can have.
    pub flushed: Option<Position>,
    /// On a replica: what it has received.
    pub received: Option<Position>,
    /// On a replica: whether it applies.
    pub replay: Option<Replay>,
    /// On a replica: whether it receives.
    pub receiver: Option<Receiver>,
    /// On a primary: its standbys, as far as the account may see them.
    pub standbys: Vec<StandbyView>,
}

/// Why a server gave no sighting. Closed: metric label, condition and log use these words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProbeFailure {
    /// No answer within the time allowed, while connecting or asking.
    Timeout,
    /// The network says that there is no way to the address.
    Unreachable,
    /// The host's name has no address now.
    NameNotResolved,
    /// The port refused the connection, or reset it while connecting.
    Refused,
    /// The server answers and takes no connections now: starting up, shutting down, recovering.
    NotAccepting,
    /// The server answers and has no connection left for us.
    TooManyConnections,
    /// An established connection ended.
    ConnectionLost,
    /// The server ended the question for something that may not wait, as a standby does for its applier.
    Interrupted,
    /// The account or its password was refused.
    AuthFailed,
    /// The account may not read what is needed.
    PermissionDenied,
    /// The database named in the pool does not exist on the server.
    DatabaseNotFound,
    /// No TLS session that satisfies the pool's mode.
    TlsFailed,
    /// The answer was not one of this engine's.
    Protocol,
    /// The server refused the statement for another cause.
    QueryFailed,
}

impl ProbeFailure {
    /// Every failure, in the order of the documentation.
    pub const ALL: [Self; 14] = [
        Self::Timeout,
        Self::Unreachable,
        Self::NameNotResolved,
        Self::Refused,
        Self::NotAccepting,
        Self::TooManyConnections,
        Self::ConnectionLost,
        Self::Interrupted,
        Self::AuthFailed,
        Self::PermissionDenied,
        Self::DatabaseNotFound,
        Self::TlsFailed,
        Self::Protocol,
        Self::QueryFailed,
    ];

    /// The word used in status, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "Timeout",
            Self::Unreachable => "Unreachable",
            Self::NameNotResolved => "NameNotResolved",
            Self::Refused => "Refused",
            Self::NotAccepting => "NotAccepting",
            Self::TooManyConnections => "TooManyConnections",
            Self::ConnectionLost => "ConnectionLost",
            Self::Interrupted => "Interrupted",
            Self::AuthFailed => "AuthFailed",
            Self::PermissionDenied => "PermissionDenied",
            Self::DatabaseNotFound => "DatabaseNotFound",
            Self::TlsFailed => "TlsFailed",
            Self::Protocol => "Protocol",
            Self::QueryFailed => "QueryFailed",
        }
    }
}

/// How one round trip ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The server answered.
    Seen(Sighting),
    /// It did not, or not with a sighting.
    Failed(ProbeFailure),
}

/// An outcome, and when it was asked for and known, on the deciding process's clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Observation {
    /// Just before the question was sent.
    pub asked: Moment,
    /// Just after the answer (or the failure) was known. Never before `asked`.
    pub answered: Moment,
    /// What came of it.
    pub outcome: Outcome,
}

impl Observation {
    /// How long the round trip took.
    pub fn round_trip(&self) -> Duration {
        self.answered.since(self.asked)
    }
}
