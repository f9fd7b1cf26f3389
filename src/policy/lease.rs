//! The lease: what one answer proves about the future.
//!
//! A replica that showed position k holds everything the primary had committed before the sample that returned k was
//! *sent*, at `reference`. So at every later `t` of the same history its staleness is at most `t - reference`. The bound
//! grows by itself: no bad news is needed for it to reach a limit, and a probe that hangs cannot keep a replica in.
//!
//! | answer at 1.000 s shows | newest sample it contains was sent at | bound at 1.000 s | at 1.400 s without news |
//! | --- | --- | --- | --- |
//! | the newest sample | 0.950 s | 50 ms | 450 ms |
//! | one before a pause | 0.100 s | 900 ms | 1.3 s |
//!
//! The lower bound says how far behind it certainly was: a position it lacked, known to exist before the question was
//! asked. It does not grow between answers, because the replica may have caught up meanwhile, unless there is evidence
//! that it stopped.

use std::time::Duration;

use super::moment::Moment;
use super::position::Position;
use super::timeline::Timeline;

/// What the newest proof says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Everything committed before this moment is there.
    pub reference: Moment,
    /// What was proven, in terms of the primary's history.
    pub proven: Position,
}

impl Lease {
    /// What `proven` is worth on `timeline`; absent when it is older than everything known of the primary.
    pub fn on(timeline: &Timeline, proven: Position) -> Option<Self> {
        let reference = timeline.floor(&proven)?.sent?;
        Some(Self { reference, proven })
    }

    /// The better of two leases of the same history.
    pub fn or(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.reference > self.reference => other,
            _ => self,
        }
    }
}

/// An upper bound of staleness as a function of time: `base`, and from `grows_after` on one second per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The bound up to `grows_after`.
    pub base: Duration,
    /// From here on the bound rises with the clock.
    pub grows_after: Moment,
}

impl Bound {
    /// The bound that a lease gives: the age of its reference.
    pub fn absolute(lease: &Lease) -> Self {
        Self {
            base: Duration::ZERO,
            grows_after: lease.reference,
        }
    }

    /// The bound at `now`.
    pub fn at(self, now: Moment) -> Duration {
        self.base.saturating_add(now.since(self.grows_after))
    }

    /// The last moment at which the bound is within `limit`; the origin when it never was.
    pub fn within_until(self, limit: Duration) -> Moment {
        match limit.checked_sub(self.base) {
            Some(rest) => self.grows_after + rest,
            None => Moment::ORIGIN,
        }
    }

    /// The smaller of two bounds at `now`.
    pub fn min(self, other: Self, now: Moment) -> Self {
        if other.at(now) < self.at(now) { other } else { self }
    }
}

/// How far behind a replica certainly was when it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lower {
    /// The primary was known to have what the replica lacked.
    since: Moment,
    asked: Moment,
    stopped: bool,
}

impl Lower {
    /// What an answer to a question asked at `asked` that showed `shown` says; absent when nothing was certainly missing.
    /// `stopped` is evidence that the replica does not advance by itself.
    pub fn on(timeline: &Timeline, shown: &Position, asked: Moment, stopped: bool) -> Option<Self> {
        let since = timeline.above(shown)?.answered;
        (since < asked).then_some(Self { since, asked, stopped })
    }

    /// The lower bound at `now`.
    pub fn at(self, now: Moment) -> Duration {
        if self.stopped { now } else { self.asked }.since(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::position::{ClusterId, History, Lsn};

    fn lsn(n: u64) -> Position {
        Position::Lsn(Lsn(n))
    }

    fn ms(n: u64) -> Moment {
        Moment::from_millis(n)
    }

    fn timeline() -> Timeline {
        let mut timeline = Timeline::new(History {
            cluster: ClusterId(1),
            timeline: 1,
        });
        for k in 0..10 {
            timeline.record(lsn(100 + k), ms(50 + 100 * k), ms(52 + 100 * k));
        }
        timeline
    }

    /// The rows of the module's table.
    #[test]
    fn a_bound_is_the_age_of_the_newest_contained_sample() {
        for (shown, first, later) in [(109, 50, 450), (100, 950, 1350)] {
            let bound = Bound::absolute(&Lease::on(&timeline(), lsn(shown)).unwrap());
            assert_eq!(bound.at(ms(1000)), Duration::from_millis(first), "position {shown}");
            assert_eq!(bound.at(ms(1400)), Duration::from_millis(later), "position {shown}");
        }
        assert_eq!(Lease::on(&timeline(), lsn(99)), None, "older than everything known");
    }

    /// K-54: at the limit a bound is within it, and not a moment later.
    #[test]
    fn a_bound_reaches_its_limit_without_news() {
        let bound = Bound {
            base: Duration::from_millis(300),
            grows_after: ms(1000),
        };
        assert_eq!(bound.within_until(Duration::from_secs(2)), ms(2700));
        assert_eq!(bound.at(ms(2700)), Duration::from_secs(2));
        assert!(bound.at(ms(2700) + Duration::from_nanos(1)) > Duration::from_secs(2));
        assert_eq!(bound.within_until(Duration::from_millis(200)), Moment::ORIGIN);
    }

    #[test]
    fn a_lower_bound_grows_only_with_evidence_of_a_stop() {
        let known = timeline();
        let moving = Lower::on(&known, &lsn(105), ms(1000), false).unwrap();
        let stopped = Lower::on(&known, &lsn(105), ms(1000), true).unwrap();
        // Position 106 was known at 652 ms.
        assert_eq!(moving.at(ms(1500)), Duration::from_millis(348));
        assert_eq!(stopped.at(ms(1500)), Duration::from_millis(848));
        assert_eq!(
            Lower::on(&known, &lsn(109), ms(1000), false),
            None,
            "it lacks nothing known"
        );
        assert_eq!(
            Lower::on(&known, &lsn(105), ms(652), false),
            None,
            "it may have been asked before"
        );
    }
}
