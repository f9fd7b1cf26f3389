//! Asks one server, again and again, one question at a time.
//!
//! | after | the next question |
//! | --- | --- |
//! | an answer | on the next beat of the pool ([`super::pace`]) |
//! | the end of an established connection | at once, on a new one |
//! | a question that the server interrupted | at once, on the same one |
//! | a failure to connect | one period later; from the tenth in a row on after up to [`SLOWEST`], spread by a fifth |
//! | a refused account | after [`SLOWEST`] at least, so that no account is locked by us |
//!
//! A server is asked as the primary as long as it says that it is one, else as a replica. New credentials are tried on a
//! new connection first, and the old connection stays until the new one works.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep_until, timeout};

use super::Access;
use super::pace::Pace;
use crate::clock::Clock;
use crate::engine::{Duty, EngineError, Session, Target};
use crate::policy::member::MemberName;
use crate::policy::moment::Moment;
use crate::policy::sighting::{Observation, Outcome, ProbeFailure, Role, Sighting};

/// The longest pause between two attempts to connect.
const SLOWEST: Duration = Duration::from_secs(1);
/// The pause after a refused account.
const LOCKOUT: Duration = Duration::from_secs(2);
/// Failures in a row that are answered at the full pace.
const EAGER: u32 = 10;
/// How long ending a statement on the server may take.
const CANCEL_WITHIN: Duration = Duration::from_secs(1);

/// What a prober sends.
#[derive(Debug)]
pub(super) enum Message {
    /// How one question ended.
    Answer {
        observation: Observation,
        /// The connection that was used, when one was.
        via: Option<Via>,
        /// What a failure said.
        error: Option<Arc<str>>,
    },
    /// How a request to flush ended: what went wrong, if anything did.
    Nudged(Option<Arc<str>>),
}

/// A connection, for people.
#[derive(Clone, Debug)]
pub(super) struct Via {
    pub(super) peer: std::net::IpAddr,
    pub(super) version: Arc<str>,
}

/// Which member a message is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Whose {
    pub(super) name: MemberName,
    pub(super) uid: Arc<str>,
}

/// What a prober is told. A watch value: only the newest counts.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    pub(super) access: Arc<Access>,
    /// When who is asked.
    pub(super) pace: Pace,
    /// Within what time a primary that is asked to flush should do so.
    pub(super) flush_within: Duration,
    /// Rises when the primary should be asked to flush.
    pub(super) nudges: u64,
}

/// Asks one server.
pub(super) struct Prober {
    pub(super) whose: Whose,
    pub(super) target: Target,
    pub(super) clock: Clock,
    pub(super) orders: watch::Receiver<Orders>,
    pub(super) out: mpsc::Sender<(Whose, Message)>,
    duty: Duty,
    session: Option<Live>,
    failures: u32,
    nudges: u64,
}

/// A connection, and with what access it was made.
struct Live {
    session: Session,
    access: Arc<Access>,
    renewed: Moment,
}

impl Prober {
    pub(super) fn new(
        whose: Whose,
        target: Target,
        clock: Clock,
        orders: watch::Receiver<Orders>,
        out: mpsc::Sender<(Whose, Message)>,
    ) -> Self {
        let nudges = orders.borrow().nudges;
        Self {
            whose,
            target,
            clock,
            orders,
            out,
            duty: Duty::Probe,
            session: None,
            failures: 0,
            nudges,
        }
    }

    /// Asks until nobody listens any more.
    pub(super) async fn run(mut self) {
        loop {
            let orders = self.orders.borrow_and_update().clone();
            if orders.nudges != self.nudges {
                self.nudges = orders.nudges;
                if self.duty == Duty::Sample && !self.nudge(&orders).await {
                    return;
                }
            }
            let Some(next) = self.ask(&orders).await else { return };
            if !self.rest(&orders, next).await {
                return;
            }
        }
    }

    /// Waits until `next`, or until new orders concern this prober. False when nobody gives orders any more.
    async fn rest(&mut self, heeded: &Orders, next: Moment) -> bool {
        loop {
            tokio::select! {
                () = sleep_until(self.clock.instant(next)) => return true,
                changed = self.orders.changed() => if changed.is_err() { return false },
            }
            let orders = self.orders.borrow_and_update();
            let nudge = self.duty == Duty::Sample && orders.nudges != heeded.nudges;
            if nudge || orders.pace != heeded.pace || !Arc::ptr_eq(&orders.access, &heeded.access) {
                return true;
            }
        }
    }

    /// Asks once, and answers when to ask next; nothing when nobody listens any more.
    async fn ask(&mut self, orders: &Orders) -> Option<Moment> {
        let connecting = self.clock.now();
        let connected = self.connect(orders).await;
        let asked = if self.session.is_some() {
            self.clock.now()
        } else {
            connecting
        };
        let seen = match connected {
            Ok(()) => self.observe(orders).await,
            Err(failed) => Err(failed),
        };
        let answered = self.clock.now();
        let via = self.session.as_ref().map(|live| Via {
            peer: live.session.peer(),
            version: live.session.version().clone(),
        });
        let (outcome, error, next) = match seen {
            Ok(sighting) => {
                self.failures = 0;
                self.duty = if sighting.role == Role::Primary {
                    Duty::Sample
                } else {
                    Duty::Probe
                };
                (Outcome::Seen(sighting), None, orders.pace.next(self.duty, asked))
            }
            Err(failed) => {
                let next = self.after(failed.kind, answered, orders);
                (Outcome::Failed(failed.kind), Some(failed.text), next)
            }
        };
        let observation = Observation {
            asked,
            answered,
            outcome,
        };
        let message = Message::Answer {
            observation,
            via,
            error,
        };
        self.out.send((self.whose.clone(), message)).await.ok()?;
        Some(next.max(answered))
    }

