//! What is so, as Lagwarden sees it. Written on transitions only; lag in figures is in metrics and the HTTP API, so that
//! a quiet pool costs no write.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{MAX_LABEL, MAX_MEMBERS, MAX_SERVICES};

/// What is so.
#[derive(Clone, PartialEq, Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaPoolStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Reconciling, Stalled, PrimaryResolved, MeasurementHealthy, EndpointsPublished, FallbackActive, Paused. Each
    /// has a reason in one word and a message in full sentences, with figures as of the transition. Ready means that the
    /// spec is accepted and what is published follows it; lagging replicas leave it True.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// Replicas in the strictest service because they are fresh, of all replicas, such as 2/3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub summary: Option<String>,
    /// The services' limits, the strictest first, such as 2s,1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub staleness: Option<String>,
    /// The fallback in force in the strictest service that has one in force, or - when none has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub fallback: Option<String>,
    /// What a person should look at first, in one word: the reason of Stalled or of Ready when these are not well, the
    /// state of the worst service otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub reason: Option<String>,
    /// The member that is the primary. Absent while none is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<PrimaryStatus>,
    /// Every member, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_MEMBERS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub members: Vec<MemberStatus>,
    /// Every service, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_SERVICES), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub services: Vec<ServiceStatus>,
}

/// The member that is the primary.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PrimaryStatus {
    /// Name of the member.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Address and port that it is measured at.
    #[schemars(length(max = 320))]
    pub address: String,
    /// Since when it is the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// One member, as the strictest service sees it.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberStatus {
    /// Name of the pod, or as in members.hosts.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Address and port that it is measured at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 320))]
    pub address: Option<String>,
    /// Primary, Replica or Unknown: what its server said last.
    #[schemars(length(max = MAX_LABEL))]
    pub role: String,
    /// Pending, Serving, Lagging, Recovering or Excluded in the strictest service. Absent for the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub state: Option<String>,
    /// Why it is in that state, in one word, such as CaughtUp, ApplyLag or Unreachable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub reason: Option<String>,
    /// Since when it is in that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

/// One read Service.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// Name of the Service.
    #[schemars(length(max = MAX_LABEL))]
    pub name: String,
    /// Normal, Degraded, PrimarySilent, Fallback, Exhausted, Frozen, ControllerIsolated, ColdStart or Paused.
    #[schemars(length(max = MAX_LABEL))]
    pub state: String,
    /// Why it is in that state, in one word; for Fallback the fallback in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub reason: Option<String>,
    /// Names of the members that the Service leads to, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_MEMBERS), inner(length(max = 253)), extend("x-kubernetes-list-type" = "atomic"))]
    pub endpoints: Vec<String>,
    /// How many replicas are in the Service because they are fresh, not by floor or fallback.
    #[schemars(range(min = 0))]
    pub ready: i32,
    /// How many replicas the pool has.
    #[schemars(range(min = 0))]
    pub total: i32,
    /// Since when it is in that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}
