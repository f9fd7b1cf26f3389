//! One loop per pool.
//!
//! A [`worker`] owns all of a pool's state: the policy's machine, the timer, what is known of each server. Others send it
//! messages through bounded channels and read what it decided from a watch value; nobody shares state with it. Each member
//! has a [`prober`], a task that asks its server at the pool's pace, one question at a time, and sends what came of it.
//!
//! Nothing here knows Kubernetes. The controller and the standalone form start the same loop with the same parts.
//!
//! Bounds: [`ANSWERS`] answers and [`COMMANDS`] commands may wait (a prober waits when the loop is busy, so nothing is
//! lost), [`NOTICES`] notices (the oldest are counted and dropped when nobody takes them: they are for people).

pub mod assemble;
mod pace;
mod prober;
pub mod registry;
mod worker;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::engine::{Credentials, Engine, Target, Tls};
use crate::policy::member::{MemberInput, MemberName};
use crate::policy::report::{MemberReport, Report};
use crate::policy::settings::{PoolSettings, ServiceName};
use crate::policy::sighting::ProbeFailure;
use crate::telemetry::events::{Notice, Recorder};

/// Answers that may wait for the loop.
pub const ANSWERS: usize = 256;
/// Commands that may wait for the loop.
pub const COMMANDS: usize = 32;
/// Notices that may wait to be told.
pub const NOTICES: usize = 256;
/// How long a report is waited for.
const REPORT_WITHIN: Duration = Duration::from_secs(1);

/// A member, and where its server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolMember {
    /// What the policy needs to know of it.
    pub input: MemberInput,
    /// Where its server is.
    pub target: Target,
}

/// How servers are connected to.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    /// Which database it is.
    pub engine: Engine,
    /// The account.
    pub credentials: Credentials,
    /// How connections are secured.
    pub tls: Tls,
}

/// Everything a loop needs to know. Replaced as a whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Rises with each change, so that a reader knows which one a decision follows.
    pub generation: u64,
    /// What the pool declares.
    pub settings: PoolSettings,
    /// Who belongs to it.
    pub members: Vec<PoolMember>,
    /// How they are connected to.
    pub access: Access,
}

/// What is published of one service: found at the start, or taken over from another leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Published {
    /// The service.
    pub service: ServiceName,
    /// Who is in, by name.
    pub endpoints: Vec<MemberName>,
}

/// What is known of one member's connection, for people.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Contact {
    /// The address that was connected to.
    pub peer: Option<IpAddr>,
    /// The server's version.
    pub version: Option<Arc<str>>,
    /// What the newest failure said; absent when its newest attempt was answered.
    pub failure: Option<Arc<str>>,
}

/// What the loop has decided, and what it knew then.
#[derive(Clone, Debug)]
pub struct View {
    /// The configuration that it follows.
    pub generation: u64,
    /// The policy's report.
    pub report: Report,
    /// Each member's connection.
    pub contacts: BTreeMap<MemberName, Contact>,
    /// What went wrong when the primary was last asked to flush; absent when nothing did.
    pub nudge_failure: Option<Arc<str>>,
}

impl View {
    /// Whether some server refuses the account or its TLS: then it is worth looking whether they were changed.
    pub fn refuses_us(&self) -> bool {
        let refuses = |m: &MemberReport| matches!(m.failure, Some(ProbeFailure::AuthFailed | ProbeFailure::TlsFailed));
        self.report.members.iter().any(refuses)
    }
}

enum Command {
    Configure(Box<Config>),
    Adopt(Vec<Published>),
    Report(oneshot::Sender<View>),
}

/// A running loop. Dropping it ends the loop and its probers.
#[derive(Debug)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    decided: watch::Receiver<Arc<View>>,
    task: JoinHandle<()>,
}

impl Handle {
    /// Starts a loop that takes `published` as found, and sends what people should be told to `notices`.
    ///
    /// `leads` says whether this process may act on servers: while it is false the loop probes and decides, but never asks
    /// a primary to flush.
    pub fn start(
        config: Config,
        published: Vec<Published>,
        clock: Clock,
        recorder: Recorder,
        leads: watch::Receiver<bool>,
        notices: mpsc::Sender<Notice>,
    ) -> Self {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (worker, decided) = worker::Worker::new(config, published, clock, recorder, leads, notices);
        let task = tokio::spawn(worker.run(inbox));
        Self {
            commands,
            decided,
            task,
        }
    }

    /// Replaces what the pool declares, who belongs to it, and how it is connected to.
    ///
    /// *Timeouts*: waits while [`COMMANDS`] others wait. *Cancel safety*: a dropped call has changed nothing.
    pub async fn configure(&self, config: Config) {
        // A loop that has ended is noticed by `ended`, which everybody who holds a handle watches.
        drop(self.commands.send(Command::Configure(Box::new(config))).await);
    }

    /// Takes over what is published, when this process begins to lead.
    pub async fn adopt(&self, published: Vec<Published>) {
        drop(self.commands.send(Command::Adopt(published)).await);
    }

    /// What the loop has decided: changes with each transition.
    pub fn decided(&self) -> watch::Receiver<Arc<View>> {
        self.decided.clone()
    }

    /// A way to ask this loop that outlives no loop.
    pub fn asker(&self) -> Asker {
        Asker {
            commands: self.commands.clone(),
        }
    }

    /// Whether the loop has ended, which it never does by itself: then the process is not to be trusted any more.
    pub fn ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Asks a loop what it knows. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Asker {
    commands: mpsc::Sender<Command>,
}

impl Asker {
    /// What is known now; absent when the loop is gone or busy for over a second.
    pub async fn report(&self) -> Option<View> {
        let (answer, view) = oneshot::channel();
        let asked = async {
            self.commands.send(Command::Report(answer)).await.ok()?;
            view.await.ok()
        };
        tokio::time::timeout(REPORT_WITHIN, asked).await.ok().flatten()
    }
}
