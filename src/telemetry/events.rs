//! The catalogue of what can be told: transitions of the policy, in the words that status, Events, logs and metrics share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tracing::{info, trace, warn};

use super::metrics::Metrics;
use super::words::{at_most, names, seconds, why, why_unresolved};
use crate::policy::member::MemberName;
use crate::policy::primary::Primary;
use crate::policy::reason::Reason;
use crate::policy::settings::Fallback;
use crate::policy::sighting::{Observation, Outcome, ProbeFailure};
use crate::policy::state::{MemberState, ServiceState};
use crate::policy::transition::Transition;

/// Which pool is spoken of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PoolKey {
    /// Its namespace; `-` without a cluster.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// How much an Event matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Weight {
    /// As it should be.
    Normal,
    /// Somebody may want to look.
    Warning,
}

/// The reason of a changed list.
const ENDPOINTS_CHANGED: &str = "EndpointsChanged";

/// What a Kubernetes Event should say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// How much it matters.
    pub weight: Weight,
    /// One word for the kind of thing.
    pub reason: &'static str,
    /// What was done about it, one word.
    pub action: &'static str,
    /// One sentence with the figures of the moment.
    pub note: String,
    /// The member it is about, when it is about one.
    pub member: Option<MemberName>,
}

impl Notice {
    /// Whether it is one of many that belong to the same matter: a member's part, or the list that came of it. What concerns
    /// a whole service or pool, its end as well as its beginning, is none.
    pub fn is_detail(&self) -> bool {
        self.member.is_some() || self.reason == ENDPOINTS_CHANGED
    }
}

/// Records what happens to one pool. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Recorder {
    pool: PoolKey,
    metrics: Metrics,
}

impl Recorder {
    /// A recorder for `pool`; its counters begin at zero.
    pub fn new(pool: PoolKey, metrics: Metrics) -> Self {
        metrics.begin(&pool);
        Self { pool, metrics }
    }

    /// The pool that is recorded.
    pub fn pool(&self) -> &PoolKey {
        &self.pool
    }

    /// Notes how one question ended.
    pub fn observed(&self, member: &str, observation: &Observation) {
        let failure = match &observation.outcome {
            Outcome::Seen(_) => None,
            Outcome::Failed(kind) => Some(*kind),
        };
        self.metrics.probed(&self.pool, observation.round_trip(), failure);
        trace!(pool = %self.pool.name, namespace = %self.pool.namespace, replica = member, failure = failure.map(ProbeFailure::as_str), "probed");
    }

    /// Notes by how much a timer of the pool's loop was late.
    pub fn woke_late(&self, by: Duration) {
        self.metrics.woke_late(by);
    }

    /// Notes that the primary was asked to make its log durable.
    pub fn nudged(&self, failed: Option<&str>) {
        self.metrics.nudged(&self.pool, failed.is_none());
        if let Some(why) = failed {
            warn!(pool = %self.pool.name, namespace = %self.pool.namespace, why, "could not ask the primary to flush its log");
        }
    }

    /// Notes that a message could not be queued.
    pub fn overflowed(&self) {
        self.metrics.overflowed(&self.pool);
    }

    /// Notes a transition, and says what a Kubernetes Event should say, if anything.
    pub fn changed(&self, transition: &Transition) -> Option<Notice> {
        let notice = describe(transition);
        let (pool, namespace) = (&self.pool.name, &self.pool.namespace);
        if let Transition::Member { service, reason, .. } = transition {
            self.metrics.moved(&self.pool, service, *reason);
        }
        if let Transition::List { before, decision } = transition {
            let added = decision.endpoints.iter().filter(|e| !before.contains(e)).count();
            let removed = before.iter().filter(|e| !decision.endpoints.contains(e)).count();
            self.metrics.listed(&self.pool, &decision.service, added, removed);
        }
        let replica = match transition {
            Transition::Member { member, .. } | Transition::Contact { member, .. } => Some(member.as_ref()),
            Transition::Primary { .. } | Transition::Service { .. } | Transition::List { .. } => None,
        };
        match &notice {
            Some(n) if n.weight == Weight::Warning => {
                warn!(%pool, %namespace, replica, reason = n.reason, "{}", n.note);
            }
            Some(n) => info!(%pool, %namespace, replica, reason = n.reason, "{}", n.note),
            None => trace!(%pool, %namespace, replica, ?transition, "changed"),
        }
        notice
    }
}

/// What a transition means to a person; absent for steps on the way.
fn describe(transition: &Transition) -> Option<Notice> {
    match transition {
        Transition::Primary { from, to } => describe_primary(from, to),
        Transition::Service { service, from, to } => describe_service(service, *from, *to),
        // What follows from it is told: a member's cause, a silent primary, MeasurementHealthy.
        Transition::Contact { .. } => None,
        Transition::List { decision, .. } => Some(Notice {
            weight: Weight::Normal,
            reason: ENDPOINTS_CHANGED,
            action: "Publish",
            note: format!("{} now lists {}", decision.service, names(&decision.endpoints)),
            member: None,
        }),
        Transition::Member {
            service,
            member,
            from,
            to,
            reason,
            bound,
            limit,
        } => {
            let figures = Figures {
                bound: *bound,
                limit: *limit,
            };
            describe_member(service, member, (*from, *to), *reason, &figures)
        }
    }
}

struct Figures {
    bound: Option<Duration>,
    limit: Duration,
}

