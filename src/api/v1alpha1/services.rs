//! The read Services of a pool: a limit each, and what to do when it cannot be kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::duration::DurationString;
use crate::api::{MAX_LABEL, MAX_MEMBERS};

/// A read Service that is kept true.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Service {
    /// Name of the Service, in the pool's namespace. The Service must have no selector, since Kubernetes would add its
    /// own endpoints to ours, and must belong to no other pool.
    #[schemars(length(min = 1, max = MAX_LABEL))]
    pub name: String,
    /// Whether the Service is made when it does not exist: of type ClusterIP, with one port. One that exists is used as it
    /// is. Default: false, so the Service must exist.
    #[serde(default)]
    pub create: bool,
    /// Which members the Service leads to. Replica: replicas, and the primary only while a fallback says so. Default:
    /// Replica.
    #[serde(default)]
    pub role: Role,
    /// The limit, 500ms to 24h: a replica serves only while it is proven to lack nothing that was committed longer ago than
    /// this. Default: 2s. One that left returns at 0.6 of the limit. Below what the periods of measurement allow it is
    /// refused, and the message names the smallest that works.
    #[serde(default = "two_seconds")]
    pub max_staleness: DurationString,
    /// Balanced: a replica leaves when its bound reaches maxStaleness, so clients may see it until the change has reached
    /// them. Strict: it leaves earlier by propagationBudget, so that it is gone everywhere when the limit is reached.
    /// Default: Balanced.
    #[serde(default)]
    pub mode: Mode,
    /// How long a change of the endpoints may take to reach every node. For mode: Strict only; below maxStaleness.
    /// Default there: 500ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagation_budget: Option<DurationString>,
    /// The floor: with fewer fresh replicas than this, fallback fills up. Default: 1. Not more than there are
    /// members.hosts.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = MAX_MEMBERS))]
    pub min_endpoints: i32,
    /// Who serves when too few replicas are fresh, tried in this order. Primary: the primary, within
    /// primaryMaxSharePercent. LeastLagged: the freshest of the others. KeepLast: the last set that was fresh. None:
    /// nobody, so nothing may follow it. The list stays empty only when all are exhausted. Default: LeastLagged
    /// alone.
    #[serde(default = "least_lagged")]
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "atomic"))]
    pub fallback: Vec<Fallback>,
    /// Largest share of connections, in percent, that the fallback Primary may give to the primary: with 50 it is listed
    /// with at least one replica, with 100 also alone. Default: 50.
    #[serde(default = "half")]
    #[schemars(range(min = 0, max = 100))]
    pub primary_max_share_percent: i32,
    /// No replica staler than this is used by LeastLagged, KeepLast or beside the primary; from maxStaleness to 720h.
    /// Default: 30 times maxStaleness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hard_max_staleness: Option<DurationString>,
    /// What to do while the primary gives no sign. Hold: replicas that had all it last confirmed stay, as nobody gets
    /// staler than a primary that is down. Expire: they leave at maxStaleness, as clients may still write to a primary
    /// that only Lagwarden has lost. Default: Hold.
    #[serde(default)]
    pub on_primary_silent: OnPrimarySilent,
}

fn two_seconds() -> DurationString {
    DurationString::new("2s")
}

fn one() -> i32 {
    1
}

fn least_lagged() -> Vec<Fallback> {
    vec![Fallback::LeastLagged]
}

fn half() -> i32 {
    50
}

/// Which members a Service leads to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Role {
    /// Replicas.
    #[default]
    Replica,
}

/// When a replica leaves.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Mode {
    /// At the limit.
    #[default]
    Balanced,
    /// Earlier, so that it is gone everywhere at the limit.
    Strict,
}

/// Who serves when too few replicas are fresh.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
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
    /// The word in the resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "Primary",
            Self::LeastLagged => "LeastLagged",
            Self::KeepLast => "KeepLast",
            Self::None => "None",
        }
    }
}

/// What to do while the primary gives no sign.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
pub enum OnPrimarySilent {
    /// Keep replicas that had all it last confirmed.
    #[default]
    Hold,
    /// Let proofs end.
    Expire,
}
