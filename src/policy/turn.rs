//! One turn of one service: the moves of its members, in the order in which [`super::service`] calls them.

use std::time::Duration;

use super::agenda::Agenda;
use super::cause;
use super::damping::IMMINENT;
use super::facts::{Contact, Fact};
use super::lease::Bound;
use super::member::MemberName;
use super::reason::Reason;
use super::selection::{Candidate, Filling, fill};
use super::service::{Context, Service};
use super::state::MemberState;
use super::transition::Transition;

/// What is known of one member's lag, for one service.
#[derive(Clone, Copy, Debug)]
struct Reading {
    bound: Option<Bound>,
    lower: Duration,
}

/// One turn.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    service: &'a mut Service,
    context: Context<'a>,
    agenda: &'a mut Agenda,
    out: &'a mut Vec<Transition>,
    /// In the order of the members.
    readings: Vec<Reading>,
}

impl<'a> Turn<'a> {
    /// A turn of `service` that knows `context`.
    pub(super) fn new(
        service: &'a mut Service,
        context: Context<'a>,
        agenda: &'a mut Agenda,
        out: &'a mut Vec<Transition>,
    ) -> Self {
        let silent = service.settings.on_primary_silent;
        let one = |member| Reading {
            bound: context
                .facts
                .bound(member, context.source, silent, agenda, context.settings),
            lower: member.lower.map_or(Duration::ZERO, |lower| lower.at(agenda.now())),
        };
        let readings = context.members.values().map(one).collect();
        Self {
            service,
            context,
            agenda,
            out,
            readings,
        }
    }

    /// What holds whatever the lag: exclusion, and servers that refuse.
    pub(super) fn apply_facts(&mut self) {
        for (index, fact) in self.context.facts.members.iter().enumerate() {
            let Some(seat) = self.service.seats.get_mut(&fact.name) else {
                continue;
            };
            match (fact.excluded, seat.state) {
                (Some(reason), MemberState::Excluded) => seat.reason = reason,
                (Some(reason), _) => self.move_to(index, fact, MemberState::Excluded, reason),
                (None, MemberState::Excluded) => {
                    self.move_to(index, fact, MemberState::Pending, Reason::NeverMeasured);
                }
                (None, MemberState::Serving | MemberState::Recovering) if fact.is_down() => {
                    self.note_eviction(fact);
                    self.move_to(index, fact, MemberState::Lagging, Reason::Down);
                }
                (None, _) => {}
            }
        }
    }

    /// What is proven replaces what was found published.
    pub(super) fn note_proofs(&mut self) {
        let facts = self.context.facts.members.iter().zip(&self.readings);
        for (fact, _) in facts.filter(|(_, reading)| reading.bound.is_some()) {
            if let Some(seat) = self.service.seats.get_mut(&fact.name) {
                seat.inherited = None;
            }
        }
    }

    /// Those whose bound exceeds the limit leave, at the instant at which it does.
    pub(super) fn evict(&mut self) {
        let limit = self.service.settings.evict_above();
        for (index, fact) in self.context.facts.members.iter().enumerate() {
            let (true, Some(reading)) = (self.serves(fact) && !fact.is_kept(), self.readings.get(index).copied())
            else {
                continue;
            };
            let expired = reading.bound.is_none_or(|b| self.agenda.passed(b.within_until(limit)));
            let certain = self.context.facts.silent && reading.lower > limit;
            if expired || certain {
                let reason = self.cause(fact);
                self.note_eviction(fact);
                self.move_to(index, fact, MemberState::Lagging, reason);
            }
        }
    }

    /// Those within the admission mark recover, and return when dwell and spacing allow.
    pub(super) fn admit(&mut self) {
        let now = self.agenda.now();
        let imminent = self.eviction_is_imminent();
        for (index, fact) in self.context.facts.members.iter().enumerate() {
            let fresh = !fact.is_down() && self.is_fresh(index);
            let last = self.service.admitted;
            let Some(seat) = self.service.seats.get_mut(&fact.name) else {
                continue;
            };
            let next = match (seat.state, fresh) {
                (MemberState::Pending, true) if seat.rested(self.agenda) => MemberState::Serving,
                (MemberState::Lagging, true) => MemberState::Recovering,
                (MemberState::Recovering, false) => MemberState::Lagging,
                (MemberState::Recovering, true) if seat.ready(last, imminent, self.agenda) => MemberState::Serving,
                _ => continue,
            };
            let reason = if next == MemberState::Serving {
                Reason::CaughtUp
            } else {
                seat.reason
            };
            if next == MemberState::Recovering {
                seat.fresh_since = now;
                self.agenda.reached(now + seat.evictions.dwell(now));
            }
            self.move_to(index, fact, next, reason);
        }
    }

