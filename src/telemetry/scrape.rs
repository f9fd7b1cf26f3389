//! The figures of pools, read when somebody scrapes: series live and die with what they describe, and what is not known is
//! not there.

use prometheus::proto::MetricFamily;
use prometheus::{Encoder, GaugeVec, Opts, Registry, TEXT_FORMAT, TextEncoder};

use super::catalogue::{self, Metric};
use super::events::PoolKey;
use super::metrics::Metrics;
use crate::policy::report::{MemberReport, Report, ServiceReport};
use crate::policy::settings::Fallback;
use crate::policy::sighting::Role;
use crate::policy::state::MemberState;

/// The content type of [`text`].
pub const CONTENT_TYPE: &str = TEXT_FORMAT;

/// Everything a scrape returns, in Prometheus' text format.
pub fn text(metrics: &Metrics, pools: &[(PoolKey, Report)]) -> Result<Vec<u8>, prometheus::Error> {
    let mut families: Vec<MetricFamily> = metrics.registry().gather();
    families.extend(gauges(pools)?);
    let mut out = Vec::new();
    TextEncoder::new().encode(&families, &mut out)?;
    Ok(out)
}

/// The gauges of all pools.
struct Gauges {
    registry: Registry,
}

impl Gauges {
    fn family(&self, metric: &Metric) -> Result<GaugeVec, prometheus::Error> {
        let family = GaugeVec::new(Opts::new(metric.name, metric.help), metric.labels)?;
        self.registry.register(Box::new(family.clone()))?;
        Ok(family)
    }
}

fn gauges(pools: &[(PoolKey, Report)]) -> Result<Vec<MetricFamily>, prometheus::Error> {
    let new = Gauges {
        registry: Registry::new(),
    };
    let members = new.family(&catalogue::POOL_MEMBERS)?;
    let resolved = new.family(&catalogue::PRIMARY_RESOLVED)?;
    let silent = new.family(&catalogue::PRIMARY_SILENT)?;
    let primary = new.family(&catalogue::PRIMARY_INFO)?;
    let replica = ReplicaGauges::new(&new)?;
    let service = ServiceGauges::new(&new)?;
    for (key, report) in pools {
        let pool = [key.namespace.as_ref(), key.name.as_ref()];
        members.with_label_values(&pool).set(count(report.members.len()));
        resolved
            .with_label_values(&pool)
            .set(flag(report.primary.name().is_some()));
        silent.with_label_values(&pool).set(flag(report.primary_silent));
        if let Some(name) = report.primary.name() {
            primary.with_label_values(&[pool[0], pool[1], name]).set(1.0);
        }
        for member in &report.members {
            replica.set(pool, member);
        }
        for one in &report.services {
            service.set(pool, one);
        }
    }
    Ok(new.registry.gather())
}

struct ReplicaGauges {
    upper: GaugeVec,
    lower: GaugeVec,
    behind: GaugeVec,
}

impl ReplicaGauges {
    fn new(new: &Gauges) -> Result<Self, prometheus::Error> {
        Ok(Self {
            upper: new.family(&catalogue::REPLICA_STALENESS)?,
            lower: new.family(&catalogue::REPLICA_STALENESS_LOWER)?,
            behind: new.family(&catalogue::REPLICA_BEHIND)?,
        })
    }

    fn set(&self, [namespace, pool]: [&str; 2], member: &MemberReport) {
        if member.role != Some(Role::Replica) {
            return;
        }
        let labels = [namespace, pool, member.name.as_ref()];
        if let Some(upper) = member.upper {
            self.upper.with_label_values(&labels).set(upper.as_secs_f64());
        }
        if let Some(lower) = member.lower {
            self.lower.with_label_values(&labels).set(lower.as_secs_f64());
        }
        if let Some(bytes) = member.behind_bytes {
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a double")]
            self.behind.with_label_values(&labels).set(bytes as f64);
        }
    }
}

struct ServiceGauges {
    limit: GaugeVec,
    admit: GaugeVec,
    floor: GaugeVec,
    serving: GaugeVec,
    fallback: GaugeVec,
    in_service: GaugeVec,
    state: GaugeVec,
}

impl ServiceGauges {
    fn new(new: &Gauges) -> Result<Self, prometheus::Error> {
        Ok(Self {
            limit: new.family(&catalogue::SERVICE_LIMIT)?,
            admit: new.family(&catalogue::SERVICE_ADMIT)?,
            floor: new.family(&catalogue::SERVICE_FLOOR)?,
            serving: new.family(&catalogue::POOL_SERVING)?,
            fallback: new.family(&catalogue::FALLBACK_ACTIVE)?,
            in_service: new.family(&catalogue::REPLICA_IN_SERVICE)?,
            state: new.family(&catalogue::REPLICA_STATE)?,
        })
    }

    fn set(&self, [namespace, pool]: [&str; 2], service: &ServiceReport) {
        let name = service.name.as_ref();
        let labels = [namespace, pool, name];
        self.limit
            .with_label_values(&labels)
            .set(service.max_staleness.as_secs_f64());
        self.admit
            .with_label_values(&labels)
            .set(service.admit_within.as_secs_f64());
        self.floor.with_label_values(&labels).set(count(service.min_endpoints));
        self.serving
            .with_label_values(&labels)
            .set(count(service.endpoints.len()));
        for policy in Fallback::ALL {
            let active = service.state.fallback() == Some(policy);
            self.fallback
                .with_label_values(&[namespace, pool, name, policy.as_str()])
                .set(flag(active));
        }
        for seat in &service.seats {
            let replica = seat.member.as_ref();
            self.in_service
                .with_label_values(&[namespace, pool, name, replica])
                .set(flag(seat.listed));
            for state in MemberState::ALL {
                let labels = [namespace, pool, name, replica, state.as_str()];
                self.state.with_label_values(&labels).set(flag(seat.state == state));
            }
        }
    }
}

fn flag(set: bool) -> f64 {
    f64::from(u8::from(set))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a double, and counts here are small"
)]
fn count(n: usize) -> f64 {
    n as f64
}
