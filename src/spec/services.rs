//! Parses limits and periods into what the policy decides by.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::Mistakes;
use super::syntax;
use crate::api::duration::{self, DurationString};
use crate::api::v1alpha1::{Fallback, Measurement, Members, Mode, OnPrimarySilent, Service};
use crate::api::{MAX_MEMBERS, MAX_SERVICES};
use crate::policy::settings::{self, MAX_STALENESS, MIN_STALENESS, Periods, ServiceName, ServiceSettings};

/// A read Service as an object: what decides about its endpoints is in the settings of the same place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadService {
    /// Its name, in the pool's namespace.
    pub name: ServiceName,
    /// Whether it is made when it does not exist.
    pub create: bool,
}

/// How much earlier Strict leaves when nothing is said.
const DEFAULT_BUDGET: Duration = Duration::from_millis(500);
/// The longest `hardMaxStaleness`: 30 times the longest `maxStaleness`.
const MAX_HARD: Duration = Duration::from_secs(30 * 24 * 3600);
/// Range of the two periods. Below it a reading would take longer than the time between two.
const PERIOD: RangeInclusive<Duration> = Duration::from_millis(20)..=Duration::from_secs(60);
/// Range of the wait for one answer.
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(60);

/// Periods as far as they were stated.
#[derive(Clone, Copy, Default)]
struct Stated {
    sample: Option<Duration>,
    probe: Option<Duration>,
    timeout: Option<Duration>,
}

impl Stated {
    /// What is not stated follows from the smallest limit.
    fn periods(self, smallest: Duration) -> Periods {
        let default = Periods::for_limit(smallest);
        Periods {
            sample: self.sample.unwrap_or(default.sample),
            probe: self.probe.unwrap_or(default.probe),
            timeout: self.timeout.unwrap_or(default.timeout),
        }
    }
}

/// The services' settings and the pool's periods; `None` when a mistake was noted.
pub(super) fn settings(
    services: &[Service],
    measurement: &Measurement,
    members: &Members,
    mistakes: &mut Mistakes,
) -> Option<(Vec<ServiceSettings>, Periods)> {
    let before = mistakes.0.len();
    let problem = format!("has {} entries", services.len());
    mistakes.expect(
        (1..=MAX_SERVICES).contains(&services.len()),
        "spec.services",
        problem,
        "give 1 to 8 services",
    );
    let stated = stated(measurement, mistakes);
    let mut names = BTreeSet::new();
    let mut parsed = Vec::new();
    for (i, service) in services.iter().enumerate() {
        let at = format!("spec.services[{i}]");
        let problem = format!("{:?} occurs more than once", service.name);
        mistakes.expect(
            names.insert(&service.name),
            &format!("{at}.name"),
            problem,
            "give each Service once",
        );
        parsed.extend(self::service(service, members, &at, mistakes));
    }
    if mistakes.0.len() > before {
        return None;
    }
    let smallest = parsed.iter().map(|s| s.max_staleness).min().unwrap_or(MIN_STALENESS);
    for (i, service) in parsed.iter().enumerate() {
        feasible(
            service,
            stated,
            smallest,
            &format!("spec.services[{i}].maxStaleness"),
            mistakes,
        );
    }
    (mistakes.0.len() == before).then(|| (parsed, stated.periods(smallest)))
}

fn stated(measurement: &Measurement, mistakes: &mut Mistakes) -> Stated {
    let mut read = |text: &Option<DurationString>, field: &str, range| {
        let text = text.as_ref()?;
        span(text, &format!("spec.measurement.{field}"), range, mistakes)
    };
    Stated {
        sample: read(&measurement.sample_period, "samplePeriod", PERIOD),
        probe: read(&measurement.probe_period, "probePeriod", PERIOD),
        timeout: read(&measurement.probe_timeout, "probeTimeout", TIMEOUT),
    }
}

/// What `text` means, when it is a duration within `range`.
fn span(
    text: &DurationString,
    field: &str,
    range: RangeInclusive<Duration>,
    mistakes: &mut Mistakes,
) -> Option<Duration> {
    let Ok(span) = text.parse() else {
        mistakes.note(
            field,
            format!("{:?} is not a duration", text.as_str()),
            duration::REMEDY,
        );
        return None;
    };
    let [least, most] = [range.start(), range.end()].map(|d| DurationString::from(*d));
    let remedy = format!("choose from {least} to {most}");
    mistakes.expect(range.contains(&span), field, format!("{text} is out of range"), &remedy);
    range.contains(&span).then_some(span)
}

fn service(service: &Service, members: &Members, at: &str, mistakes: &mut Mistakes) -> Option<ServiceSettings> {
    let name = &service.name;
    mistakes.expect(
        syntax::is_dns_label(name),
        &format!("{at}.name"),
        format!("{name:?} is not the name of a Service"),
        "use lower-case letters, digits and dashes",
    );
    let limit = span(
        &service.max_staleness,
        &format!("{at}.maxStaleness"),
        MIN_STALENESS..=MAX_STALENESS,
        mistakes,
    );
    let hard = hard_limit(service, limit, at, mistakes);
    let mode = mode(service, limit, at, mistakes);
    let fallback = fallback(service, at, mistakes);
    let floor = floor(service.min_endpoints, members, at, mistakes);
    let share = u32::try_from(service.primary_max_share_percent)
        .ok()
        .filter(|n| *n <= 100);
    mistakes.expect(
        share.is_some(),
        &format!("{at}.primaryMaxSharePercent"),
        format!("{} is out of range", service.primary_max_share_percent),
        "choose from 0 to 100",
    );
    Some(ServiceSettings {
        name: name.as_str().into(),
        max_staleness: limit?,
        mode: mode?,
        min_endpoints: floor?,
        fallback,
        primary_max_share: share?,
        hard_max_staleness: hard?,
        on_primary_silent: match service.on_primary_silent {
            OnPrimarySilent::Hold => settings::OnPrimarySilent::Hold,
            OnPrimarySilent::Expire => settings::OnPrimarySilent::Expire,
        },
    })
}