    /// Below the floor, caught-up replicas that only wait for their dwell beat any stale filler: freshest first.
    pub(super) fn waive_dwell(&mut self) {
        let now = self.agenda.now();
        let floor = self.service.settings.min_endpoints.max(1);
        let missing = floor.saturating_sub(self.service.serving().count());
        let mut waiting: Vec<(Duration, usize)> = Vec::new();
        if missing > 0 {
            for (index, fact) in self.context.facts.members.iter().enumerate() {
                let recovering = self
                    .service
                    .seats
                    .get(&fact.name)
                    .is_some_and(|s| s.state == MemberState::Recovering);
                let bound = self.readings.get(index).and_then(|r| r.bound).filter(|_| recovering);
                waiting.extend(bound.map(|b| (b.at(now), index)));
            }
        }
        waiting.sort_unstable();
        for (_, index) in waiting.into_iter().take(missing) {
            if let Some(fact) = self.context.facts.members.get(index) {
                self.move_to(index, fact, MemberState::Serving, Reason::CaughtUp);
            }
        }
    }

    /// Still below the floor: the fallback fills up.
    pub(super) fn fall_back(&mut self) {
        let serving = self.service.serving().count();
        self.service.filling = if serving >= self.service.settings.min_endpoints.max(1) {
            Filling::default()
        } else {
            let (candidates, primary) = (self.candidates(), self.primary_can_serve());
            fill(serving, &self.service.settings, candidates, primary)
        };
        for (index, fact) in self.context.facts.members.iter().enumerate() {
            let held = self.service.filling.held.contains(&fact.name);
            let Some(seat) = self.service.seats.get_mut(&fact.name).filter(|s| s.held != held) else {
                continue;
            };
            seat.held = held;
            let (state, reason) = (seat.state, if held { Reason::Held } else { seat.reason });
            self.tell(index, fact, state, state, reason);
        }
    }

    /// Who could fill up. The moment at which one gets too stale even for that is one to look again.
    fn candidates(&mut self) -> Vec<Candidate> {
        let (service, agenda) = (&*self.service, &mut *self.agenda);
        let facts = self.context.facts.members.iter().zip(&self.readings);
        facts
            .filter_map(|(fact, reading)| {
                let seat = service.seats.get(&fact.name)?;
                let idle = !matches!(seat.state, MemberState::Serving | MemberState::Excluded);
                if !idle || fact.is_down() {
                    return None;
                }
                let hard = service.settings.hard_max_staleness;
                let (upper, until) = match (reading.bound, seat.inherited) {
                    (Some(bound), _) => (bound.at(agenda.now()), bound.within_until(hard)),
                    (None, Some(since)) => (agenda.now().since(since), since + hard),
                    (None, None) => return None,
                };
                agenda.passed(until);
                Some(Candidate {
                    name: fact.name.clone(),
                    upper,
                    proven: reading.bound.is_some(),
                    answering: fact.contact == Contact::Answering,
                    held: seat.held,
                    in_last: service.last_fresh.contains(&fact.name),
                })
            })
            .collect()
    }

    /// While decisions are frozen, fillers stay as they are, but for those that cannot serve.
    pub(super) fn drop_unfit_fillers(&mut self) {
        let fit = |name: &MemberName| {
            let facts = &self.context.facts.members;
            facts
                .iter()
                .any(|f| f.name == *name && !f.is_down() && f.excluded.is_none())
        };
        self.service.filling.held.retain(fit);
        for (name, seat) in &mut self.service.seats {
            seat.held &= fit(name);
        }
        self.service.filling.primary &= !self.context.facts.unresolved;
    }

    /// The causes that people are told, for those whose state did not change.
    pub(super) fn explain(&mut self) {
        let now = self.agenda.now();
        for (index, fact) in self.context.facts.members.iter().enumerate() {
            let cause = self.cause(fact);
            let refused = self.context.members.get(&fact.name).is_some_and(|m| m.refusals() >= 2);
            let Some(seat) = self.service.seats.get_mut(&fact.name) else {
                continue;
            };
            let (state, told) = (seat.state, seat.reason);
            let again = match state {
                MemberState::Serving => {
                    let quiet = fact.is_blind() || refused;
                    seat.explain(fact.trouble.filter(|_| quiet).unwrap_or(Reason::CaughtUp), true, now)
                }
                MemberState::Pending | MemberState::Lagging => {
                    seat.explain(cause, fact.is_down() || told == Reason::NeverMeasured, now)
                }
                MemberState::Recovering | MemberState::Excluded => None,
            };
            let reason = seat.reason;
            if let Some(at) = again {
                self.agenda.reached(at);
            }
            if reason != told {
                self.tell(index, fact, state, state, reason);
            }
        }
    }

