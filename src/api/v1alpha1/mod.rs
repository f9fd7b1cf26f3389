//! `ReplicaPool`, version `v1alpha1`: the fields, their documentation, and nothing else.
//!
//! The doc comments are the users' manual: they become the descriptions in the resource definition, and so what
//! `kubectl explain` shows. Each says what the field means, its unit, its default, and what it has to do with others.
//! Defaults stand in the schema only where they depend on nothing else; the others are computed when the pool is parsed.
//!
//! Numbers are signed, because the API server warns about unsigned formats, and every list and text is bounded, because
//! rules over unbounded ones are refused.

#![expect(
    clippy::doc_markdown,
    reason = "the doc comments of fields are shown to users as plain text"
)]

mod connection;
mod members;
mod services;
mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use connection::{Credentials, Measurement, Tls, TlsMode};
pub use members::{Detect, Host, Members, Operator, PodLabel, PodSelector, Primary, Requirement};
pub use services::{Fallback, Mode, OnPrimarySilent, Role, Service};
pub use status::{MemberStatus, PrimaryStatus, ReplicaPoolStatus, ServiceStatus};

/// What is wanted: the servers, how to measure them, and the read Services to keep true.
#[derive(CustomResource, Clone, PartialEq, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "lagwarden.io",
    version = "v1alpha1",
    kind = "ReplicaPool",
    plural = "replicapools",
    singular = "replicapool",
    shortname = "rpool",
    namespaced,
    status = "ReplicaPoolStatus",
    derive = "PartialEq",
    doc = "A ReplicaPool keeps read Services of one database true: only replicas that are proven to be caught up are in \
           their endpoints, and when none is, a declared fallback decides."
)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaPoolSpec {
    /// The database engine of every member. Only postgresql is supported, versions 14 to 18. It cannot be changed:
    /// another engine is another pool.
    pub engine: EngineKind,
    /// Which servers make up the pool, the primary included: exactly one of podSelector and hosts. Switching from one to
    /// the other is allowed; the members are then measured anew.
    pub members: Members,
    /// How the primary is told apart. Default: every server is asked. Whatever is chosen, a member counts as the primary
    /// only when its server says so too.
    #[serde(default)]
    pub primary: Primary,
    /// The account that servers are measured with, from a Secret of the pool's namespace. A changed Secret is picked up
    /// without a restart.
    pub credentials: Credentials,
    /// Name of the database to connect to. Default: postgres. Nothing is read from its tables: any database that the
    /// account may connect to will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub database: Option<String>,
    /// How connections to the servers are encrypted and verified. Default: encrypted, with any certificate.
    #[serde(default)]
    pub tls: Tls,
    /// How often servers are asked. The defaults follow from the smallest maxStaleness of the services and suit most
    /// pools; change them to trade load for speed.
    #[serde(default, skip_serializing_if = "Measurement::is_default")]
    pub measurement: Measurement,
    /// The read Services to keep true, each with a limit of its own over the same members: 1 to 8, unique by name.
    #[schemars(length(min = 1, max = super::MAX_SERVICES), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub services: Vec<Service>,
    /// What becomes of the published endpoints when the pool is deleted. Delete: they are deleted with it, and so are the
    /// Services that were made because of create. Retain: both stay as they are, and nobody updates them. Default: Delete.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Freezes what is published, whatever is measured: nobody leaves and nobody joins until it is false again. Measuring
    /// goes on. Default: false.
    #[serde(default)]
    pub paused: bool,
}

/// A database engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// PostgreSQL, with physical standbys.
    Postgresql,
}

impl EngineKind {
    /// The word in the resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
        }
    }
}

/// What becomes of what was published when the pool is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Deleted with the pool.
    #[default]
    Delete,
    /// Left as it is.
    Retain,
}
