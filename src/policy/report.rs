//! The pool's knowledge at an instant, for people and machines that look: status, HTTP, metrics, the live table.
//!
//! Plain data. Whatever was not observed is absent.

use std::time::Duration;

use super::agenda::Agenda;
use super::facts::{Contact, Facts, Reach};
use super::member::{Member, MemberName};
use super::moment::Moment;
use super::pool::Pool;
use super::position::{ClusterId, History, Position};
use super::primary::Primary;
use super::reason::Reason;
use super::service::Service;
use super::settings::{Fallback, OnPrimarySilent, ServiceName};
use super::sighting::{ProbeFailure, Replay, Role};
use super::state::{MemberState, Phase, ServiceState};

/// What is known of a pool.
#[derive(Clone, Debug)]
pub struct Report {
    /// As of when.
    pub at: Moment,
    /// Who the primary is.
    pub primary: Primary,
    /// The cluster that members must belong to; absent while nobody has answered.
    pub cluster: Option<ClusterId>,
    /// The history it is on; absent while nothing is known of it.
    pub history: Option<History>,
    /// Its newest position.
    pub position: Option<Position>,
    /// When it last answered.
    pub primary_answered: Option<Moment>,
    /// It gives no sign.
    pub primary_silent: bool,
    /// Replicas show positions that it had not confirmed: it lives, and only we have lost it.
    pub moves_unseen: bool,
    /// How many members we are in contact with.
    pub reach: Reach,
    /// Every member, by name.
    pub members: Vec<MemberReport>,
    /// Every service, in the order of the spec.
    pub services: Vec<ServiceReport>,
}

/// What is known of a member, the same for every service.
#[derive(Clone, Debug)]
pub struct MemberReport {
    /// Its name.
    pub name: MemberName,
    /// What it last said it is.
    pub role: Option<Role>,
    /// The cluster it belongs to.
    pub cluster: Option<ClusterId>,
    /// How it and we are in contact.
    pub contact: Contact,
    /// The newest failure, when its newest attempt failed.
    pub failure: Option<ProbeFailure>,
    /// When it last answered.
    pub answered: Option<Moment>,
    /// Upper bound of its staleness; absent without a proof, and for a primary.
    pub upper: Option<Duration>,
    /// Lower bound of its staleness at its newest answer; zero when nothing was certainly missing.
    pub lower: Option<Duration>,
    /// What it has.
    pub position: Option<Position>,
    /// Bytes that the primary is known to have and it has not applied.
    pub behind_bytes: Option<u64>,
    /// Of these, bytes that it has received.
    pub unapplied_bytes: Option<u64>,
    /// Whether it was told to stop applying.
    pub replay: Option<Replay>,
    /// How its proof moves.
    pub phase: Option<Phase>,
    /// How long applying what it has received will take at the recent rate.
    pub catches_up_in: Option<Duration>,
}

/// What is known of a service.
#[derive(Clone, Debug)]
pub struct ServiceReport {
    /// Its name.
    pub name: ServiceName,
    /// How it is decided.
    pub state: ServiceState,
    /// Since when.
    pub since: Moment,
    /// Its limit.
    pub max_staleness: Duration,
    /// A serving replica leaves above this.
    pub evict_above: Duration,
    /// A replica may return within this.
    pub admit_within: Duration,
    /// Its floor.
    pub min_endpoints: usize,
    /// Its fallbacks.
    pub fallback: Vec<Fallback>,
    /// Who is in, by name.
    pub endpoints: Vec<MemberName>,
    /// How often the list changed.
    pub number: u64,
    /// When it last did.
    pub decided: Moment,
    /// Every member's place, by name.
    pub seats: Vec<SeatReport>,
}

/// A member's place in a service.
#[derive(Clone, Debug)]
pub struct SeatReport {
    /// Whose.
    pub member: MemberName,
    /// Where it stands.
    pub state: MemberState,
    /// Why. [`Reason::Held`] when it is in by floor or fallback.
    pub reason: Reason,
    /// Why it would be out, were it not held.
    pub cause: Reason,
    /// Since when.
    pub since: Moment,
    /// Whether it is in the list.
    pub listed: bool,
}

impl Pool {
    /// What is known at `now`.
    pub fn report(&self, now: Moment) -> Report {
        let timeline = self.source.timeline();
        let mut agenda = Agenda::at(now);
        Report {
            at: now,
            primary: self.source.primary.clone(),
            cluster: self.source.cluster,
            history: timeline.map(super::timeline::Timeline::history),
            position: timeline.and_then(|t| t.newest()).map(|s| s.position.clone()),
            primary_answered: self.source.answered(),
            primary_silent: self.source.is_silent(&mut agenda, &self.settings),
            moves_unseen: self.source.moves_unseen(),
            reach: self.facts.reach,
            members: self
                .members
                .values()
                .map(|m| self.report_member(m, &mut agenda))
                .collect(),
            services: self.services.iter().map(report_service).collect(),
        }
    }