    /// Makes the list that of the members' states, when the budget allows a change. All changes of a turn are one.
    pub(super) fn commit(&mut self) {
        let service = &mut *self.service;
        let held = service.filling.held.iter();
        let mut endpoints: Vec<MemberName> = service.serving().chain(held).cloned().collect();
        let primary = self
            .context
            .source
            .primary
            .name()
            .or(self.context.source.incumbent.as_ref());
        endpoints.extend(primary.filter(|_| service.filling.primary).cloned());
        endpoints.sort();
        endpoints.dedup();
        if endpoints == service.decision.endpoints {
            return;
        }
        let evicts = service.decision.endpoints.iter().any(|name| !endpoints.contains(name));
        if !service.budget.take(evicts, self.agenda) {
            return;
        }
        let before = std::mem::replace(&mut service.decision.endpoints, endpoints);
        service.decision.number += 1;
        service.decision.decided = self.agenda.now();
        self.out.push(Transition::List {
            before,
            decision: service.decision.clone(),
        });
    }

    fn serves(&self, fact: &Fact) -> bool {
        self.service
            .seats
            .get(&fact.name)
            .is_some_and(|s| s.state == MemberState::Serving)
    }

    fn is_fresh(&mut self, index: usize) -> bool {
        let within = self.service.settings.admit_within();
        let Some(reading) = self.readings.get(index).copied() else {
            return false;
        };
        let certain = self.context.facts.silent && reading.lower > within;
        !certain
            && reading
                .bound
                .is_some_and(|b| !self.agenda.passed(b.within_until(within)))
    }

    /// An eviction is the replica's own when fewer than half of the replicas are near the limit at that moment.
    fn note_eviction(&mut self, fact: &Fact) {
        let (near, now) = (self.service.settings.admit_within(), self.agenda.now());
        let facts = self.context.facts.members.iter().zip(&self.readings);
        let replicas: Vec<&Reading> = facts.filter(|(f, _)| f.excluded.is_none()).map(|(_, r)| r).collect();
        let behind = replicas
            .iter()
            .filter(|r| r.bound.is_none_or(|b| b.at(now) > near))
            .count();
        let own = behind * 2 < replicas.len() || replicas.len() == 1;
        if let Some(seat) = self.service.seats.get_mut(&fact.name).filter(|_| own) {
            seat.evictions.note(now);
        }
    }

    /// The data plane applies a second change only about a second after the first, so an admission just before an
    /// eviction would delay the eviction.
    fn eviction_is_imminent(&self) -> bool {
        let (renewal, limit) = (self.context.settings.renewal(), self.service.settings.evict_above());
        let now = self.agenda.now();
        let facts = self.context.facts.members.iter().zip(&self.readings);
        facts
            .filter(|(fact, _)| self.serves(fact) && !fact.is_kept())
            .any(|(_, reading)| {
                let overdue = reading.bound.filter(|b| b.at(now) > renewal);
                overdue.is_some_and(|b| b.within_until(limit) < now + IMMINENT)
            })
    }

    fn primary_can_serve(&self) -> bool {
        let Some(name) = self.context.source.primary.name() else {
            return false;
        };
        let fact = self.context.facts.members.iter().find(|f| f.name == *name);
        fact.is_some_and(|f| !f.is_down() && f.excluded == Some(Reason::RoleChanged)) && !self.context.facts.silent
    }

    fn cause(&self, fact: &Fact) -> Reason {
        let Some(member) = self.context.members.get(&fact.name) else {
            return Reason::NeverMeasured;
        };
        cause::of(
            member,
            fact,
            self.context.source,
            self.context.settings,
            self.agenda.now(),
        )
    }

    fn move_to(&mut self, index: usize, fact: &Fact, to: MemberState, reason: Reason) {
        let now = self.agenda.now();
        let Some(seat) = self.service.seats.get_mut(&fact.name) else {
            return;
        };
        let from = seat.state;
        seat.enter(to, reason, now);
        if to == MemberState::Serving {
            seat.admitted = Some(now);
            self.service.admitted = Some(now);
        }
        self.tell(index, fact, from, to, reason);
    }

    fn tell(&mut self, index: usize, fact: &Fact, from: MemberState, to: MemberState, reason: Reason) {
        let now = self.agenda.now();
        let settings = &self.service.settings;
        let returns = matches!(to, MemberState::Serving | MemberState::Recovering);
        self.out.push(Transition::Member {
            service: settings.name.clone(),
            member: fact.name.clone(),
            from,
            to,
            reason,
            bound: self.readings.get(index).and_then(|r| r.bound).map(|b| b.at(now)),
            limit: if returns {
                settings.admit_within()
            } else {
                settings.evict_above()
            },
        });
    }
}
