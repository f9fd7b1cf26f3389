//! Which loops run in this process, for those that look: HTTP and the scrape.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use futures::future::join_all;

use super::{Asker, View};
use crate::telemetry::events::PoolKey;

/// The running loops by pool. Clones share it; readers never wait for writers.
#[derive(Clone, Default, Debug)]
pub struct Registry(Arc<ArcSwap<BTreeMap<PoolKey, Asker>>>);

impl Registry {
    /// Notes that the loop of `pool` runs.
    pub fn add(&self, pool: &PoolKey, asker: &Asker) {
        self.0.rcu(|pools| {
            let mut pools = BTreeMap::clone(pools);
            pools.insert(pool.clone(), asker.clone());
            pools
        });
    }

    /// Notes that it does not any more.
    pub fn remove(&self, pool: &PoolKey) {
        self.0.rcu(|pools| {
            let mut pools = BTreeMap::clone(pools);
            pools.remove(pool);
            pools
        });
    }

    /// What the loop of `pool` knows; absent when there is none, or it does not answer within a second.
    pub async fn report(&self, pool: &PoolKey) -> Option<View> {
        let asker = self.0.load().get(pool).cloned()?;
        asker.report().await
    }

    /// What every loop knows that answers within a second, by pool.
    pub async fn reports(&self) -> Vec<(PoolKey, View)> {
        let pools = self.0.load_full();
        let asked = pools
            .iter()
            .map(|(key, asker)| async move { Some((key.clone(), asker.report().await?)) });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// How many loops run.
    pub fn len(&self) -> usize {
        self.0.load().len()
    }

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
