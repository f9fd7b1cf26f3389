//! Every counter and histogram of the process, constructed once. Nothing is global, so tests read them back.

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry};

use super::catalogue::{self, Metric};
use super::events::PoolKey;
use crate::policy::reason::Reason;
use crate::policy::sighting::ProbeFailure;

/// What an API request to publish came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A slice was made.
    Create,
    /// A slice was changed.
    Update,
    /// A slice was removed.
    Delete,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Delete];

    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// Every metric that is not read from a pool's report.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    probes: HistogramVec,
    probe_failures: IntCounterVec,
    transitions: IntCounterVec,
    list_changes: IntCounterVec,
    endpoint_changes: IntCounterVec,
    publish: HistogramVec,
    reconcile: HistogramVec,
    reconcile_errors: IntCounterVec,
    nudges: IntCounterVec,
    overflows: IntCounterVec,
    lateness: HistogramVec,
    leader: IntGaugeVec,
}

impl Metrics {
    /// Constructs and registers all of them.
    ///
    /// # Panics
    ///
    /// Never: names and labels are constants, and each is registered once, in a registry of its own.
    pub fn new() -> Self {
        let registry = Registry::new();
        let metrics = Self {
            probes: histograms(&registry, &catalogue::PROBES),
            probe_failures: counters(&registry, &catalogue::PROBE_FAILURES),
            transitions: counters(&registry, &catalogue::TRANSITIONS),
            list_changes: counters(&registry, &catalogue::LIST_CHANGES),
            endpoint_changes: counters(&registry, &catalogue::ENDPOINT_CHANGES),
            publish: histograms(&registry, &catalogue::PUBLISH),
            reconcile: histograms(&registry, &catalogue::RECONCILE),
            reconcile_errors: counters(&registry, &catalogue::RECONCILE_ERRORS),
            nudges: counters(&registry, &catalogue::NUDGES),
            overflows: counters(&registry, &catalogue::OVERFLOWS),
            lateness: histograms(&registry, &catalogue::LATENESS),
            leader: gauges(&registry, &catalogue::LEADER),
            registry,
        };
        gauges(&metrics.registry, &catalogue::BUILD)
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        metrics.leads(false);
        #[cfg(target_os = "linux")]
        register(
            &metrics.registry,
            prometheus::process_collector::ProcessCollector::for_self(),
        );
        metrics
    }

    /// The registry that a scrape reads.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether this process publishes.
    pub fn leads(&self, leads: bool) {
        self.leader.with_label_values::<&str>(&[]).set(i64::from(leads));
    }

    /// Begins the counters of a pool at zero, so that the first increase is seen as one.
    pub fn begin(&self, pool: &PoolKey) {
        let (ns, name) = (pool.namespace.as_ref(), pool.name.as_ref());
        for kind in ProbeFailure::ALL {
            self.probe_failures.with_label_values(&[ns, name, kind.as_str()]);
        }
        for operation in Operation::ALL {
            self.endpoint_changes.with_label_values(&[ns, name, operation.as_str()]);
        }
        for result in ["done", "failed"] {
            self.nudges.with_label_values(&[ns, name, result]);
        }
        self.overflows.with_label_values(&[ns, name]);
    }

    /// Removes every series of a pool that is gone, with those of its `services`.
    pub fn forget(&self, pool: &PoolKey, services: &[&str]) {
        let (ns, name) = (pool.namespace.as_ref(), pool.name.as_ref());
        // A series that was never there cannot be removed: nothing to be done about it.
        for kind in ProbeFailure::ALL {
            drop(self.probe_failures.remove_label_values(&[ns, name, kind.as_str()]));
        }
        for operation in Operation::ALL {
            drop(
                self.endpoint_changes
                    .remove_label_values(&[ns, name, operation.as_str()]),
            );
        }
        for result in ["done", "failed"] {
            drop(self.nudges.remove_label_values(&[ns, name, result]));
        }
        for service in services {
            for reason in Reason::ALL {
                drop(
                    self.transitions
                        .remove_label_values(&[ns, name, service, reason.as_str()]),
                );
            }
            for direction in ["in", "out"] {
                drop(self.list_changes.remove_label_values(&[ns, name, service, direction]));
            }
        }
        for category in super::CATEGORIES {
            drop(self.reconcile_errors.remove_label_values(&[ns, name, category]));
        }
        drop(self.overflows.remove_label_values(&[ns, name]));
        for histograms in [&self.probes, &self.publish, &self.reconcile] {
            drop(histograms.remove_label_values(&[ns, name]));
        }
    }

