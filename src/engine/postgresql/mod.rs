//! PostgreSQL 14 and later, asked for positions in its write-ahead log.
//!
//! **Privileges.** A role that may log in and is a member of `pg_read_all_stats` ([`ROLE_SQL`]). Role, position, pause state
//! and control data are public; what the receiver and the senders do is not: without the privilege their columns are NULL,
//! which is reported as a missing privilege and never read as "nothing".
//!
//! **Two statements**, prepared once per connection ([`statements`]): one for a server that is taken for the primary, one for
//! a replica. Each returns the server's own role; if that is another one than supposed, the other statement is asked too.
//!
//! **Which timeline a replica is on.** A position counts only on the primary's timeline, so a replica that is still on an old
//! one must never be reported on the new one. With a receiver it is `received_tli`: PostgreSQL requests a timeline from its
//! source only from a position that lies in that timeline's own part of its history (`tliOfPointInHistory` in
//! `xlogrecovery.c`), and refuses to follow one that branched off before what it has replayed ("new timeline forked off
//! current database system timeline before current recovery point"). So everything that such a replica has replayed lies on
//! that timeline or on its ancestors. Without a receiver it is the larger of the two timelines in the control file, which
//! follow a switch late and never run ahead of it. A replica that has followed may so be reported on the old timeline for a
//! while; that keeps it out, which is the safe side.
//!
//! **What is never done.** Nothing is written but the empty transaction of [`Session::nudge`], no lag is computed, nothing is
//! tried again.

mod connect;
mod statements;

pub use statements::{PROBE, SAMPLE};

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Statement};

use super::bounded::Allowance;
use super::error::EngineError;
use super::{Duty, Nudge, Tls};
use crate::policy::position::{ClusterId, Incarnation, WalGeometry};
use crate::policy::sighting::{ProbeFailure, Sighting};

/// The statements that make the role, for a superuser. `:'password'` is a variable of psql.
pub const ROLE_SQL: &str = "CREATE ROLE lagwarden LOGIN PASSWORD :'password' CONNECTION LIMIT 20;
GRANT pg_read_all_stats TO lagwarden;
";

/// What is learned of a server once per connection: it cannot change while a connection lives.
#[derive(Clone, Debug)]
struct Identity {
    cluster: ClusterId,
    incarnation: Incarnation,
    geometry: WalGeometry,
    wal_writer_delay: Duration,
    version: Arc<str>,
}

/// A connection to one PostgreSQL server.
#[derive(Debug)]
pub struct Session {
    client: Client,
    driver: Driver,
    identity: Identity,
    allowance: Allowance,
    tls: Tls,
    peer: SocketAddr,
    /// The name that the server's certificate is held against.
    name: String,
    sample: Option<Statement>,
    probe: Option<Statement>,
}

/// The task that carries the connection. It ends with the session.
#[derive(Debug)]
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Session {
    /// See [`super::Session::observe`].
    pub async fn observe(&mut self, duty: Duty) -> Result<Sighting, EngineError> {
        self.allowance.renew();
        if let Some(sighting) = self.ask(duty).await? {
            return Ok(sighting);
        }
        let other = match duty {
            Duty::Sample => Duty::Probe,
            Duty::Probe => Duty::Sample,
        };
        let changing = || {
            EngineError::new(
                ProbeFailure::Protocol,
                "the server's role changes between two questions",
            )
        };
        self.ask(other).await?.ok_or_else(changing)
    }

    /// See [`super::Session::nudge`]. `pg_current_xact_id` in a transaction of its own writes a commit record of 34 bytes
    /// without waiting for anybody, and the WAL writer makes it, and all before it, durable within `wal_writer_delay`.
    pub async fn nudge(&mut self) -> Result<Nudge, EngineError> {
        self.allowance.renew();
        let done = self.client.batch_execute(statements::NUDGE).await;
        done.map_err(|e| connect::asking(&e))?;
        Ok(Nudge {
            within: self.identity.wal_writer_delay,
        })
    }

    /// Where the server was reached.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The server's version.
    pub fn version(&self) -> &Arc<str> {
        &self.identity.version
    }

    /// See [`super::Session::cancel`].
    pub async fn cancel(self) {
        let token = self.client.cancel_token();
        connect::cancel(token, self.peer, &self.name, &self.tls).await;
        drop(self.driver);
    }

    /// Asks with the statement for `duty`; nothing when the server's role is the other one.
    async fn ask(&mut self, duty: Duty) -> Result<Option<Sighting>, EngineError> {
        let statement = self.statement(duty).await?;
        let rows = self
            .client
            .query(&statement, &[])
            .await
            .map_err(|e| connect::asking(&e))?;
        match duty {
            Duty::Sample => statements::sampled(&rows, &self.identity),
            Duty::Probe => statements::probed(&rows, &self.identity),
        }
    }

    async fn statement(&mut self, duty: Duty) -> Result<Statement, EngineError> {
        let (kept, sql) = match duty {
            Duty::Sample => (&mut self.sample, SAMPLE),
            Duty::Probe => (&mut self.probe, PROBE),
        };
        if let Some(statement) = kept {
            return Ok(statement.clone());
        }
        let prepared = self.client.prepare(sql).await.map_err(|e| connect::asking(&e))?;
        Ok(kept.insert(prepared).clone())
    }
}