fn describe_member(
    service: &str,
    member: &MemberName,
    (from, to): (MemberState, MemberState),
    reason: Reason,
    figures: &Figures,
) -> Option<Notice> {
    let limit = seconds(figures.limit);
    let proven = figures.bound.map_or("nothing is proven of it".to_string(), |b| {
        format!("its staleness is proven to be at most {}", at_most(b))
    });
    let (weight, event, action, note) = match (from, to) {
        (_, MemberState::Serving) if from != to => (
            Weight::Normal,
            "ReplicaReady",
            "Admit",
            format!("{member} serves {service}: {proven}, within {limit}"),
        ),
        (MemberState::Serving, MemberState::Lagging) => (
            Weight::Warning,
            reason.as_str(),
            "Withdraw",
            format!(
                "{member} no longer serves {service}: {}; nothing proves that it is within {limit}",
                why(reason)
            ),
        ),
        (MemberState::Serving | MemberState::Recovering | MemberState::Lagging, MemberState::Excluded) => (
            Weight::Warning,
            reason.as_str(),
            "Withdraw",
            format!("{member} may not serve {service}: {}", why(reason)),
        ),
        (MemberState::Lagging | MemberState::Pending | MemberState::Serving, same) if same == from => (
            if reason == Reason::CaughtUp {
                Weight::Normal
            } else {
                Weight::Warning
            },
            reason.as_str(),
            "Explain",
            format!("{member} {}: {}", standing(service, same, reason), why(reason)),
        ),
        _ => return None,
    };
    Some(Notice {
        weight,
        reason: event,
        action,
        note,
        member: Some(member.clone()),
    })
}

/// Where a member stands whose state stays, and whose cause is another.
fn standing(service: &str, state: MemberState, reason: Reason) -> String {
    match (state, reason) {
        (_, Reason::Held) => format!("serves {service} beyond the limit"),
        (MemberState::Serving, Reason::CaughtUp) => format!("serves {service}"),
        (MemberState::Serving, _) => format!("serves {service} by its last proof"),
        (MemberState::Pending, _) => format!("is not proven for {service}"),
        (MemberState::Lagging | MemberState::Recovering | MemberState::Excluded, _) => {
            format!("is beyond the limit of {service}")
        }
    }
}

fn describe_service(service: &str, from: ServiceState, to: ServiceState) -> Option<Notice> {
    let (weight, reason, note) = match to {
        ServiceState::Normal | ServiceState::Degraded => return describe_recovery(service, from),
        ServiceState::ColdStart => return None,
        ServiceState::Paused => (
            Weight::Normal,
            "Paused",
            format!("{service} stays as it is: the pool is paused"),
        ),
        ServiceState::Fallback(policy) => (
            Weight::Warning,
            "FallbackActive",
            format!("{service} has too few fresh replicas: {}", who_serves(policy)),
        ),
        ServiceState::Exhausted => (
            Weight::Warning,
            "NoEndpoints",
            format!("{service} has no endpoint: no replica is fresh, and no fallback gives one"),
        ),
        ServiceState::Frozen => (
            Weight::Warning,
            "Frozen",
            format!("{service} stays as it is: most members are silent at once, or the primary is not known"),
        ),
        ServiceState::ControllerIsolated => (
            Weight::Warning,
            "ControllerIsolated",
            format!("{service} stays as it is: nobody answers us, the primary included"),
        ),
        ServiceState::PrimarySilent => (
            Weight::Warning,
            "PrimarySilent",
            format!("the primary gives no sign: {service} is judged by its last confirmed position"),
        ),
    };
    Some(decided(weight, reason, note))
}

fn describe_recovery(service: &str, from: ServiceState) -> Option<Notice> {
    let (reason, note) = match from {
        ServiceState::Fallback(policy) => (
            "FallbackEnded",
            format!("{service} needs no fallback any more (was {})", policy.as_str()),
        ),
        ServiceState::Paused => ("Resumed", format!("{service} is decided again")),
        ServiceState::Exhausted
        | ServiceState::Frozen
        | ServiceState::ControllerIsolated
        | ServiceState::PrimarySilent => (
            "Recovered",
            format!("{service} is decided by lag again (was {})", from.as_str()),
        ),
        ServiceState::ColdStart | ServiceState::Normal | ServiceState::Degraded => return None,
    };
    Some(decided(Weight::Normal, reason, note))
}

fn decided(weight: Weight, reason: &'static str, note: String) -> Notice {
    Notice {
        weight,
        reason,
        action: "Decide",
        note,
        member: None,
    }
}

/// Who serves reads under a fallback, in one clause.
pub fn who_serves(policy: Fallback) -> &'static str {
    match policy {
        Fallback::Primary => "the primary serves reads",
        Fallback::LeastLagged => "the least stale replicas serve although they are over the limit",
        Fallback::KeepLast => "the last fresh set serves although it is over the limit",
        Fallback::None => "nobody serves",
    }
}

fn describe_primary(from: &Primary, to: &Primary) -> Option<Notice> {
    let (weight, reason, note) = match (from.name(), to) {
        (_, Primary::NotYet) => return None,
        (_, Primary::Resolved(name)) => (Weight::Normal, "PrimaryResolved", format!("{name} is the primary")),
        (Some(name), other) => (
            Weight::Warning,
            other.as_str(),
            format!(
                "the primary is not known any more (was {name}): {}",
                why_unresolved(other)
            ),
        ),
        (None, other) => (
            Weight::Warning,
            other.as_str(),
            format!("the primary is not known: {}", why_unresolved(other)),
        ),
    };
    Some(Notice {
        weight,
        reason,
        action: "ResolvePrimary",
        note,
        member: None,
    })
}
