//! Kubernetes' side of the product: pools come in as objects, and what is decided goes out as objects.
//!
//! [`run`] keeps a task per pool ([`tend`]), each with a loop of its own ([`crate::pool`]). This module is the only writer
//! of a pool's objects: slices, Services that are to be made, status, Events; each write is bounded by the leadership that
//! it was begun under. A process that stands by does everything but write, so that it is warm when its turn comes.
//!
//! Reading order: [`tend`] (a pass and its stages), then the stages: [`gather`], [`publish`], [`report`]; [`findings`] and
//! [`status`] say how a pool is, and are pure.

mod cache;
pub mod error;
mod events;
pub mod findings;
mod gather;
mod publish;
mod report;
mod secrets;
pub mod status;
mod tend;
mod written;
mod zones;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use k8s_openapi::api::core::v1::Service;
use kube::api::Api;
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::info;

use self::cache::Cache;
use self::zones::Zones;
use crate::api::v1alpha1::ReplicaPool;
use crate::clock::Clock;
use crate::leader::Leadership;
use crate::policy::moment::Moment;
use crate::pool::registry::Registry;
use crate::telemetry::metrics::Metrics;

/// How long one write may take, when the leadership lasts that long.
const WRITE_WITHIN: Duration = Duration::from_secs(2);

/// Which namespaces are looked after.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All.
    Cluster,
    /// These.
    Namespaces(Vec<String>),
}

/// What a controller needs.
pub struct Parts {
    /// The API server.
    pub client: Client,
    /// Which namespaces are looked after.
    pub scope: Scope,
    /// The process's clock.
    pub clock: Clock,
    /// The process's metrics.
    pub metrics: Metrics,
    /// The loops that run, for those that look.
    pub registry: Registry,
    /// Whether this process publishes.
    pub leadership: watch::Receiver<Leadership>,
    /// The process's name in Events.
    pub instance: String,
}

/// What all pools share.
struct Shared {
    client: Client,
    clock: Clock,
    metrics: Metrics,
    registry: Registry,
    leadership: watch::Receiver<Leadership>,
    instance: String,
    pools: Cache<ReplicaPool>,
    services: Cache<Service>,
    zones: Zones,
}

/// Looks after every pool of the scope until `shutdown` says true. `synced` becomes true when the watches have shown
/// everything once.
pub async fn run(parts: Parts, synced: watch::Sender<bool>, mut shutdown: watch::Receiver<bool>) -> anyhow::Result<()> {
    let client = &parts.client;
    let shared = Arc::new(Shared {
        pools: Cache::start(apis(client, &parts.scope), &watcher::Config::default(), trim),
        services: Cache::start(apis(client, &parts.scope), &watcher::Config::default(), trim),
        zones: Zones::new(client.clone()),
        client: client.clone(),
        clock: parts.clock,
        metrics: parts.metrics,
        registry: parts.registry,
        leadership: parts.leadership,
        instance: parts.instance,
    });
    let mut tended: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
    let (mut pools, mut services) = (shared.pools.pulse(), shared.services.pulse());
    loop {
        if shared.pools.synced() {
            match_up(&shared, &mut tended);
        }
        synced.send_if_modified(|told| {
            let now = shared.pools.synced() && shared.services.synced();
            std::mem::replace(told, now) != now
        });
        if let Some(name) = tended.iter().find(|(_, task)| task.is_finished()).map(|(name, _)| name) {
            bail!("the task that looks after pool {name} ended, which it never does by itself");
        }
        tokio::select! {
            changed = pools.changed() => changed?,
            changed = services.changed() => changed?,
            // A task that ended is noticed within this time.
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            _ = shutdown.wait_for(|ending| *ending) => break,
        }
    }
    for task in tended.values() {
        task.abort();
    }
    Ok(())
}

/// One task for each pool that is there, and none for one that is not.
fn match_up(shared: &Arc<Shared>, tended: &mut BTreeMap<String, JoinHandle<()>>) {
    let pools = shared.pools.all();
    let id = |pool: &ReplicaPool| pool.uid().unwrap_or_default();
    tended.retain(|uid, task| {
        let there = pools.iter().any(|pool| id(pool) == *uid);
        if !there {
            task.abort();
        }
        there
    });
    for pool in pools {
        tended.entry(id(&pool)).or_insert_with(|| {
            info!(pool = %pool.name_any(), namespace = pool.namespace(), "a pool is there");
            tokio::spawn(tend::tend(shared.clone(), pool))
        });
    }
}

/// For how long a write that is sent now may be waited for; absent when none may be sent.
fn within(leadership: &Leadership, now: Moment) -> Option<Duration> {
    leadership.write_within(now).map(|left| left.min(WRITE_WITHIN))
}

fn apis<K>(client: &Client, scope: &Scope) -> Vec<Api<K>>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + DeserializeOwned,
{
    match scope {
        Scope::Cluster => vec![Api::all(client.clone())],
        Scope::Namespaces(names) => names.iter().map(|n| Api::namespaced(client.clone(), n)).collect(),
    }
}

/// Nobody here reads what else is in an object's metadata.
fn trim<K: Resource>(object: &mut K) {
    object.managed_fields_mut().clear();
}