    fn report_member(&self, member: &Member, agenda: &mut Agenda) -> MemberReport {
        let now = agenda.now();
        let seen = member.seen.as_ref();
        let replica = seen.filter(|s| s.role == Role::Replica);
        let bound = self
            .facts
            .bound(member, &self.source, OnPrimarySilent::Hold, agenda, &self.settings);
        let timeline = self.source.timeline();
        let shown = replica
            .zip(timeline)
            .and_then(|(s, t)| t.translate(s.history, s.position.as_ref()?));
        let unapplied = replica.and_then(|s| Some(s.received.as_ref()?.ahead_of(s.position.as_ref()?)));
        let frontier = timeline.and_then(super::timeline::Timeline::frontier);
        MemberReport {
            name: member.input.name.clone(),
            role: seen.map(|s| s.role),
            cluster: seen.map(|s| s.history.cluster),
            contact: self.facts.contact_of(&member.input.name),
            failure: member.trouble.map(|t| t.kind),
            answered: member.answered,
            upper: replica.and(bound).map(|b| b.at(now)),
            lower: member
                .lease
                .as_ref()
                .map(|_| member.lower.map_or(Duration::ZERO, |l| l.at(now))),
            position: seen.and_then(|s| s.position.clone()),
            behind_bytes: frontier.zip(shown).map(|(f, s)| f.ahead_of(&s)),
            unapplied_bytes: unapplied,
            replay: seen.and_then(|s| s.replay),
            phase: replica.and_then(|_| member.motion.phase()),
            catches_up_in: unapplied.and_then(|bytes| member.motion.time_to_apply(bytes)),
        }
    }
}

impl Facts {
    fn contact_of(&self, name: &MemberName) -> Contact {
        let fact = self.members.iter().find(|f| f.name == *name);
        fact.map_or(Contact::Troubled, |f| f.contact)
    }
}

fn report_service(service: &Service) -> ServiceReport {
    let settings = &service.settings;
    let seats = service.seats.iter().map(|(name, seat)| SeatReport {
        member: name.clone(),
        state: seat.state,
        reason: if seat.held { Reason::Held } else { seat.reason },
        cause: seat.reason,
        since: seat.since,
        listed: service.decision.endpoints.contains(name),
    });
    ServiceReport {
        name: settings.name.clone(),
        state: service.state,
        since: service.since,
        max_staleness: settings.max_staleness,
        evict_above: settings.evict_above(),
        admit_within: settings.admit_within(),
        min_endpoints: settings.min_endpoints,
        fallback: settings.fallback.clone(),
        endpoints: service.decision.endpoints.clone(),
        number: service.decision.number,
        decided: service.decision.decided,
        seats: seats.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::settings::{PoolSettings, ServiceSettings};
    use crate::policy::world::{Way, World};

    #[test]
    fn what_was_never_observed_is_absent() {
        let settings = PoolSettings::new(vec![ServiceSettings::new("s", Duration::from_secs(2))]);
        let mut world = World::new(settings, &["a", "b"]);
        world.server("b").way = Way::Cut;
        world.run(6000);
        let report = world.pool.report(world.now);
        let [a, b, p] = report.members.as_slice() else {
            panic!("{report:?}")
        };
        assert!(a.upper.is_some_and(|u| u < Duration::from_millis(250)), "{a:?}");
        assert_eq!((a.phase, a.behind_bytes), (Some(Phase::Steady), a.behind_bytes));
        assert_eq!(
            (b.role, b.upper, b.lower, b.behind_bytes, b.phase),
            (None, None, None, None, None)
        );
        assert_eq!((b.contact, b.failure), (Contact::Blind, Some(ProbeFailure::Timeout)));
        assert_eq!((p.role, p.upper), (Some(Role::Primary), None));
        let seats: Vec<_> = report.services[0]
            .seats
            .iter()
            .map(|s| (s.state, s.reason, s.listed))
            .collect();
        assert_eq!(
            seats,
            [
                (MemberState::Serving, Reason::CaughtUp, true),
                (MemberState::Pending, Reason::Unreachable, false),
                (MemberState::Excluded, Reason::RoleChanged, false),
            ]
        );
    }
}