fn hard_limit(service: &Service, limit: Option<Duration>, at: &str, mistakes: &mut Mistakes) -> Option<Duration> {
    let Some(text) = &service.hard_max_staleness else {
        return limit.map(|l| l * 30);
    };
    let field = format!("{at}.hardMaxStaleness");
    let hard = span(text, &field, Duration::ZERO..=MAX_HARD, mistakes)?;
    let below = limit.is_some_and(|limit| hard < limit);
    mistakes.expect(
        !below,
        &field,
        format!("{text} is below maxStaleness {}", service.max_staleness),
        "raise it, or remove it to have 30 times maxStaleness",
    );
    Some(hard)
}

fn mode(service: &Service, limit: Option<Duration>, at: &str, mistakes: &mut Mistakes) -> Option<settings::Mode> {
    let field = format!("{at}.propagationBudget");
    let budget = match &service.propagation_budget {
        Some(text) => {
            let budget = span(text, &field, Duration::ZERO..=MAX_STALENESS, mistakes)?;
            let reaches = limit.is_some_and(|limit| budget >= limit);
            mistakes.expect(
                !reaches,
                &field,
                format!(
                    "{text} is not below maxStaleness {}, so nobody could ever serve",
                    service.max_staleness
                ),
                "lower it, or raise maxStaleness",
            );
            Some(budget)
        }
        None => None,
    };
    Some(match service.mode {
        Mode::Strict => settings::Mode::Strict(budget.unwrap_or(DEFAULT_BUDGET)),
        Mode::Balanced => {
            mistakes.expect(
                budget.is_none(),
                &field,
                "is given, but mode is Balanced, which does not use it",
                "use mode: Strict, or remove propagationBudget",
            );
            settings::Mode::Balanced
        }
    })
}

fn fallback(service: &Service, at: &str, mistakes: &mut Mistakes) -> Vec<settings::Fallback> {
    let field = format!("{at}.fallback");
    let list = &service.fallback;
    let remedy = "name at least one; [None] lets the Service be empty";
    mistakes.expect(!list.is_empty(), &field, "is empty", remedy);
    let repeated = list.iter().enumerate().find(|(i, f)| list[..*i].contains(f));
    if let Some((_, policy)) = repeated {
        mistakes.note(
            &*field,
            format!("names {} more than once", policy.as_str()),
            "keep the first",
        );
    }
    if let (true, Some(last)) = (
        list.contains(&Fallback::None),
        list.last().filter(|f| **f != Fallback::None),
    ) {
        let problem = format!("has {} after None, which ends the list", last.as_str());
        mistakes.note(&*field, problem, "put None last, or remove it");
    }
    mistakes.expect(
        service.primary_max_share_percent != 0 || !list.contains(&Fallback::Primary),
        &format!("{at}.primaryMaxSharePercent"),
        "is 0, but fallback names Primary",
        "raise it to the largest share the primary may get, or remove Primary",
    );
    list.iter()
        .map(|policy| match policy {
            Fallback::Primary => settings::Fallback::Primary,
            Fallback::LeastLagged => settings::Fallback::LeastLagged,
            Fallback::KeepLast => settings::Fallback::KeepLast,
            Fallback::None => settings::Fallback::None,
        })
        .collect()
}

fn floor(count: i32, members: &Members, at: &str, mistakes: &mut Mistakes) -> Option<usize> {
    let field = format!("{at}.minEndpoints");
    let valid = usize::try_from(count).ok().filter(|n| (1..=MAX_MEMBERS).contains(n));
    mistakes.expect(
        valid.is_some(),
        &field,
        format!("{count} is out of range"),
        "choose from 1 to 100",
    );
    if let (Some(floor), Some(hosts)) = (valid, members.hosts.as_ref().filter(|h| !h.is_empty())) {
        let problem = format!("is {floor}, but members has only {} hosts", hosts.len());
        mistakes.expect(
            floor <= hosts.len(),
            &field,
            problem,
            "lower it to what the pool can hold",
        );
    }
    valid
}

/// Notes a limit that a healthy replica could not keep with the periods, and the smallest that it could.
fn feasible(service: &ServiceSettings, stated: Stated, smallest: Duration, field: &str, mistakes: &mut Mistakes) {
    // A larger limit may lengthen the periods that follow from it, by a tenth at most, so the least that works is where
    // the two meet. A thousand rounds are never reached: each is at least five times closer.
    let others = if service.max_staleness == smallest {
        Duration::MAX
    } else {
        smallest
    };
    let mut limit = service.max_staleness;
    for _ in 0..1000 {
        let least = service.smallest_feasible(&stated.periods(limit.min(others)));
        if least <= limit {
            break;
        }
        limit = least;
    }
    let least = DurationString::from(limit + Duration::from_nanos(999_999));
    mistakes.expect(
        limit == service.max_staleness,
        field,
        format!(
            "{} is too small, and with these periods the smallest that works is {least}",
            DurationString::from(service.max_staleness)
        ),
        "raise maxStaleness, or shorten measurement.samplePeriod and probePeriod",
    );
}
