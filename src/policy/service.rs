//! One service's machine: the order of `decide` is the order of the policy.
//!
//! ```text
//!  Pending --bound <= T_in--> Serving --bound > T_out--> Lagging --bound <= T_in--> Recovering --dwell, spacing--> Serving
//!                                                           ^--------bound > T_in--------'
//!  Excluded: from any state and back to Pending
//! ```

use std::collections::BTreeMap;

use super::agenda::Agenda;
use super::damping::WriteBudget;
use super::facts::{Fact, Facts, Reach};
use super::member::MemberName;
use super::moment::Moment;
use super::primary::Members;
use super::reason::Reason;
use super::seat::Seat;
use super::selection::Filling;
use super::settings::{OnPrimarySilent, PoolSettings, ServiceSettings};
use super::source::Source;
use super::state::{MemberState, ServiceState};
use super::transition::{Decision, Transition};
use super::turn::Turn;

/// What a step knows, the same for every service.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The members.
    pub members: &'a Members,
    /// The primary.
    pub source: &'a Source,
    /// How silence is read.
    pub facts: &'a Facts,
    /// The pool's settings.
    pub settings: &'a PoolSettings,
    /// Whether some member was never judged and the process is young.
    pub cold: bool,
}

/// One service.
#[derive(Clone, Debug)]
pub struct Service {
    /// What it declares.
    pub settings: ServiceSettings,
    /// Each member's place in it.
    pub seats: BTreeMap<MemberName, Seat>,
    /// How it is decided.
    pub state: ServiceState,
    /// Since when.
    pub since: Moment,
    /// Who is in.
    pub decision: Decision,
    /// What floor and fallback add.
    pub(super) filling: Filling,
    /// The last list that needed no fallback.
    pub(super) last_fresh: Vec<MemberName>,
    /// When anybody was last admitted.
    pub(super) admitted: Option<Moment>,
    /// How many writes are left.
    pub(super) budget: WriteBudget,
}

impl Service {
    /// A service of which nothing is published.
    pub fn new(settings: ServiceSettings, now: Moment) -> Self {
        let decision = Decision {
            service: settings.name.clone(),
            endpoints: Vec::new(),
            number: 0,
            decided: now,
        };
        Self {
            settings,
            seats: BTreeMap::new(),
            state: ServiceState::ColdStart,
            since: now,
            decision,
            filling: Filling::default(),
            last_fresh: Vec::new(),
            admitted: None,
            budget: WriteBudget::new(),
        }
    }

    /// Takes over what is published: whoever is in it serves until evidence speaks against it, and whoever is not must
    /// earn its way back. So a new leader flips nothing.
    pub fn adopt(&mut self, endpoints: &[MemberName], now: Moment) {
        let mut endpoints = endpoints.to_vec();
        endpoints.sort();
        endpoints.dedup();
        for (name, seat) in &mut self.seats {
            let listed = endpoints.contains(name);
            seat.inherited = listed.then_some(now);
            match seat.state {
                MemberState::Pending | MemberState::Recovering if listed => {
                    seat.enter(MemberState::Serving, seat.reason, now);
                }
                MemberState::Serving if !listed => {
                    seat.enter(MemberState::Recovering, seat.reason, now);
                    seat.fresh_since = now;
                }
                MemberState::Pending
                | MemberState::Serving
                | MemberState::Lagging
                | MemberState::Recovering
                | MemberState::Excluded => {}
            }
        }
        self.decision.endpoints = endpoints;
    }

    /// Decides anew, in the order of the policy. What changed is added to `out`.
    pub fn decide(&mut self, context: Context<'_>, agenda: &mut Agenda, out: &mut Vec<Transition>) {
        if context.settings.paused {
            return self.become_state(ServiceState::Paused, agenda.now(), out);
        }
        self.seat(context, agenda.now());
        if context.cold {
            return self.become_state(ServiceState::ColdStart, agenda.now(), out);
        }
        let frozen = context.facts.reach == Reach::Isolated || context.facts.unresolved;
        let mut turn = Turn::new(self, context, agenda, out);
        turn.apply_facts();
        if frozen {
            turn.drop_unfit_fillers();
        } else {
            turn.note_proofs();
            turn.evict();
            turn.admit();
            turn.waive_dwell();
            turn.fall_back();
            turn.explain();
        }
        turn.commit();
        let state = self.classify(context);
        self.become_state(state, agenda.now(), out);
    }

    fn seat(&mut self, context: Context<'_>, now: Moment) {
        self.seats
            .retain(|name, seat| context.members.get(name).is_some_and(|m| m.input.uid == seat.uid));
        for (name, member) in context.members {
            if !self.seats.contains_key(name) {
                let mut seat = Seat::new(member.input.uid.clone(), now);
                // Found in what is published at the start: it serves until evidence speaks against it.
                if context.cold && self.decision.endpoints.contains(name) {
                    seat.state = MemberState::Serving;
                    seat.inherited = Some(now);
                }
                self.seats.insert(name.clone(), seat);
            }
        }
    }

    fn classify(&mut self, context: Context<'_>) -> ServiceState {
        let by = self
            .filling
            .by
            .filter(|_| self.filling.primary || !self.filling.held.is_empty());
        if by.is_none() && !self.decision.endpoints.is_empty() {
            self.last_fresh.clone_from(&self.decision.endpoints);
        }
        let out = self.seats.iter().any(|(name, seat)| {
            let is_primary = context.source.primary.name() == Some(name);
            !is_primary && (seat.state != MemberState::Serving || seat.reason != Reason::CaughtUp)
        });
        let kept = context.facts.members.iter().any(Fact::is_kept);
        if context.facts.reach == Reach::Isolated {
            ServiceState::ControllerIsolated
        } else if context.facts.unresolved || kept {
            ServiceState::Frozen
        } else if self.decision.endpoints.is_empty() {
            ServiceState::Exhausted
        } else if let Some(policy) = by {
            ServiceState::Fallback(policy)
        } else if context.facts.silent && self.settings.on_primary_silent == OnPrimarySilent::Hold {
            ServiceState::PrimarySilent
        } else if out || self.decision.endpoints.len() < self.settings.min_endpoints {
            ServiceState::Degraded
        } else {
            ServiceState::Normal
        }
    }

    fn become_state(&mut self, state: ServiceState, now: Moment, out: &mut Vec<Transition>) {
        if state == self.state {
            return;
        }
        let from = std::mem::replace(&mut self.state, state);
        self.since = now;
        out.push(Transition::Service {
            service: self.settings.name.clone(),
            from,
            to: state,
        });
    }

    /// Who is in by freshness.
    pub(super) fn serving(&self) -> impl Iterator<Item = &MemberName> {
        let serving = self.seats.iter().filter(|(_, seat)| seat.state == MemberState::Serving);
        serving.map(|(name, _)| name)
    }
}
