//! The whole machine: facts in, decisions out.
//!
//! [`Pool::step`] takes one event and the present moment, and returns what changed and when to look again. It is a function
//! of the events alone: the same events give the same decisions, bit for bit, on any machine and at any speed.

use super::agenda::Agenda;
use super::facts::{Blindness, Facts};
use super::member::{Member, MemberInput, MemberName};
use super::moment::Moment;
use super::primary::{self, Members, Primary};
use super::service::{Context, Service};
use super::settings::{PoolSettings, ServiceName};
use super::sighting::{Observation, Outcome, Role};
use super::source::Source;
use super::transition::{Decision, Transition};

/// One fact that reaches the pool.
#[derive(Clone, Debug)]
pub enum Event {
    /// What the pool declares changed.
    Settings(PoolSettings),
    /// Who belongs to it changed: the whole list.
    Members(Vec<MemberInput>),
    /// A member was asked.
    Observed {
        /// The member that was asked. An answer of a former member changes nothing.
        member: MemberName,
        /// Its uid when the question was sent.
        uid: std::sync::Arc<str>,
        /// What came of it.
        observation: Observation,
    },
    /// What is published was found or taken over: the whole list of one service.
    Adopted {
        /// The service.
        service: ServiceName,
        /// Who is in, by name.
        endpoints: Vec<MemberName>,
    },
    /// Nothing but time passed.
    Tick,
}

/// What a step came to.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Step {
    /// What changed, in the order in which it was decided.
    pub transitions: Vec<Transition>,
    /// When to step again at the latest; absent when only an event can change anything.
    pub wake: Option<Moment>,
    /// Whether the primary should be asked to make what it has durable, once.
    pub nudge: bool,
}

/// A pool of servers and the read Services decided from it.
#[derive(Clone, Debug)]
pub struct Pool {
    pub(super) settings: PoolSettings,
    pub(super) members: Members,
    pub(super) source: Source,
    pub(super) services: Vec<Service>,
    pub(super) facts: Facts,
    blindness: Blindness,
    started: Moment,
    warm: bool,
}

impl Pool {
    /// A pool that knows nothing yet.
    pub fn new(settings: PoolSettings, now: Moment) -> Self {
        let services = settings.services.iter().map(|s| Service::new(s.clone(), now)).collect();
        Self {
            settings,
            members: Members::new(),
            source: Source::default(),
            services,
            facts: Facts::nothing(),
            blindness: Blindness::default(),
            started: now,
            warm: false,
        }
    }

    /// Takes `event` in, as of `now`, and decides.
    pub fn step(&mut self, event: Event, now: Moment) -> Step {
        let mut step = Step::default();
        match event {
            Event::Settings(settings) => self.set(settings, now),
            Event::Members(inputs) => self.enroll(inputs, now),
            Event::Observed {
                member,
                uid,
                observation,
            } => self.observe(&member, &uid, &observation),
            Event::Adopted { service, endpoints } => {
                if let Some(service) = self.services.iter_mut().find(|s| s.settings.name == service) {
                    service.adopt(&endpoints, now);
                }
            }
            Event::Tick => {}
        }
        let mut agenda = Agenda::at(now);
        self.resolve(&mut step.transitions);
        let facts = Facts::gather(
            &self.members,
            &self.source,
            &self.settings,
            &mut self.blindness,
            &mut agenda,
        );
        facts.compare(&self.facts, &mut step.transitions);
        let cold = self.is_cold(&mut agenda);
        let context = Context {
            members: &self.members,
            source: &self.source,
            facts: &facts,
            settings: &self.settings,
            cold,
        };
        for service in &mut self.services {
            service.decide(context, &mut agenda, &mut step.transitions);
        }
        step.nudge = self.source.nudge(&mut agenda, &self.settings);
        step.wake = agenda.next();
        self.facts = facts;
        step
    }

    /// The present decisions, one for each service.
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.services.iter().map(|s| &s.decision)
    }

    /// The member that is to be asked as the primary.
    pub fn primary(&self) -> &Primary {
        &self.source.primary
    }

    fn set(&mut self, settings: PoolSettings, now: Moment) {
        let mut old = std::mem::take(&mut self.services);
        for declared in &settings.services {
            let known = old.iter().position(|s| s.settings.name == declared.name);
            self.services.push(match known.map(|i| old.swap_remove(i)) {
                Some(mut service) => {
                    service.settings = declared.clone();
                    service
                }
                None => Service::new(declared.clone(), now),
            });
        }
        self.settings = settings;
    }

    fn enroll(&mut self, inputs: Vec<MemberInput>, now: Moment) {
        self.members
            .retain(|name, m| inputs.iter().any(|i| i.name == *name && i.uid == m.input.uid));
        for input in inputs {
            match self.members.get_mut(&input.name) {
                Some(member) => member.input = input,
                None => {
                    self.members.insert(input.name.clone(), Member::new(input, now));
                }
            }
        }
    }

    fn observe(&mut self, name: &MemberName, uid: &str, observation: &Observation) {
        let timeline = self.source.timeline();
        let Some(member) = self.members.get_mut(name).filter(|m| *m.input.uid == *uid) else {
            return;
        };
        member.observe(observation, timeline);
        let Outcome::Seen(sighting) = &observation.outcome else {
            return;
        };
        if sighting.role == Role::Replica {
            self.source.witness(member, observation.answered, &self.settings);
            return;
        }
        self.resolve_quietly();
        if self.source.primary.name() == Some(name) && self.source.cluster == Some(sighting.history.cluster) {
            self.source
                .observe(sighting, observation, &mut self.members, &self.settings);
        }
    }

    fn resolve(&mut self, out: &mut Vec<Transition>) {
        let from = self.source.told.clone();
        self.resolve_quietly();
        if self.source.primary != from {
            self.source.told = self.source.primary.clone();
            out.push(Transition::Primary {
                from,
                to: self.source.primary.clone(),
            });
        }
    }

    fn resolve_quietly(&mut self) {
        self.source.cluster = primary::cluster(&self.members, self.source.cluster);
        if let Some(name) = self.source.primary.name() {
            self.source.incumbent = Some(name.clone());
        }
        self.source.primary = primary::resolve(
            &self.members,
            &self.settings.detection,
            self.source.cluster,
            self.source.incumbent.as_ref(),
        );
    }

    fn is_cold(&mut self, agenda: &mut Agenda) -> bool {
        let judged = self.members.values().all(|m| m.judged) && !self.members.is_empty();
        // One that follows a little behind does not hold the first sample yet, and is not stale for that.
        let seats = self.services.iter().flat_map(|s| &s.seats);
        let unproven = seats.filter(|(_, seat)| seat.inherited.is_some()).any(|(name, _)| {
            let member = self.members.get(name);
            member.is_some_and(|m| m.answers() && !m.claims_primary() && m.lease.is_none())
        });
        self.warm |= (judged && !unproven) || agenda.reached(self.started + self.settings.cold_start());
        !self.warm
    }
}
