//! When to look again.
//!
//! Every comparison of the present with a threshold goes through an [`Agenda`], which remembers the nearest threshold that
//! is still ahead. So the next wake-up cannot miss one, and nobody polls.

use super::moment::Moment;

/// The present, and the nearest moment at which something may change by itself.
#[derive(Debug)]
pub struct Agenda {
    now: Moment,
    next: Option<Moment>,
}

impl Agenda {
    /// An agenda for a look at `now`.
    pub fn at(now: Moment) -> Self {
        Self { now, next: None }
    }

    /// The present.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Whether `at` is reached; if not, it is a moment to look again.
    pub fn reached(&mut self, at: Moment) -> bool {
        if self.now >= at {
            return true;
        }
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
        false
    }

    /// Whether `at` has passed, so that a limit that ends there is exceeded; if not, the instant after it is a moment to
    /// look again.
    pub fn passed(&mut self, at: Moment) -> bool {
        self.reached(Moment::from_nanos(at.as_nanos().saturating_add(1)))
    }

    /// The nearest threshold that was asked for and is not reached.
    pub fn next(&self) -> Option<Moment> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_threshold_ahead_is_remembered() {
        let mut agenda = Agenda::at(Moment::from_millis(10));
        assert!(agenda.reached(Moment::from_millis(10)));
        assert!(!agenda.passed(Moment::from_millis(10)));
        assert_eq!(agenda.next(), Some(Moment::from_nanos(10_000_001)));
        assert!(!agenda.reached(Moment::from_millis(50)));
        assert_eq!(agenda.next(), Some(Moment::from_nanos(10_000_001)));
        assert!(agenda.passed(Moment::from_millis(9)));
    }
}
