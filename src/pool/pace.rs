//! When questions are asked: all members of a pool on one beat.
//!
//! The primary is sampled on the beat, and every replica is asked shortly after it ([`AFTER`]), so that its answer is held
//! against a position that is that young and not up to a period old. Questions that are due at once also wake the process
//! once. Each pool has a beat of its own, so that many pools do not ask all at once.

use std::time::Duration;

use crate::engine::Duty;
use crate::policy::moment::Moment;
use crate::policy::settings::Periods;

/// How long after the primary its replicas are asked, at the most; at short periods a quarter of one.
const AFTER: Duration = Duration::from_millis(25);

/// The beat of one pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pace {
    /// A moment on the beat.
    origin: Moment,
    /// How often who is asked, and how long an answer is waited for.
    pub(super) periods: Periods,
}

impl Pace {
    /// A beat of its own, from `now` on.
    pub(super) fn new(now: Moment, periods: Periods) -> Self {
        Self {
            origin: now + periods.sample.mul_f64(fastrand::f64()),
            periods,
        }
    }

    /// Between two questions of this duty.
    pub(super) fn period(&self, duty: Duty) -> Duration {
        match duty {
            Duty::Sample => self.periods.sample,
            Duty::Probe => self.periods.probe,
        }
    }

    /// The next moment to ask after `asked`.
    pub(super) fn next(&self, duty: Duty, asked: Moment) -> Moment {
        let period = self.period(duty);
        let first = match duty {
            Duty::Sample => self.origin,
            Duty::Probe => self.origin + AFTER.min(period / 4),
        };
        if asked < first {
            return first.min(asked + period);
        }
        let since = u64::try_from(asked.since(first).as_nanos()).unwrap_or(u64::MAX);
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        Moment::from_nanos(
            first
                .as_nanos()
                .saturating_add((since / period + 1).saturating_mul(period)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(sample: u64, probe: u64) -> Pace {
        Pace {
            origin: Moment::from_millis(1_000),
            periods: Periods {
                sample: Duration::from_millis(sample),
                probe: Duration::from_millis(probe),
                timeout: Duration::from_secs(1),
            },
        }
    }

    #[test]
    fn a_late_question_does_not_move_the_next() {
        let pace = pace(100, 100);
        let next = |duty, asked| pace.next(duty, Moment::from_millis(asked));
        for asked in [1_300, 1_301, 1_399] {
            assert_eq!(next(Duty::Sample, asked), Moment::from_millis(1_400), "{asked}");
        }
        for asked in [1_325, 1_326, 1_424] {
            assert_eq!(next(Duty::Probe, asked), Moment::from_millis(1_425), "{asked}");
        }
    }

    #[test]
    fn every_question_is_within_a_period_of_the_last() {
        for (sample, probe) in [(100, 100), (50, 500), (500, 50), (20, 20), (10_000, 10_000)] {
            let pace = pace(sample, probe);
            for duty in [Duty::Sample, Duty::Probe] {
                let mut asked = Moment::ORIGIN;
                for _ in 0..1_000 {
                    let next = pace.next(duty, asked);
                    assert!(
                        next > asked && next.since(asked) <= pace.period(duty),
                        "{asked:?}: {next:?}"
                    );
                    asked = next + Duration::from_micros(fastrand::u64(0..1_000));
                }
            }
        }
    }

    #[test]
    fn replicas_are_asked_soon_after_the_primary() {
        for (period, after) in [(20, 5), (100, 25), (1_000, 25)] {
            let pace = pace(period, period);
            let sample = pace.next(Duty::Sample, Moment::from_millis(5_000));
            let probe = pace.next(Duty::Probe, sample);
            assert_eq!(probe.since(sample), Duration::from_millis(after));
        }
    }
}
