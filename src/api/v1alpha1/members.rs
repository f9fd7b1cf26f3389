//! Which servers make up a pool, and which of them is the primary.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{MAX_LABEL, MAX_MEMBERS, MAX_SELECTOR};

/// The servers of a pool.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Members {
    /// Selects pods of the pool's namespace by their labels. Every pod that matches is a member, so it should select the
    /// database's pods, primary and replicas alike, and no others. A pod serves only while it runs and is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<PodSelector>,
    /// TCP port that members are measured at. Default: 5432. It is the default of hosts[].port. Clients connect to the
    /// targetPort of the Service, which for pods may be another one, such as a pooler's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Servers at fixed addresses, for a database outside the cluster: up to 100, the primary included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_MEMBERS), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub hosts: Option<Vec<Host>>,
}

/// Selects pods by their labels. Not empty: that would select every pod of the namespace.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct PodSelector {
    /// Labels that a pod must have, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "labels")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements that a pod's labels must meet, all of them, besides matchLabels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SELECTOR), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<Requirement>>,
}

/// One requirement on a pod's labels.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// Key of the label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// In: the value is one of values. NotIn: it is none of them, or there is no such label. Exists: there is such a
    /// label. DoesNotExist: there is none.
    pub operator: Operator,
    /// The values for In and NotIn, at least one; none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SELECTOR), inner(length(max = MAX_LABEL)), extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// How a label is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values, or absent.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
}

impl Operator {
    /// The word in the resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}

/// A server at a fixed address.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// Name of the member, unique in the pool: lower-case letters, digits and dashes. Status, Events, metrics and logs use
    /// it, so it should stay when the address changes.
    #[schemars(length(min = 1, max = MAX_LABEL))]
    pub name: String,
    /// DNS name or IP address that is connected to for measuring. No port and no scheme.
    #[schemars(length(min = 1, max = 253))]
    pub host: String,
    /// TCP port that is connected to for measuring. Default: members.port. Since all endpoints of a Service share its
    /// targetPort, it must be the same for all hosts of a pool that publishes to Services.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,
    /// Zone of the server, copied to its endpoint for topology-aware routing. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_LABEL))]
    pub zone: Option<String>,
    /// IP address that clients are sent to, where it is not the one used for measuring, for example behind NAT. Default:
    /// host, or the address that it resolves to. Kubernetes refuses loopback and link-local addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 45))]
    pub publish_address: Option<String>,
}

/// How the primary is told apart.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Primary {
    /// Auto: the one member that says it is the primary. Label: the pod that carries podLabel, as an operator sets it;
    /// needs members.podSelector. Host: the member named by host. Default: Auto. While no member or more than one
    /// qualifies, what is published stays as it is.
    #[serde(default)]
    pub detect: Detect,
    /// The label that marks the primary's pod. For detect: Label only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_label: Option<PodLabel>,
    /// Name of the member that is the primary: a name of members.hosts, or of a pod. For detect: Host only. It does not
    /// follow a failover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub host: Option<String>,
}

/// How the primary is told apart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Detect {
    /// The one member that says it is.
    #[default]
    Auto,
    /// The pod that carries a label.
    Label,
    /// The member of that name.
    Host,
}

impl Detect {
    /// The word in the resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "Auto",
            Self::Label => "Label",
            Self::Host => "Host",
        }
    }
}

/// A label of a pod.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodLabel {
    /// Key of the label, for example cnpg.io/instanceRole.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// Value that marks the primary, for example primary.
    #[schemars(length(min = 1, max = MAX_LABEL))]
    pub value: String,
}

/// A map of labels, bounded.
fn labels(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "maxLength": MAX_LABEL },
        "maxProperties": MAX_SELECTOR,
    })
}
