//! Which of several processes publishes: one holds a Lease, by the rules of Kubernetes' own components.
//!
//! **No clock is trusted.** A holder's record is valid for as long as it says, counted from when *we* first saw it in its
//! present form; the times in it are for people. So a stepped clock changes nothing, and machines need only agree on how
//! long a second is.
//!
//! **Two never write at once.** With the default [`rules::Timings`]:
//!
//! | moment | figure |
//! | --- | --- |
//! | the holder sends a renewal that is stored | 0 |
//! | it stops writing, whatever happened to the answer | 3 s (`renew_deadline`, counted from before it was sent) |
//! | another may take over at the earliest | 4 s after it saw that renewal, which is after it was stored (`lease`) |
//! | another takes over at the latest, after the holder died | 4 s + one retry of 0.6 s + one call, some 4.7 s |
//!
//! The second between is the margin for a write that is under way when its time ends (every write is bounded by the same
//! moment) and for clocks that run at different rates (a quarter is allowed). A process that is stopped and goes on later
//! finds its time over before it writes. The server does not fence: a write carries the version of what it replaces, so one
//! that was sent in time and arrives late fails on what the new holder has written since.
//!
//! A lost Lease makes a standby of the process, which goes on probing and takes the Lease again when it can; an outage of
//! the API server ends nothing. Verbs: `get`, `create`, `update`.

pub mod rules;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};
use tracing::{info, warn};

use self::rules::{Action, Answer, Record, Rules, Timings};
use crate::api;
use crate::clock::Clock;
use crate::policy::moment::Moment;

/// How long giving the Lease back may take when the process ends.
const RELEASE_WITHIN: Duration = Duration::from_millis(900);

/// Whether this process publishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Leadership {
    /// Another does, or nobody.
    Standby {
        /// Who, as far as known.
        holder: Option<String>,
    },
    /// This one does.
    Leading {
        /// How often the Lease has changed hands.
        term: u64,
        /// Nothing is written at or after this moment.
        until: Moment,
    },
}

impl Leadership {
    /// A process that nobody competes with.
    pub const ALONE: Self = Self::Leading {
        term: 0,
        until: Moment::from_nanos(u64::MAX),
    };

    /// Whether a write may be sent at `now`.
    pub fn may_write(&self, now: Moment) -> bool {
        self.write_within(now).is_some()
    }

    /// For how long a write that is sent at `now` may be waited for; absent when none may be sent.
    pub fn write_within(&self, now: Moment) -> Option<Duration> {
        match self {
            Self::Leading { until, .. } if now < *until => Some(until.since(now)),
            Self::Leading { .. } | Self::Standby { .. } => None,
        }
    }

    /// Whether this process leads, in time or not.
    pub fn leads(&self) -> bool {
        matches!(self, Self::Leading { .. })
    }
}

/// Which Lease, and who we are.
#[derive(Clone, Debug)]
pub struct Election {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// What is written as the holder: unique to this process.
    pub identity: String,
    /// How long everything takes.
    pub timings: Timings,
}

impl Election {
    /// An election in which this process takes part as `name`, made unique.
    pub fn new(namespace: &str, lease: &str, name: &str) -> Self {
        let suffix: String = std::iter::repeat_with(fastrand::alphanumeric).take(8).collect();
        Self {
            namespace: namespace.into(),
            name: lease.into(),
            identity: format!("{name}_{suffix}"),
            timings: Timings::default(),
        }
    }
}

/// An election that this process takes part in.
#[derive(Debug)]
pub struct Elected {
    /// Whether this process publishes.
    pub leadership: watch::Receiver<Leadership>,
    /// When the API server last answered; absent while it never has.
    pub contact: watch::Receiver<Option<Moment>>,
    /// Ends only when told to: whoever holds it must end the process if it ends otherwise.
    pub task: JoinHandle<()>,
}

/// Takes part in `election` until `shutdown` says true, or its sender is gone; then gives the Lease back if it is ours.
pub fn start(client: Client, election: Election, clock: Clock, shutdown: watch::Receiver<bool>) -> Elected {
    let (tell, leadership) = watch::channel(Leadership::Standby { holder: None });
    let (heard, contact) = watch::channel(None);
    let elector = Elector {
        leases: Api::namespaced(client, &election.namespace),
        rules: Rules::new(election.identity.clone(), election.timings),
        election,
        clock,
        tell,
        heard,
    };
    Elected {
        leadership,
        contact,
        task: tokio::spawn(elector.run(shutdown)),
    }
}

