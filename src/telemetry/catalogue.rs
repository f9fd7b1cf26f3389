//! Every metric: its name, type, labels and meaning, once. Registration, the scrape, `docs/metrics.md` and whoever draws
//! dashboards read this list.

/// What kind of metric it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls. Absent while unknown.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

impl Kind {
    /// The word in Prometheus' text format.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

const fn metric(name: &'static str, kind: Kind, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric {
        name,
        kind,
        labels,
        help,
    }
}

const POOL: &[&str] = &["namespace", "pool"];
const REPLICA: &[&str] = &["namespace", "pool", "replica"];
const SERVICE: &[&str] = &["namespace", "pool", "service"];

/// Upper bounds of the buckets of every histogram, in seconds: round trips and API writes.
pub const BUCKETS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// Members of the pool.
pub const POOL_MEMBERS: Metric = metric(
    "lagwarden_pool_members",
    Kind::Gauge,
    POOL,
    "Members of the pool, the primary included.",
);
/// Whether the primary is known.
pub const PRIMARY_RESOLVED: Metric = metric(
    "lagwarden_primary_resolved",
    Kind::Gauge,
    POOL,
    "1 while the primary is known.",
);
/// Whether the primary is silent.
pub const PRIMARY_SILENT: Metric = metric(
    "lagwarden_primary_silent",
    Kind::Gauge,
    POOL,
    "1 while the primary is known and gives no sign.",
);
/// Who the primary is.
pub const PRIMARY_INFO: Metric = metric(
    "lagwarden_primary_info",
    Kind::Gauge,
    REPLICA,
    "Always 1, for the member that is the primary.",
);
/// Upper bound of staleness.
pub const REPLICA_STALENESS: Metric = metric(
    "lagwarden_replica_staleness_seconds",
    Kind::Gauge,
    REPLICA,
    "Proven upper bound of the replica's staleness. Absent while nothing is proven.",
);
/// Lower bound of staleness.
pub const REPLICA_STALENESS_LOWER: Metric = metric(
    "lagwarden_replica_staleness_lower_seconds",
    Kind::Gauge,
    REPLICA,
    "By how much the replica was certainly behind at its newest answer. Absent while nothing is proven.",
);
/// Bytes behind.
pub const REPLICA_BEHIND: Metric = metric(
    "lagwarden_replica_behind_bytes",
    Kind::Gauge,
    REPLICA,
    "Log that the primary is known to have and the replica has not applied. Absent while unknown.",
);
/// The service's limit.
pub const SERVICE_LIMIT: Metric = metric(
    "lagwarden_service_max_staleness_seconds",
    Kind::Gauge,
    SERVICE,
    "The service's limit.",
);
/// The service's admission mark.
pub const SERVICE_ADMIT: Metric = metric(
    "lagwarden_service_admit_within_seconds",
    Kind::Gauge,
    SERVICE,
    "A replica that is out may return within this.",
);
/// The service's floor.
pub const SERVICE_FLOOR: Metric = metric(
    "lagwarden_service_min_endpoints",
    Kind::Gauge,
    SERVICE,
    "The service's floor.",
);
/// Endpoints in the list.
pub const POOL_SERVING: Metric = metric(
    "lagwarden_pool_serving",
    Kind::Gauge,
    SERVICE,
    "Endpoints in the service's list.",
);
/// The fallback in force.
pub const FALLBACK_ACTIVE: Metric = metric(
    "lagwarden_pool_fallback_active",
    Kind::Gauge,
    &["namespace", "pool", "service", "policy"],
    "1 while this fallback decides.",
);
/// Whether a member is in.
pub const REPLICA_IN_SERVICE: Metric = metric(
    "lagwarden_replica_in_service",
    Kind::Gauge,
    &["namespace", "pool", "service", "replica"],
    "1 while the member is in the service's list.",
);
/// Where a member stands.
pub const REPLICA_STATE: Metric = metric(
    "lagwarden_replica_state",
    Kind::Gauge,
    &["namespace", "pool", "service", "replica", "state"],
    "1 for the state that the member is in, 0 for the others.",
);
/// Round trips to members.
pub const PROBES: Metric = metric(
    "lagwarden_probe_duration_seconds",
    Kind::Histogram,
    POOL,
    "Round trips to members, connecting included, failed ones too.",
);
/// Failed round trips.
pub const PROBE_FAILURES: Metric = metric(
    "lagwarden_probe_failures_total",
    Kind::Counter,
    &["namespace", "pool", "kind"],
    "Questions to members that gave no position.",
);
/// Moves.
pub const TRANSITIONS: Metric = metric(
    "lagwarden_transitions_total",
    Kind::Counter,
    &["namespace", "pool", "service", "reason"],
    "Changes of a member's state or cause.",
);
/// Entering and leaving.
pub const LIST_CHANGES: Metric = metric(
    "lagwarden_list_changes_total",
    Kind::Counter,
    &["namespace", "pool", "service", "direction"],
    "Members that entered (in) or left (out) a list.",
);
/// Slice writes.
pub const ENDPOINT_CHANGES: Metric = metric(
    "lagwarden_endpoint_changes_total",
    Kind::Counter,
    &["namespace", "pool", "operation"],
    "Acknowledged writes of EndpointSlices.",
);
/// Decision to acknowledged write.
pub const PUBLISH: Metric = metric(
    "lagwarden_publish_duration_seconds",
    Kind::Histogram,
    POOL,
    "From the decision to the acknowledged write.",
);
/// Passes over a pool's objects.
pub const RECONCILE: Metric = metric(
    "lagwarden_reconcile_duration_seconds",
    Kind::Histogram,
    POOL,
    "One pass over a pool's objects.",
);
/// Failed passes.
pub const RECONCILE_ERRORS: Metric = metric(
    "lagwarden_reconcile_errors_total",
    Kind::Counter,
    &["namespace", "pool", "category"],
    "Passes over a pool's objects that failed.",
);
/// Requests to flush.
pub const NUDGES: Metric = metric(
    "lagwarden_nudges_total",
    Kind::Counter,
    &["namespace", "pool", "result"],
    "Requests to the primary to make its log durable.",
);
/// Lost messages.
pub const OVERFLOWS: Metric = metric(
    "lagwarden_worker_queue_overflows_total",
    Kind::Counter,
    POOL,
    "Messages of a pool's loop that nobody took in time.",
);
/// Late timers.
pub const LATENESS: Metric = metric(
    "lagwarden_timer_lateness_seconds",
    Kind::Histogram,
    &[],
    "By how much the pools' timers fired late. A late timer looks like lag.",
);
/// Leadership.
pub const LEADER: Metric = metric(
    "lagwarden_leader",
    Kind::Gauge,
    &[],
    "1 while this process publishes, 0 while it stands by.",
);
/// The build.
pub const BUILD: Metric = metric(
    "lagwarden_build_info",
    Kind::Gauge,
    &["version"],
    "Always 1; the version is a label.",
);

/// All of them, in the order of the documentation.
pub const ALL: [&Metric; 27] = [
    &POOL_MEMBERS,
    &PRIMARY_RESOLVED,
    &PRIMARY_SILENT,
    &PRIMARY_INFO,
    &REPLICA_STALENESS,
    &REPLICA_STALENESS_LOWER,
    &REPLICA_BEHIND,
    &SERVICE_LIMIT,
    &SERVICE_ADMIT,
    &SERVICE_FLOOR,
    &POOL_SERVING,
    &FALLBACK_ACTIVE,
    &REPLICA_IN_SERVICE,
    &REPLICA_STATE,
    &PROBES,
    &PROBE_FAILURES,
    &TRANSITIONS,
    &LIST_CHANGES,
    &ENDPOINT_CHANGES,
    &PUBLISH,
    &RECONCILE,
    &RECONCILE_ERRORS,
    &NUDGES,
    &OVERFLOWS,
    &LATENESS,
    &LEADER,
    &BUILD,
];
