//! The one place that reads a clock.
//!
//! Decisions use [`Clock::now`], a monotonic clock that no step of the wall clock touches. [`Clock::wall`] is for people
//! and for the API server's timestamps; nothing is ever decided by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::policy::moment::Moment;

/// A process's clock. Clones share its origin.
#[derive(Clone, Debug)]
pub struct Clock {
    origin: Instant,
    wall_offset: Arc<AtomicI64>,
}

impl Clock {
    /// A clock whose origin is now. Under a paused tokio runtime it follows the paused time.
    #[expect(clippy::disallowed_methods, reason = "this module is the one that reads clocks")]
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
            wall_offset: Arc::default(),
        }
    }

    /// The present moment.
    #[expect(clippy::disallowed_methods, reason = "this module is the one that reads clocks")]
    pub fn now(&self) -> Moment {
        let nanos = Instant::now().saturating_duration_since(self.origin).as_nanos();
        Moment::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The instant at which `moment` is reached, for timers.
    pub fn instant(&self, moment: Moment) -> Instant {
        self.origin + moment.since(Moment::ORIGIN)
    }

    /// The time of day, in UTC.
    pub fn wall(&self) -> Timestamp {
        let offset = SignedDuration::from_millis(self.wall_offset.load(Ordering::Relaxed));
        let now = Timestamp::now();
        now.checked_add(offset).unwrap_or(now)
    }

    /// Steps the wall clock of this clock and its clones by `millis`, as a time daemon or a person may step the host's.
    pub fn step_wall(&self, millis: i64) {
        self.wall_offset.fetch_add(millis, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_follows_paused_time() {
        let clock = Clock::start();
        tokio::time::advance(Duration::from_millis(250)).await;
        assert_eq!(clock.now(), Moment::from_millis(250));
        assert_eq!(clock.instant(Moment::from_millis(250)), clock.instant(clock.now()));
    }

    /// PG-62: a stepped wall clock moves no moment.
    #[tokio::test(start_paused = true)]
    async fn a_stepped_wall_clock_moves_no_moment() {
        let clock = Clock::start();
        let (moment, wall) = (clock.now(), clock.wall());
        clock.step_wall(-60_000);
        assert_eq!(clock.now(), moment);
        let stepped = wall.duration_since(clock.wall());
        assert!(stepped > SignedDuration::from_secs(50), "{stepped:?}");
    }
}