struct Elector {
    leases: Api<Lease>,
    rules: Rules,
    election: Election,
    clock: Clock,
    tell: watch::Sender<Leadership>,
    heard: watch::Sender<Option<Moment>>,
}

impl Elector {
    async fn run(mut self, mut shutdown: watch::Receiver<bool>) {
        loop {
            self.announce();
            let turn = self.turn();
            tokio::select! {
                biased;
                _ = shutdown.wait_for(|ending| *ending) => break,
                () = turn => {}
            }
        }
        self.release().await;
    }

    /// Does what the rules say is next: waits, or asks once.
    async fn turn(&mut self) {
        let now = self.clock.now();
        let action = self.rules.next(now, fastrand::f64());
        self.announce();
        match action {
            Action::Wait(until) => sleep_until(self.clock.instant(until)).await,
            Action::Get | Action::Create | Action::Put { .. } => {
                let within = self.rules.call_within(now);
                let answer = match timeout(within, self.call(&action)).await {
                    Ok(answer) => answer,
                    Err(_) => Answer::Failed,
                };
                let heard = self.clock.now();
                if answer != Answer::Failed {
                    self.heard.send_replace(Some(heard));
                }
                self.rules.hear(&action, now, answer, heard);
            }
        }
    }

    fn announce(&mut self) {
        let leadership = self.rules.leadership(self.clock.now());
        self.tell.send_if_modified(|told| {
            if told.leads() != leadership.leads() {
                match &leadership {
                    Leadership::Leading { term, .. } => {
                        info!(identity = %self.election.identity, term, "this process leads");
                    }
                    Leadership::Standby { holder } => {
                        info!(holder = holder.as_deref(), "this process stands by");
                    }
                }
            }
            let changed = *told != leadership;
            *told = leadership.clone();
            changed
        });
    }

    async fn call(&self, action: &Action) -> Answer {
        let params = PostParams {
            field_manager: Some(api::FIELD_MANAGER.into()),
            ..PostParams::default()
        };
        let done = match action {
            Action::Get => self.leases.get_opt(&self.election.name).await,
            Action::Create => self.leases.create(&params, &self.lease(None, 0)).await.map(Some),
            Action::Put { version, transitions } => {
                let lease = self.lease(Some(version), *transitions);
                self.leases
                    .replace(&self.election.name, &params, &lease)
                    .await
                    .map(Some)
            }
            Action::Wait(_) => return Answer::Failed,
        };
        match done {
            Ok(Some(lease)) => Answer::Is(record(&lease)),
            Ok(None) => Answer::Absent,
            Err(kube::Error::Api(status)) if status.code == 409 => Answer::Conflict,
            Err(kube::Error::Api(status)) if status.code == 404 => Answer::Absent,
            Err(error) => {
                warn!(lease = %self.election.name, namespace = %self.election.namespace, %error, "could not reach the Lease");
                Answer::Failed
            }
        }
    }

    fn lease(&self, version: Option<&str>, transitions: u64) -> Lease {
        let now = MicroTime(self.clock.wall());
        Lease {
            metadata: ObjectMeta {
                name: Some(self.election.name.clone()),
                namespace: Some(self.election.namespace.clone()),
                resource_version: version.map(str::to_owned),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(self.election.identity.clone()),
                lease_duration_seconds: i32::try_from(self.election.timings.lease.as_secs()).ok(),
                lease_transitions: i32::try_from(transitions).ok(),
                acquire_time: Some(now.clone()),
                renew_time: Some(now),
                ..LeaseSpec::default()
            }),
        }
    }

    /// Lets another take over at once instead of after the Lease's time.
    async fn release(&mut self) {
        let Some((version, transitions)) = self.rules.held(self.clock.now()) else {
            return;
        };
        self.tell.send_replace(Leadership::Standby { holder: None });
        let mut lease = self.lease(Some(&version), transitions);
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        let params = PostParams::default();
        let released = timeout(
            RELEASE_WITHIN,
            self.leases.replace(&self.election.name, &params, &lease),
        )
        .await;
        match released {
            Ok(Ok(_)) => info!(lease = %self.election.name, "the Lease is given back"),
            Ok(Err(error)) => warn!(lease = %self.election.name, %error, "could not give the Lease back"),
            Err(_) => warn!(lease = %self.election.name, "could not give the Lease back in time"),
        }
    }
}

fn record(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    Record {
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
        holder: spec.holder_identity.filter(|h| !h.is_empty()),
        duration: spec
            .lease_duration_seconds
            .and_then(|s| u64::try_from(s).ok())
            .map(Duration::from_secs),
        transitions: spec.lease_transitions.and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
    }
}
