//! Damping: how soon a replica that was out may return, and how often a list may change.
//!
//! A replica's own trouble is *idiosyncratic* when fewer than half of the pool is behind at that moment: it waits longer
//! with each repetition. When half the pool lags at once the cause is upstream, and keeping caught-up replicas out of a
//! list that needs them would only overload the primary.
//!
//! | evictions of its own in the last 5 minutes | dwell |
//! | --- | --- |
//! | 0 or 1 | 1 s |
//! | 2 | 2 s |
//! | 5 | 16 s |
//! | 7 and more | 60 s |

use std::time::Duration;

use super::agenda::Agenda;
use super::moment::Moment;

/// The shortest dwell.
pub const DWELL: Duration = Duration::from_secs(1);
/// The longest dwell.
pub const DWELL_MAX: Duration = Duration::from_secs(60);
/// How long an eviction is remembered.
pub const MEMORY: Duration = Duration::from_secs(300);
/// The least time between two admissions of a service.
pub const SPACING: Duration = Duration::from_millis(500);
/// The same for a replica that was out for longer than [`LONG_OUT`]: its caches are cold.
pub const SPACING_LONG: Duration = Duration::from_secs(10);
/// See [`SPACING_LONG`].
pub const LONG_OUT: Duration = Duration::from_secs(300);
/// How long an admission waits for an eviction that is about to come.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// An eviction that would come within this is about to.
pub const IMMINENT: Duration = Duration::from_secs(1);

/// A replica's evictions of its own that are still remembered.
#[derive(Clone, Default, Debug)]
pub struct Evictions(Vec<Moment>);

impl Evictions {
    /// More than these change no dwell: 2^6 s is beyond the longest.
    const MOST: usize = 8;

    /// Notes an eviction.
    pub fn note(&mut self, now: Moment) {
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(now);
    }

    /// How long the replica must be fresh before it may return.
    pub fn dwell(&self, now: Moment) -> Duration {
        let recent = self.0.iter().filter(|at| now.since(**at) < MEMORY).count();
        let doublings = u32::try_from(recent.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
        (DWELL * 2_u32.pow(doublings)).min(DWELL_MAX)
    }
}

/// How often a list may be written: five times a second, with a reserve of ten.
#[derive(Clone, Debug)]
pub struct WriteBudget {
    /// When the reserve would be full again.
    full_at: Moment,
}

impl WriteBudget {
    const EACH: Duration = Duration::from_millis(200);
    const BURST: u32 = 10;

    /// A full budget.
    pub fn new() -> Self {
        Self {
            full_at: Moment::ORIGIN,
        }
    }

    /// Takes one write, when there is one left. An admission leaves the last one to evictions.
    pub fn take(&mut self, evicts: bool, agenda: &mut Agenda) -> bool {
        let reserve = if evicts { Self::BURST } else { Self::BURST - 1 };
        let allowed_from = self.full_at.before(Self::EACH * (reserve - 1));
        if !agenda.reached(allowed_from) {
            return false;
        }
        self.full_at = self.full_at.max(agenda.now()) + Self::EACH;
        true
    }
}

impl Default for WriteBudget {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(n: u64) -> Moment {
        Moment::from_millis(n * 1000)
    }

    /// The rows of the module's table.
    #[test]
    fn the_dwell_doubles_with_each_eviction() {
        for (count, dwell) in [(0, 1), (1, 1), (2, 2), (5, 16), (6, 32), (7, 60), (20, 60)] {
            let mut evictions = Evictions::default();
            for at in 0..count {
                evictions.note(s(at));
            }
            assert_eq!(evictions.dwell(s(20)), Duration::from_secs(dwell), "{count} evictions");
        }
    }

    #[test]
    fn evictions_are_forgotten() {
        let mut evictions = Evictions::default();
        for at in 0..3 {
            evictions.note(s(at));
        }
        assert_eq!(evictions.dwell(s(299)), Duration::from_secs(4));
        assert_eq!(evictions.dwell(s(300)), Duration::from_secs(2));
        assert_eq!(evictions.dwell(s(302)), DWELL);
    }

    #[test]
    fn the_last_write_is_for_evictions() {
        let mut budget = WriteBudget::new();
        let mut agenda = Agenda::at(s(100));
        for n in 0..9 {
            assert!(budget.take(false, &mut agenda), "admission {n}");
        }
        assert!(!budget.take(false, &mut agenda));
        assert!(budget.take(true, &mut agenda));
        assert!(!budget.take(true, &mut agenda));
        let again = agenda.next().unwrap();
        assert_eq!(again, Moment::from_millis(100_200));
        assert!(budget.take(true, &mut Agenda::at(again)));
    }
}
