//! What the API server holds, kept at hand by watches.
//!
//! Each watch is a stream of its own with its own pauses after errors, so that one that fails takes no other with it. The
//! server ends a watch after [`WATCH_FOR`], so that a connection that died without a word is noticed by then; a version
//! that is too old is answered by listing anew. Everything is listed anew each [`LIST_EVERY`] too, so that an event that was
//! lost on its way is made up for.

#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{Store, store};
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::{debug, warn};

/// How long the server lets one watch last, in seconds.
const WATCH_FOR: u32 = 40;
/// How often everything is listed anew.
const LIST_EVERY: Duration = Duration::from_secs(600);
/// The longest pause between two attempts of a watch.
const SLOWEST: Duration = Duration::from_secs(2);
/// A watch that has not failed for this long is well again.
const WELL_AFTER: Duration = Duration::from_secs(10);

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
        Self::listing_every(LIST_EVERY, apis, config, trim)
    }

    fn listing_every(every: Duration, apis: Vec<Api<K>>, config: &watcher::Config, trim: fn(&mut K)) -> Self {
        let (beat, pulse) = watch::channel(Pulse::default());
        let beat = Arc::new(beat);
        let mut cache = Self {
            stores: Vec::new(),
            pulse,
            tasks: Vec::new(),
        };
        for api in apis {
            let (reader, writer) = store();
            cache.stores.push(reader);
            let keeper = Keeper {
                writer,
                beat: beat.clone(),
                listed: false,
                failures: 0,
                pauses: ResetTimerBackoff::new(Pauses::default(), WELL_AFTER),
            };
            let config = config.clone().timeout(WATCH_FOR);
            cache.tasks.push(tokio::spawn(async move {
                let mut keeper = keeper;
                loop {
                    let events = watcher(api.clone(), config.clone()).modify(trim);
                    keeper.follow(events, every.mul_f64(0.9 + 0.2 * fastrand::f64())).await;
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

/// Keeps what one watch tells.
struct Keeper<K: Resource<DynamicType = ()> + Clone + 'static> {
    writer: Writer<K>,
    beat: Arc<watch::Sender<Pulse>>,
    listed: bool,
    failures: u32,
    /// An answer alone makes no watch well: of a server whose lists succeed and whose watches fail, everything would be asked
    /// without a pause.
    pauses: ResetTimerBackoff<Pauses>,
}

impl<K> Keeper<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    /// Follows `events` for this long, or until they can only be had by listing anew.
    async fn follow(&mut self, events: impl Stream<Item = watcher::Result<watcher::Event<K>>>, long: Duration) {
        let mut events = pin!(events);
        let mut end = pin!(sleep(long));
        loop {
            let event = tokio::select! {
                Some(event) = events.next() => event,
                () = &mut end => return,
            };
            match event {
                Ok(event) => self.learn(&event),
                Err(error) => {
                    self.complain(&error);
                    sleep(self.pauses.next().unwrap_or(SLOWEST)).await;
                    if is_expired(&error) {
                        return;
                    }
                }
            }
        }
    }

    fn learn(&mut self, event: &watcher::Event<K>) {
        self.failures = 0;
        let first = !self.listed && matches!(event, watcher::Event::InitDone);
        self.listed |= first;
        self.writer.apply_watcher_event(event);
        if !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_)) {
            self.beat.send_modify(|pulse| {
                pulse.version += 1;
                pulse.synced += usize::from(first);
            });
        }
    }

    fn complain(&mut self, error: &watcher::Error) {
        self.failures += 1;
        let (kind, failures) = (K::kind(&()), self.failures);
        if failures == 1 {
            warn!(%kind, %error, "a watch failed; it is tried again");
        } else {
            debug!(%kind, %error, failures, "a watch failed again");
        }
    }
}

/// Whether the version that a watch would begin at is too old. The library lists anew when a watch says so in its course; one
/// that is refused with it would be tried with the same version for ever.
fn is_expired(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 410,
        _ => false,
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
        Some(pause.min(SLOWEST).mul_f64(0.75 + 0.25 * fastrand::f64()))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.failures = 0;
    }
}
