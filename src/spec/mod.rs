//! From what was written to what is meant: a [`PoolSpec`] can exist only if the pool is valid.
//!
//! Parse, don't validate: later stages hold a `PoolSpec` and cannot meet a mistake any more. Every mistake of a pool is
//! found at once, and each names the field, what is wrong with it and what to write instead. The API server refuses the
//! same at admission ([`crate::api::rules`]); it is checked again here because an object may be older than a rule, and
//! because a pool in a file has no API server. This knows no client and no time: objects that a pool refers to are handed
//! in ([`resolve`]), and what they lack is told in the same way.
//!
//! Reading order: this file, [`error`], then [`resolve`] (objects) and [`file`](mod@file) (pools in files).

mod connection;
pub mod error;
pub mod file;
mod members;
pub mod resolve;
mod selector;
mod services;
mod syntax;

use crate::api::v1alpha1::{DeletionPolicy, EngineKind, ReplicaPool};
use crate::policy::settings::{Detection, PoolSettings};

pub use connection::{CaRef, Connection, CredentialsRef, Tls};
pub use error::SpecError;
pub use members::{HostMember, MemberSource, PrimarySource};
pub use selector::Selector;
pub use services::ReadService;

/// A valid pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PoolSpec {
    /// Its namespace; `default` where none was written.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The generation that this was parsed from; 0 for a pool that was never stored.
    pub generation: i64,
    /// The engine of every member.
    pub engine: EngineKind,
    /// Where members come from.
    pub members: MemberSource,
    /// Which member may be the primary.
    pub primary: PrimarySource,
    /// How servers are connected to.
    pub connection: Connection,
    /// The read Services, in the order written: the same as in [`PoolSettings::services`].
    pub services: Vec<ReadService>,
    /// What decisions are made by.
    pub settings: PoolSettings,
    /// What becomes of what was published when the pool is deleted.
    pub deletion: DeletionPolicy,
}

impl PoolSpec {
    /// Parses `pool`, or says everything that is wrong with it.
    pub fn try_new(pool: &ReplicaPool) -> Result<Self, Vec<SpecError>> {
        let mut mistakes = error::Mistakes::default();
        let name = name(pool, &mut mistakes);
        let spec = &pool.spec;
        let members = members::source(&spec.members, &mut mistakes);
        let primary = members::primary(&spec.primary, &spec.members, &mut mistakes);
        let connection = connection::connection(spec, &mut mistakes);
        let settings = services::settings(&spec.services, &spec.measurement, &spec.members, &mut mistakes);
        let (Some(members), Some(primary), Some(connection), Some((services, periods)), true) =
            (members, primary, connection, settings, mistakes.0.is_empty())
        else {
            return Err(mistakes.0);
        };
        let read = services
            .iter()
            .zip(&spec.services)
            .map(|(settings, service)| ReadService {
                name: settings.name.clone(),
                create: service.create,
            });
        Ok(Self {
            namespace: pool.metadata.namespace.clone().unwrap_or_else(|| "default".into()),
            name,
            generation: pool.metadata.generation.unwrap_or(0),
            engine: spec.engine,
            members,
            services: read.collect(),
            settings: PoolSettings {
                detection: match primary {
                    PrimarySource::Any => Detection::Auto,
                    PrimarySource::Label { .. } | PrimarySource::Named(_) => Detection::Designated,
                },
                periods,
                services,
                paused: spec.paused,
            },
            primary,
            connection,
            deletion: spec.deletion_policy,
        })
    }
}

fn name(pool: &ReplicaPool, mistakes: &mut error::Mistakes) -> String {
    let name = pool.metadata.name.clone().unwrap_or_default();
    mistakes.expect(
        syntax::is_dns_name(&name),
        "metadata.name",
        format!("{name:?} is not a name"),
        "use lower-case letters, digits, dashes and dots",
    );
    mistakes.expect(
        name.len() <= members::MAX_NAME,
        "metadata.name",
        format!(
            "has {} characters, and it is written to a label, which holds {}",
            name.len(),
            members::MAX_NAME
        ),
        "choose a shorter name",
    );
    name
}