    /// A pass over a pool's objects took this long, and failed with this category, or not.
    pub fn reconciled(&self, pool: &PoolKey, took: Duration, failed: Option<&'static str>) {
        let labels = [pool.namespace.as_ref(), pool.name.as_ref()];
        self.reconcile.with_label_values(&labels).observe(took.as_secs_f64());
        if let Some(category) = failed {
            let labels = [pool.namespace.as_ref(), pool.name.as_ref(), category];
            self.reconcile_errors.with_label_values(&labels).inc();
        }
    }

    /// A write was acknowledged, `after` the decision that it carries when it carries a new one.
    pub fn published(&self, pool: &PoolKey, operation: Operation, after: Option<Duration>) {
        let labels = [pool.namespace.as_ref(), pool.name.as_ref(), operation.as_str()];
        self.endpoint_changes.with_label_values(&labels).inc();
        if let Some(after) = after {
            let labels = [pool.namespace.as_ref(), pool.name.as_ref()];
            self.publish.with_label_values(&labels).observe(after.as_secs_f64());
        }
    }

    pub(super) fn probed(&self, pool: &PoolKey, took: Duration, failure: Option<ProbeFailure>) {
        let labels = [pool.namespace.as_ref(), pool.name.as_ref()];
        self.probes.with_label_values(&labels).observe(took.as_secs_f64());
        if let Some(kind) = failure {
            let labels = [pool.namespace.as_ref(), pool.name.as_ref(), kind.as_str()];
            self.probe_failures.with_label_values(&labels).inc();
        }
    }

    pub(super) fn moved(&self, pool: &PoolKey, service: &str, reason: Reason) {
        let labels = [pool.namespace.as_ref(), pool.name.as_ref(), service, reason.as_str()];
        self.transitions.with_label_values(&labels).inc();
    }

    pub(super) fn listed(&self, pool: &PoolKey, service: &str, added: usize, removed: usize) {
        for (direction, count) in [("in", added), ("out", removed)] {
            let labels = [pool.namespace.as_ref(), pool.name.as_ref(), service, direction];
            self.list_changes
                .with_label_values(&labels)
                .inc_by(u64::try_from(count).unwrap_or(u64::MAX));
        }
    }

    pub(super) fn nudged(&self, pool: &PoolKey, done: bool) {
        let result = if done { "done" } else { "failed" };
        self.nudges
            .with_label_values(&[pool.namespace.as_ref(), pool.name.as_ref(), result])
            .inc();
    }

    pub(super) fn overflowed(&self, pool: &PoolKey) {
        self.overflows
            .with_label_values(&[pool.namespace.as_ref(), pool.name.as_ref()])
            .inc();
    }

    pub(super) fn woke_late(&self, by: Duration) {
        self.lateness.with_label_values::<&str>(&[]).observe(by.as_secs_f64());
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

const CONSTANT: &str = "names and labels are constants, and each is registered once";

fn register(registry: &Registry, collector: impl Collector + 'static) {
    registry.register(Box::new(collector)).expect(CONSTANT);
}

fn counters(registry: &Registry, metric: &Metric) -> IntCounterVec {
    let counters = IntCounterVec::new(Opts::new(metric.name, metric.help), metric.labels).expect(CONSTANT);
    register(registry, counters.clone());
    counters
}

fn histograms(registry: &Registry, metric: &Metric) -> HistogramVec {
    let opts = HistogramOpts::new(metric.name, metric.help).buckets(catalogue::BUCKETS.to_vec());
    let histograms = HistogramVec::new(opts, metric.labels).expect(CONSTANT);
    register(registry, histograms.clone());
    histograms
}

fn gauges(registry: &Registry, metric: &Metric) -> IntGaugeVec {
    let gauges = IntGaugeVec::new(Opts::new(metric.name, metric.help), metric.labels).expect(CONSTANT);
    register(registry, gauges.clone());
    gauges
}
