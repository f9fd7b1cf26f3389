//! What the API server holds, kept at hand by watches.
//!
//! Each watch is a stream of its own with its own pauses after errors, so that one that fails takes no other with it. The
//! server ends a watch after [`WATCH_FOR`], so that a connection that died without a word is noticed by then; a version
//! that is too old is answered by listing anew, which the library does.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{Store, store};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

/// How long the server lets one watch last, in seconds.
const WATCH_FOR: u32 = 40;

/// Objects of one kind, of one or several namespaces. The watches end when this is dropped.
#[derive(Debug)]
pub(super) struct Cache<K: Resource<DynamicType = ()> + Clone + 'static> {
    stores: Vec<Store<K>>,
    pulse: watch::Receiver<Pulse>,
    tasks: Vec<JoinHandle<()>>,
}

/// Changes with whatever a cache learns.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Pulse {
    version: u64,
    /// How many of the watches have listed everything once.
    synced: usize,
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Watches `apis` for what `config` selects, keeping of each object what `trim` leaves.
    pub(super) fn start(apis: Vec<Api<K>>, config: &watcher::Config, trim: fn(&mut K)) -> Self {
        let (beat, pulse) = watch::channel(Pulse::default());
        let beat = Arc::new(beat);
        let mut cache = Self {
            stores: Vec::new(),
            pulse,
            tasks: Vec::new(),
        };
        for api in apis {
            let (reader, mut writer) = store();
            let beat = beat.clone();
            let config = config.clone().timeout(WATCH_FOR);
            let stream = watcher(api, config).modify(trim).backoff(Pauses::default());
            cache.stores.push(reader);
            cache.tasks.push(tokio::spawn(async move {
                let mut stream = std::pin::pin!(stream.into_stream());
                let mut failures = 0_u32;
                let mut listed = false;
                // The stream never ends; an error is followed by another attempt.
                while let Some(event) = stream.next().await {
                    match event {
                        Ok(event) => {
                            failures = 0;
                            let first = !listed && matches!(event, watcher::Event::InitDone);
                            listed |= first;
                            writer.apply_watcher_event(&event);
                            if !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_)) {
                                beat.send_modify(|pulse| {
                                    pulse.version += 1;
                                    pulse.synced += usize::from(first);
                                });
                            }
                        }
                        Err(error) => {
                            failures += 1;
                            let kind = K::kind(&());
                            if failures == 1 {
                                warn!(%kind, %error, "a watch failed; it is tried again");
                            } else {
                                debug!(%kind, %error, failures, "a watch failed again");
                            }
                        }
                    }
                }
            }));
        }
        cache
    }

    /// Whether everything has been listed once.
    pub(super) fn synced(&self) -> bool {
        self.pulse.borrow().synced == self.stores.len()
    }

    /// Takes note of what is known now: a later [`Self::pulse`] changes with what is learned after.
    pub(super) fn mark(&mut self) {
        self.pulse.mark_unchanged();
    }

    /// Changes with whatever is learned.
    pub(super) fn pulse(&self) -> watch::Receiver<Pulse> {
        self.pulse.clone()
    }

    /// Everything.
    pub(super) fn all(&self) -> Vec<Arc<K>> {
        self.stores.iter().flat_map(Store::state).collect()
    }

    /// One object by its name.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let wanted = |o: &K| o.name_any() == name && o.namespace().as_deref() == Some(namespace);
        self.stores.iter().find_map(|store| store.find(wanted))
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Drop for Cache<K> {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Pauses after failures in a row: 0.2 s, doubling up to 2 s, spread by a quarter. An API server that comes back is so found
/// within two seconds, and hundreds of watches do not come at once.
#[derive(Debug, Default)]
struct Pauses {
    failures: u32,
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = Duration::from_millis(200) * 2_u32.pow(self.failures.min(4));
        self.failures += 1;
        Some(pause.min(Duration::from_secs(2)).mul_f64(0.75 + 0.25 * fastrand::f64()))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.failures = 0;
    }
}
