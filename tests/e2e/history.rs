//! Every list that was ever published, in order: a watch sees each write, however short its effect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::task::JoinHandle;

use crate::support::wait::until;

/// The names that one Service leads to, sorted.
pub(crate) type List = Vec<String>;

/// What one Service led to since this was begun. The watch ends when it is dropped.
pub(crate) struct History {
    lists: Arc<Mutex<Vec<List>>>,
    task: JoinHandle<()>,
}

impl History {
    /// Begins with what is published now.
    pub(crate) async fn begin(client: Client, namespace: &str, service: &str) -> Self {
        let lists: Arc<Mutex<Vec<List>>> = Arc::default();
        let selector = format!("kubernetes.io/service-name={service}");
        let config = watcher::Config::default().labels(&selector).timeout(60);
        let api: Api<EndpointSlice> = Api::namespaced(client, namespace);
        let told = lists.clone();
        let task = tokio::spawn(async move {
            let mut slices: BTreeMap<String, EndpointSlice> = BTreeMap::new();
            let mut events = std::pin::pin!(watcher(api, config).default_backoff());
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Apply(slice) | Event::InitApply(slice)) => drop(slices.insert(slice.name_any(), slice)),
                    Ok(Event::Delete(slice)) => drop(slices.remove(&slice.name_any())),
                    Ok(Event::InitDone) => {}
                    Ok(Event::Init) | Err(_) => continue,
                }
                let list = listed(slices.values());
                let mut told = told.lock().unwrap();
                if told.last() != Some(&list) {
                    told.push(list);
                }
            }
        });
        let history = Self { lists, task };
        until("the watch has begun", async || {
            !history.lists.lock().unwrap().is_empty()
        })
        .await;
        history
    }

    /// Exactly these lists were published. The watch may hear of the last one after somebody who asked.
    pub(crate) async fn was(&self, lists: &[Vec<&str>]) {
        let last = lists.last().unwrap();
        until(&format!("the watch sees {last:?}"), async || {
            self.lists().last().is_some_and(|l| l == last)
        })
        .await;
        assert_eq!(self.lists(), lists);
    }

    /// Every list, oldest first; neighbours differ.
    pub(crate) fn lists(&self) -> Vec<List> {
        self.lists.lock().unwrap().clone()
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The names in slices, sorted: of the pod, or of the member when it is none.
pub(crate) fn listed<'a>(slices: impl IntoIterator<Item = &'a EndpointSlice>) -> List {
    let endpoints = slices.into_iter().flat_map(|s| &s.endpoints);
    let name = |e: &k8s_openapi::api::discovery::v1::Endpoint| {
        let target = e.target_ref.as_ref().and_then(|t| t.name.clone());
        target.unwrap_or_else(|| e.addresses.join(","))
    };
    let mut names: List = endpoints.map(name).collect();
    names.sort();
    names
}
