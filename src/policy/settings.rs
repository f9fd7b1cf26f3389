//! What a pool declares, with the numbers that follow from it.
//!
//! | number | rule | default |
//! | --- | --- | --- |
//! | `T_out` | Balanced: `maxStaleness`; Strict: less the propagation budget | 2 s |
//! | `T_in` | 0.6 of `T_out` | 1.2 s |
//! | sample and probe period | `maxStaleness` / 20 within 50 ms and 500 ms, of the pool's smallest | 100 ms |
//! | probe timeout | half of `maxStaleness` within 250 ms and 1 s | 1 s |
//! | blind after | 8 probe periods, at least 800 ms, at most 0.8 of `T_out` | 800 ms |
//! | primary silent after | 3 sample periods and 200 ms, at most half of `T_out` | 500 ms |
//!
//! The two last upper limits are what makes a blindness or a silence known *before* the leases it concerns end; without
//! them a pool with a small limit or long periods would lose every replica first and learn the cause after.

use std::sync::Arc;
use std::time::Duration;

/// Name of a read Service within its pool's namespace.
pub type ServiceName = Arc<str>;

/// The smallest `maxStaleness`.
pub const MIN_STALENESS: Duration = Duration::from_millis(500);
/// The largest `maxStaleness`.
pub const MAX_STALENESS: Duration = Duration::from_secs(24 * 3600);
/// Allowance for round trips in the feasibility rule.
const ROUND_TRIPS: Duration = Duration::from_millis(20);

/// When an endpoint leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// When its bound reaches the limit; the change's way to the clients comes on top.
    Balanced,
    /// Earlier by this much, so that it is gone everywhere when the limit is reached.
    Strict(Duration),
}

/// What to do while the primary gives no sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnPrimarySilent {
    /// Nobody can get staler than a primary that is down: judge by its last confirmed position.
    Hold,
    /// Clients may still write to a primary that only we lost: let leases end.
    Expire,
}

/// Who serves when too few replicas are fresh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fallback {
    /// The primary, within its share.
    Primary,
    /// The freshest of those that are not fresh.
    LeastLagged,
    /// The last set that was fresh.
    KeepLast,
    /// Nobody.
    None,
}

impl Fallback {
    /// Every fallback, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Primary, Self::LeastLagged, Self::KeepLast, Self::None];

    /// The word used in the resource, status, metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "Primary",
            Self::LeastLagged => "LeastLagged",
            Self::KeepLast => "KeepLast",
            Self::None => "None",
        }
    }
}

/// One read Service: a limit, and what to do when it cannot be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceSettings {
    /// Its name.
    pub name: ServiceName,
    /// No endpoint may be staler than this, fallback aside.
    pub max_staleness: Duration,
    /// When an endpoint leaves.
    pub mode: Mode,
    /// The floor: below it the fallback fills up.
    pub min_endpoints: usize,
    /// Tried in order.
    pub fallback: Vec<Fallback>,
    /// Largest share of connections that the fallback may give to the primary, in percent.
    pub primary_max_share: u32,
    /// Nobody staler than this is used by a fallback.
    pub hard_max_staleness: Duration,
    /// What to do while the primary gives no sign.
    pub on_primary_silent: OnPrimarySilent,
}

impl ServiceSettings {
    /// A service of this name and limit, with the documented defaults.
    pub fn new(name: &str, max_staleness: Duration) -> Self {
        Self {
            name: Arc::from(name),
            max_staleness,
            mode: Mode::Balanced,
            min_endpoints: 1,
            fallback: vec![Fallback::LeastLagged],
            primary_max_share: 50,
            hard_max_staleness: max_staleness * 30,
            on_primary_silent: OnPrimarySilent::Hold,
        }
    }

    /// A serving replica leaves when its bound exceeds this.
    pub fn evict_above(&self) -> Duration {
        match self.mode {
            Mode::Balanced => self.max_staleness,
            Mode::Strict(budget) => self.max_staleness.saturating_sub(budget),
        }
    }

    /// A replica that is out may return when its bound is at most this.
    pub fn admit_within(&self) -> Duration {
        self.evict_above() * 3 / 5
    }

    /// The smallest `maxStaleness` that this service's mode allows with these periods: a healthy replica's bound must
    /// stay below the admission mark with a fifth to spare, or the service would oscillate.
    pub fn smallest_feasible(&self, periods: &Periods) -> Duration {
        let within = (periods.sample + periods.probe + ROUND_TRIPS) * 6 / 5;
        let evict = within * 5 / 3;
        let budget = match self.mode {
            Mode::Balanced => Duration::ZERO,
            Mode::Strict(budget) => budget,
        };
        (evict + budget).max(MIN_STALENESS)
    }
}

/// How often servers are asked, and for how long an answer is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Periods {
    /// Between two samples of the primary.
    pub sample: Duration,
    /// Between two probes of a replica.
    pub probe: Duration,
    /// For one round trip, connecting included.
    pub timeout: Duration,
}

impl Periods {
    /// The defaults for a pool whose smallest limit is `max_staleness`.
    pub fn for_limit(max_staleness: Duration) -> Self {
        let period = (max_staleness / 20).clamp(Duration::from_millis(50), Duration::from_millis(500));
        Self {
            sample: period,
            probe: period,
            timeout: (max_staleness / 2).clamp(Duration::from_millis(250), Duration::from_secs(1)),
        }
    }
}