    fn after(&mut self, failure: ProbeFailure, now: Moment, orders: &Orders) -> Moment {
        let period = orders.pace.period(self.duty);
        match failure {
            ProbeFailure::ConnectionLost | ProbeFailure::Interrupted if self.failures == 0 => {
                self.failures = 1;
                now
            }
            ProbeFailure::AuthFailed => now + spread(LOCKOUT.max(period)),
            ProbeFailure::Timeout
            | ProbeFailure::Unreachable
            | ProbeFailure::NameNotResolved
            | ProbeFailure::Refused
            | ProbeFailure::NotAccepting
            | ProbeFailure::TooManyConnections
            | ProbeFailure::ConnectionLost
            | ProbeFailure::Interrupted
            | ProbeFailure::PermissionDenied
            | ProbeFailure::DatabaseNotFound
            | ProbeFailure::TlsFailed
            | ProbeFailure::Protocol
            | ProbeFailure::QueryFailed => {
                self.failures = self.failures.saturating_add(1);
                if self.failures < EAGER {
                    now + period
                } else {
                    let doublings = (self.failures - EAGER).min(6);
                    now + spread((period * 2_u32.pow(doublings)).min(SLOWEST.max(period)))
                }
            }
        }
    }

    /// Makes sure of a connection with the present access, when one can be had.
    async fn connect(&mut self, orders: &Orders) -> Result<(), Failed> {
        let now = self.clock.now();
        if let Some(live) = &mut self.session {
            // The old connection stays while the new access does not work; it is tried again now and then.
            if *live.access == *orders.access || (live.renewed > Moment::ORIGIN && now < live.renewed + LOCKOUT) {
                return Ok(());
            }
            live.renewed = now;
        }
        let within = orders.pace.periods.timeout * 2;
        let access = &orders.access;
        match timeout(
            within,
            access.engine.connect(&self.target, &access.credentials, &access.tls),
        )
        .await
        {
            Ok(Ok(session)) => {
                self.session = Some(Live {
                    session,
                    access: orders.access.clone(),
                    renewed: Moment::ORIGIN,
                });
                Ok(())
            }
            _ if self.session.is_some() => Ok(()),
            Ok(Err(error)) => Err(Failed::from(&error)),
            Err(_) => Err(Failed::timeout("no connection", within)),
        }
    }

    async fn observe(&mut self, orders: &Orders) -> Result<Sighting, Failed> {
        let within = orders.pace.periods.timeout;
        let Some(live) = &mut self.session else {
            return Err(Failed::timeout("no connection", within));
        };
        match timeout(within, live.session.observe(self.duty)).await {
            Ok(Ok(sighting)) => Ok(sighting),
            Ok(Err(error)) => {
                if !keeps_connection(error.kind()) {
                    self.session = None;
                }
                Err(Failed::from(&error))
            }
            Err(_) => {
                self.give_up().await;
                Err(Failed::timeout("no answer", within))
            }
        }
    }

    /// Asks the primary to make its log durable. False when nobody listens any more.
    async fn nudge(&mut self, orders: &Orders) -> bool {
        let Some(live) = &mut self.session else { return true };
        let failed = match timeout(orders.pace.periods.timeout, live.session.nudge()).await {
            Ok(Ok(nudge)) if nudge.within > orders.flush_within => Some(Arc::from(format!(
                "the primary flushes its log only every {} ms: set wal_writer_delay to at most {} ms",
                nudge.within.as_millis(),
                orders.flush_within.as_millis()
            ))),
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(Arc::from(error.to_string())),
            Err(_) => {
                self.give_up().await;
                Some(Arc::from("no answer in time"))
            }
        };
        self.out
            .send((self.whose.clone(), Message::Nudged(failed)))
            .await
            .is_ok()
    }

    /// Ends what the server still does for us, and the connection.
    async fn give_up(&mut self) {
        if let Some(live) = self.session.take() {
            // Whether the server hears it or not, the connection is gone.
            drop(timeout(CANCEL_WITHIN, live.session.cancel()).await);
        }
    }
}

/// A failure, in the words of the engine.
struct Failed {
    kind: ProbeFailure,
    text: Arc<str>,
}

impl Failed {
    fn timeout(what: &str, within: Duration) -> Self {
        Self {
            kind: ProbeFailure::Timeout,
            text: Arc::from(format!("{what} within {} ms", within.as_millis())),
        }
    }
}

impl From<&EngineError> for Failed {
    fn from(error: &EngineError) -> Self {
        Self {
            kind: error.kind(),
            text: Arc::from(error.to_string()),
        }
    }
}

/// Whether the connection is good for another question after this failure of one.
fn keeps_connection(failure: ProbeFailure) -> bool {
    matches!(
        failure,
        ProbeFailure::PermissionDenied | ProbeFailure::QueryFailed | ProbeFailure::Interrupted
    )
}

/// `pause` give or take a tenth, so that many probers do not knock at once.
fn spread(pause: Duration) -> Duration {
    pause.mul_f64(0.9 + 0.2 * fastrand::f64())
}
