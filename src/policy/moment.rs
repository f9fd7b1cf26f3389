//! Instants on the one clock that decisions are made with.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// An instant on the deciding process's monotonic clock, in nanoseconds since an origin of its own.
///
/// Two moments of one process can be compared; a moment of another process means nothing here. Wall-clock time never
/// becomes a `Moment`, so that a stepped clock changes no decision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The origin of the clock: nothing happened before it.
    pub const ORIGIN: Self = Self(0);

    /// The moment `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The moment `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `span` before this one, at the earliest the origin.
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// The moment `span` later; saturates at the end of the clock, 584 years after the origin.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}s", Duration::from_nanos(self.0).as_secs_f64())
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_go_below_zero() {
        let (a, b) = (Moment::from_millis(10), Moment::from_millis(15));
        assert_eq!(b.since(a), Duration::from_millis(5));
        assert_eq!(a.since(b), Duration::ZERO);
        assert_eq!(a.before(Duration::from_secs(1)), Moment::ORIGIN);
    }

    /// PG-66.
    #[test]
    fn sums_saturate() {
        assert_eq!((Moment::from_millis(1) + Duration::MAX).as_nanos(), u64::MAX);
    }
}
