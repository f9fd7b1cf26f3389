//! Engines: how each kind of database is asked. They yield sightings and judge nothing.
//!
//! An engine knows no limit, no retry, no interval and no other server. Whoever calls it owns the time: every call is
//! wrapped in a timeout outside, and a call that is dropped leaves nothing half-written; its session is then given up
//! with [`Session::cancel`]. So each method of [`Session`] is cancel-safe in the sense that the session, and only the
//! session, is lost.
//!
//! Adding an engine is one module here, one variant in [`Engine`] and [`Session`], one in `api::v1alpha1::EngineKind`, and
//! one line in the contract suite.

mod bounded;
mod error;
pub mod postgresql;
pub mod scripted;
mod tls;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub use error::EngineError;
pub use tls::{Tls, TlsError, TlsMode};

use crate::policy::sighting::{ProbeFailure, Sighting};

/// Where a server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    /// At this address.
    Ip(IpAddr),
    /// At the addresses of this name, looked up at each connect.
    Name(String),
}

/// Which server, and which database on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Where the server is.
    pub address: Address,
    /// Its port.
    pub port: u16,
    /// The database to connect to.
    pub database: String,
}

/// A password. It is printed nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Wraps a password.
    pub fn new(password: String) -> Self {
        Self(password)
    }

    fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// An account of the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Its name.
    pub username: String,
    /// Its password.
    pub password: Password,
}

/// What a server is taken for when it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Duty {
    /// For the primary: what it has, what it made durable, and its standbys.
    Sample,
    /// For a replica: what it applied and received, and how its replication is.
    Probe,
}

/// What came of asking a primary to make its log durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nudge {
    /// Within what time the server does so by its settings.
    pub within: Duration,
}

/// A kind of database.
#[derive(Clone, PartialEq, Debug)]
pub enum Engine {
    /// PostgreSQL 14 and later.
    Postgresql,
    /// Servers that a test scripts.
    Scripted(scripted::Script),
}

impl Engine {
    /// Connects, authenticates, and learns who the server is.
    ///
    /// *Timeouts*: none of its own; a server that accepts and never answers is waited for without end. *Cancel safety*:
    /// dropping the call closes the connection.
    pub async fn connect(&self, target: &Target, credentials: &Credentials, tls: &Tls) -> Result<Session, EngineError> {
        match self {
            Self::Postgresql => Ok(Session::Postgresql(Box::new(
                postgresql::Session::connect(target, credentials, tls).await?,
            ))),
            Self::Scripted(script) => Ok(Session::Scripted(script.connect(target).await?)),
        }
    }
}

/// A connection to one server.
#[derive(Debug)]
pub enum Session {
    /// To PostgreSQL.
    Postgresql(Box<postgresql::Session>),
    /// To a scripted server.
    Scripted(scripted::Session),
}

impl Session {
    /// Asks the server once, in one round trip unless its role is not the one that `duty` supposes. The role in the
    /// answer is the server's own.
    pub async fn observe(&mut self, duty: Duty) -> Result<Sighting, EngineError> {
        match self {
            Self::Postgresql(session) => session.observe(duty).await,
            Self::Scripted(session) => session.observe(duty).await,
        }
    }

    /// Asks a primary to make durable what it has, by a transaction that changes nothing.
    pub async fn nudge(&mut self) -> Result<Nudge, EngineError> {
        match self {
            Self::Postgresql(session) => session.nudge().await,
            Self::Scripted(session) => session.nudge().await,
        }
    }

    /// The address that was connected to.
    pub fn peer(&self) -> IpAddr {
        match self {
            Self::Postgresql(session) => session.peer().ip(),
            Self::Scripted(session) => session.peer(),
        }
    }

    /// The server's version, for people.
    pub fn version(&self) -> &Arc<str> {
        match self {
            Self::Postgresql(session) => session.version(),
            Self::Scripted(session) => session.version(),
        }
    }

    /// Gives the connection up, and ends what the server may still do for it.
    ///
    /// *Timeouts*: none of its own.
    pub async fn cancel(self) {
        match self {
            Self::Postgresql(session) => session.cancel().await,
            Self::Scripted(_) => {}
        }
    }
}

/// The addresses of a target now.
async fn resolve(target: &Target) -> Result<Vec<SocketAddr>, EngineError> {
    let name = match &target.address {
        Address::Ip(ip) => return Ok(vec![SocketAddr::new(*ip, target.port)]),
        Address::Name(name) => name,
    };
    let unknown = |why: String| EngineError::new(ProbeFailure::NameNotResolved, format!("look up {name}: {why}"));
    let found = tokio::net::lookup_host((name.as_str(), target.port)).await;
    let addresses: Vec<SocketAddr> = found.map_err(|e| unknown(e.to_string()))?.collect();
    if addresses.is_empty() {
        Err(unknown("it has no address".into()))
    } else {
        Ok(addresses)
    }
}
