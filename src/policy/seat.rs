//! One member's place in one service: its state, why, and since when.

use std::sync::Arc;
use std::time::Duration;

use super::agenda::Agenda;
use super::damping::{DWELL, Evictions, LONG_OUT, PATIENCE, SPACING, SPACING_LONG};
use super::moment::Moment;
use super::reason::Reason;
use super::state::MemberState;

/// How long another cause must last before it replaces the one that people were told.
const SETTLED: Duration = Duration::from_secs(2);

/// A member's place in one service.
#[derive(Clone, Debug)]
pub struct Seat {
    /// The uid of the member it belongs to.
    pub uid: Arc<str>,
    /// Where it stands.
    pub state: MemberState,
    /// Why.
    pub reason: Reason,
    /// Since when it stands there.
    pub since: Moment,
    /// In the list by floor or fallback.
    pub held: bool,
    /// Since when it is within the admission mark, while it recovers.
    pub fresh_since: Moment,
    /// Since when it is out of the list.
    pub out_since: Moment,
    /// When it last entered the list by freshness.
    pub admitted: Option<Moment>,
    /// Since when only an imminent eviction keeps it out.
    pub waiting_since: Option<Moment>,
    /// Its evictions of its own.
    pub evictions: Evictions,
    /// When it was found in the published list, while nothing has been proven of it since.
    pub inherited: Option<Moment>,
    other: Option<(Reason, Moment)>,
}

impl Seat {
    /// The place of a member that has just joined.
    pub fn new(uid: Arc<str>, now: Moment) -> Self {
        Self {
            uid,
            state: MemberState::Pending,
            reason: Reason::NeverMeasured,
            since: now,
            held: false,
            fresh_since: now,
            out_since: now,
            admitted: None,
            waiting_since: None,
            evictions: Evictions::default(),
            inherited: None,
            other: None,
        }
    }

    /// Enters `state` for `reason`.
    pub fn enter(&mut self, state: MemberState, reason: Reason, now: Moment) {
        if self.state == MemberState::Serving && state != MemberState::Serving {
            self.out_since = now;
        }
        self.state = state;
        self.reason = reason;
        self.since = now;
        self.waiting_since = None;
        self.other = None;
    }

    /// The cause is `reason` now. People are told when it has lasted, at once when it is a matter of fact. Answers when
    /// to look again, if at all.
    pub fn explain(&mut self, reason: Reason, at_once: bool, now: Moment) -> Option<Moment> {
        if reason == self.reason {
            self.other = None;
            return None;
        }
        let since = match self.other {
            Some((other, since)) if other == reason => since,
            _ => now,
        };
        if at_once || now >= since + SETTLED {
            self.reason = reason;
            self.other = None;
            return None;
        }
        self.other = Some((reason, since));
        Some(since + SETTLED)
    }

    /// Whether a member that served before has been out for the shortest dwell.
    pub fn rested(&self, agenda: &mut Agenda) -> bool {
        self.admitted.is_none_or(|at| agenda.reached(at + DWELL))
    }

    /// Whether a recovering member may enter: dwell done, spaced from the `last` admission of its service, and no eviction
    /// about to come.
    pub fn ready(&mut self, last: Option<Moment>, imminent: bool, agenda: &mut Agenda) -> bool {
        let now = agenda.now();
        let spacing = if now.since(self.out_since) > LONG_OUT {
            SPACING_LONG
        } else {
            SPACING
        };
        let dwelt = agenda.reached(self.fresh_since + self.evictions.dwell(now));
        if !dwelt || !last.is_none_or(|at| agenda.reached(at + spacing)) {
            return false;
        }
        if imminent {
            let since = *self.waiting_since.get_or_insert(now);
            return agenda.reached(since + PATIENCE);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_cause_is_told_when_it_has_lasted() {
        let at = Moment::from_millis;
        let mut seat = Seat::new("1".into(), at(0));
        seat.enter(MemberState::Lagging, Reason::ApplyLag, at(0));
        assert_eq!(seat.explain(Reason::Stalled, false, at(100)), Some(at(2100)));
        assert_eq!(seat.explain(Reason::ApplyLag, false, at(200)), None);
        assert_eq!(seat.explain(Reason::Stalled, false, at(300)), Some(at(2300)));
        assert_eq!(seat.reason, Reason::ApplyLag);
        seat.explain(Reason::Stalled, false, at(2300));
        assert_eq!(seat.reason, Reason::Stalled);
        seat.explain(Reason::Down, true, at(2301));
        assert_eq!(seat.reason, Reason::Down);
    }
}