/// How the primary is told apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Detection {
    /// The one member that says it is.
    Auto,
    /// The member that was designated (by a label or by name) and says it is.
    Designated,
}

/// Everything a pool declares that decisions depend on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolSettings {
    /// How the primary is told apart.
    pub detection: Detection,
    /// How often servers are asked.
    pub periods: Periods,
    /// At least one, names unique.
    pub services: Vec<ServiceSettings>,
    /// Whether what is published stays as it is.
    pub paused: bool,
}

impl PoolSettings {
    /// A pool with these services, default periods, and a primary that says so itself.
    pub fn new(services: Vec<ServiceSettings>) -> Self {
        let smallest = services.iter().map(|s| s.max_staleness).min().unwrap_or(MIN_STALENESS);
        Self {
            detection: Detection::Auto,
            periods: Periods::for_limit(smallest),
            services,
            paused: false,
        }
    }

    /// The smallest limit of the pool's services.
    pub fn smallest_limit(&self) -> Duration {
        self.services
            .iter()
            .map(|s| s.max_staleness)
            .min()
            .unwrap_or(MIN_STALENESS)
    }

    fn smallest_eviction(&self) -> Duration {
        self.services
            .iter()
            .map(ServiceSettings::evict_above)
            .min()
            .unwrap_or(MIN_STALENESS)
    }

    /// A member that has not answered for longer is blind.
    pub fn blind_after(&self) -> Duration {
        (self.periods.probe * 8)
            .max(Duration::from_millis(800))
            .min(self.smallest_eviction() * 4 / 5)
    }

    /// A primary that has not answered for longer is silent.
    pub fn silent_after(&self) -> Duration {
        (self.periods.sample * 3 + Duration::from_millis(200)).min(self.smallest_eviction() / 2)
    }

    /// A bound beyond this means that renewals are missing: two periods of each kind.
    pub fn renewal(&self) -> Duration {
        (self.periods.sample + self.periods.probe) * 2
    }

    /// How long a sample may stay undurable on the primary before it is asked to flush.
    pub fn nudge_after(&self) -> Duration {
        (self.periods.sample * 2).max(Duration::from_millis(200))
    }

    /// The least time between two such requests.
    pub fn nudge_spacing(&self) -> Duration {
        (self.smallest_limit() / 4).max(Duration::from_millis(200))
    }

    /// How long what is published stays as found while some member was never measured.
    pub fn cold_start(&self) -> Duration {
        self.smallest_limit() + Duration::from_secs(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let service = ServiceSettings::new("a", ms(2000));
        let pool = PoolSettings::new(vec![service.clone()]);
        assert_eq!((service.evict_above(), service.admit_within()), (ms(2000), ms(1200)));
        assert_eq!(service.hard_max_staleness, ms(60_000));
        let p = pool.periods;
        assert_eq!((p.sample, p.probe, p.timeout), (ms(100), ms(100), ms(1000)));
        assert_eq!((pool.blind_after(), pool.silent_after()), (ms(800), ms(500)));
        assert_eq!((pool.nudge_after(), pool.nudge_spacing()), (ms(200), ms(500)));
        assert_eq!(pool.cold_start(), ms(3000));
    }

    #[test]
    fn periods_are_clamped() {
        for (limit, period, timeout) in [(500, 50, 250), (1000, 50, 500), (4000, 200, 1000), (60_000, 500, 1000)] {
            let p = Periods::for_limit(ms(limit));
            assert_eq!(
                (p.sample, p.probe, p.timeout),
                (ms(period), ms(period), ms(timeout)),
                "{limit} ms"
            );
        }
    }

    #[test]
    fn strict_leaves_earlier_by_the_budget() {
        let mut service = ServiceSettings::new("a", ms(2000));
        service.mode = Mode::Strict(ms(500));
        assert_eq!((service.evict_above(), service.admit_within()), (ms(1500), ms(900)));
    }

    /// Worked: 100 ms periods need `T_in` of 1.2 × 220 ms = 264 ms, so `T_out` of 440 ms, below the general minimum.
    #[test]
    fn the_smallest_limit_follows_from_the_periods() {
        let mut service = ServiceSettings::new("a", ms(2000));
        let mut periods = Periods::for_limit(ms(2000));
        assert_eq!(service.smallest_feasible(&periods), MIN_STALENESS);
        periods.sample = ms(1000);
        periods.probe = ms(1000);
        assert_eq!(service.smallest_feasible(&periods), ms(4040));
        service.mode = Mode::Strict(ms(500));
        assert_eq!(service.smallest_feasible(&periods), ms(4540));
    }

    /// For every pool the feasibility rule admits: blindness and silence are known before a healthy lease ends.
    #[test]
    fn causes_are_known_before_their_effects() {
        for period in (20..2000).step_by(10) {
            for strict in [false, true] {
                let mut service = ServiceSettings::new("a", ms(500));
                if strict {
                    service.mode = Mode::Strict(ms(500));
                }
                let periods = Periods {
                    sample: ms(period),
                    probe: ms(period),
                    timeout: ms(250),
                };
                service.max_staleness = service.smallest_feasible(&periods);
                let mut pool = PoolSettings::new(vec![service.clone()]);
                pool.periods = periods;
                let healthy = periods.sample + periods.probe;
                assert!(pool.blind_after() < service.evict_above(), "period {period}");
                assert!(
                    pool.silent_after() + healthy <= service.evict_above(),
                    "period {period}"
                );
            }
        }
    }
}
