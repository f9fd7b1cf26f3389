//! Looking after one pool: a pass whenever something changed, and nothing in between.
//!
//! A pass is a list of stages, one file each: gather what the pool refers to, put its loop into force, publish what the loop
//! decided, tell how it is. A stage that fails does not stop the ones that speak of it, and the pass is tried again.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::Api;
use kube::runtime::watcher;
use kube::{Client, Resource};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep_until;
use tracing::{info, warn};

use super::Shared;
use super::cache::{Cache, Pulse};
use super::error::ReconcileError;
use super::events::Teller;
use super::findings::Situation;
use super::gather::Gathered;
use super::secrets::Secrets;
use super::written::Written;
use crate::api::v1alpha1::{ReplicaPool, ReplicaPoolStatus};
use crate::api::{self, KIND};
use crate::policy::moment::Moment;
use crate::pool::{Config, Handle, NOTICES, View};
use crate::spec::{MemberSource, PoolSpec};
use crate::telemetry::events::{Notice, PoolKey, Recorder};

/// A loop that runs, and what it was told.
pub(super) struct Running {
    pub(super) handle: Handle,
    pub(super) config: Config,
    /// The generation of the pool that `config` follows.
    pub(super) follows: i64,
    decided: watch::Receiver<Arc<View>>,
}

impl Running {
    /// What the loop has decided.
    pub(super) fn view(&self) -> Arc<View> {
        self.decided.borrow().clone()
    }
}

/// What is kept of one pool between passes.
pub(super) struct Tended {
    pub(super) shared: Arc<Shared>,
    pub(super) key: PoolKey,
    pub(super) uid: String,
    pub(super) pods: Option<(String, Cache<Pod>)>,
    pub(super) slices: Option<(Vec<String>, Cache<EndpointSlice>)>,
    pub(super) ours: Cache<EndpointSlice>,
    pub(super) secrets: Secrets,
    pub(super) spec: Option<PoolSpec>,
    pub(super) running: Option<Running>,
    pub(super) written: Written,
    /// The status as last written by us.
    pub(super) told: Option<ReplicaPoolStatus>,
    /// The decisions that were last carried out, by service, so that the time to the acknowledgement is measured once.
    pub(super) carried: std::collections::BTreeMap<String, u64>,
    pub(super) led: bool,
    notices: mpsc::Sender<Notice>,
    leads: watch::Sender<bool>,
    failures: u32,
    /// When to make a pass even if nothing changes.
    pub(super) again: Option<Moment>,
}

/// Looks after `pool` until the task is ended, which is when its object is gone.
pub(super) async fn tend(shared: Arc<Shared>, pool: Arc<ReplicaPool>) {
    let namespace = pool.metadata.namespace.clone().unwrap_or_default();
    let name = pool.metadata.name.clone().unwrap_or_default();
    let uid = pool.metadata.uid.clone().unwrap_or_default();
    let (notices, told) = mpsc::channel(NOTICES);
    let teller = tell(shared.clone(), pool.object_ref(&()), told);
    let ours = format!(
        "{}={},{}={name}",
        api::LABEL_MANAGED_BY,
        api::MANAGED_BY,
        api::LABEL_POOL
    );
    let ours = watch_slices(shared.client.clone(), &namespace, &ours);
    let (leads, _) = watch::channel(false);
    let tended = Tended {
        key: PoolKey {
            namespace: Arc::from(namespace.as_str()),
            name: Arc::from(name.as_str()),
        },
        uid,
        pods: None,
        slices: None,
        ours,
        secrets: Secrets::new(shared.client.clone(), &namespace),
        spec: None,
        running: None,
        written: Written::default(),
        told: None,
        carried: std::collections::BTreeMap::new(),
        led: false,
        notices,
        leads,
        failures: 0,
        again: None,
        shared,
    };
    tokio::join!(tended.run(), teller);
}

impl Tended {
    async fn run(mut self) {
        info!(pool = %self.key.name, namespace = %self.key.namespace, "looking after the pool");
        let mut leadership = self.shared.leadership.clone();
        let (mut pools, mut services) = (self.shared.pools.pulse(), self.shared.services.pulse());
        loop {
            leadership.borrow_and_update();
            let began = self.shared.clock.now();
            let failed = self.pass().await.err();
            let took = self.shared.clock.now().since(began);
            self.shared
                .metrics
                .reconciled(&self.key, took, failed.as_ref().map(ReconcileError::category));
            let again = self.schedule(failed);
            let clock = self.shared.clock.clone();
            let timer = async move {
                match again {
                    Some(at) => sleep_until(clock.instant(at)).await,
                    None => std::future::pending().await,
                }
            };
            let decided = self.running.as_ref().map(|r| r.decided.clone());
            tokio::select! {
                () = timer => {}
                () = changed(&mut pools) => {}
                () = changed(&mut services) => {}
                () = pulsed(self.pods.as_ref().map(|(_, c)| c.pulse())) => {}
                () = pulsed(self.slices.as_ref().map(|(_, c)| c.pulse())) => {}
                () = pulsed(Some(self.ours.pulse())) => {}
                () = decides(decided) => {}
                () = self.leadership_turns(&mut leadership) => {}
            }
        }
    }

    /// One pass. Each stage is a file of its own.
    async fn pass(&mut self) -> Result<(), ReconcileError> {
        self.again = None;
        // Before anything is looked at: what changes from here on makes another pass.
        self.ours.mark();
        if let Some((_, cache)) = &mut self.pods {
            cache.mark();
        }
        if let Some((_, cache)) = &mut self.slices {
            cache.mark();
        }
        let Some(pool) = self.shared.pools.find(&self.key.namespace, &self.key.name) else {
            return Ok(());
        };
        self.follow_leadership().await;
        let mut situation = Situation {
            generation: pool.metadata.generation.unwrap_or(0),
            ..Situation::default()
        };
        let gathered = self.gather(&pool, &mut situation).await;
        if let Ok(Some(gathered)) = &gathered {
            self.put_into_force(gathered, &mut situation).await;
        }
        situation.spec.clone_from(&self.spec);
        if let Some(running) = &mut self.running {
            situation.settled = running.follows == situation.generation;
            situation.view = Some(View::clone(&running.decided.borrow_and_update()));
        }
        let published = match &gathered {
            Ok(Some(gathered)) if self.led => self.publish(gathered, &mut situation).await,
            _ => Ok(()),
        };
        if let Err(error) = &published {
            situation.failure = Some(error.told());
        }
        let told = if self.led && self.synced() {
            self.tell_status(&pool, &situation).await
        } else {
            Ok(())
        };
        gathered.map(drop).and(published).and(told)
    }

    /// Whether everything that a pass looks at has been seen once.
    pub(super) fn synced(&self) -> bool {
        let pods = self.pods.as_ref().is_none_or(|(_, cache)| cache.synced());
        let slices = self.slices.as_ref().is_none_or(|(_, cache)| cache.synced());
        pods && slices && self.ours.synced() && self.shared.services.synced() && self.shared.pools.synced()
    }

    /// Keeps the watches that the spec asks for, and no others.
    pub(super) fn watch(&mut self, spec: &PoolSpec) {
        let client = &self.shared.client;
        let selector = match &spec.members {
            MemberSource::Pods { selector, .. } => Some(selector.to_string()),
            MemberSource::Hosts(_) => None,
        };
        if self.pods.as_ref().map(|(s, _)| s) != selector.as_ref() {
            self.pods = selector.map(|selector| {
                let api = Api::namespaced(client.clone(), &self.key.namespace);
                let config = watcher::Config::default().labels(&selector);
                (selector, Cache::start(vec![api], &config, trim_pod))
            });
        }
        let services: Vec<String> = spec.services.iter().map(|s| s.name.to_string()).collect();
        if self.slices.as_ref().map(|(s, _)| s) != Some(&services) {
            let selector = format!("{} in ({})", api::LABEL_SERVICE_NAME, services.join(","));
            let cache = watch_slices(client.clone(), &self.key.namespace, &selector);
            self.slices = Some((services, cache));
        }
    }

    /// Starts the loop, or tells a running one what changed.
    pub(super) async fn put_into_force(&mut self, gathered: &Gathered, situation: &mut Situation) {
        let Some(config) = &gathered.config else { return };
        if let Some(running) = &mut self.running {
            running.follows = situation.generation;
            if running.config != *config {
                let mut config = config.clone();
                config.generation = running.config.generation + 1;
                running.config = config.clone();
                running.handle.configure(config).await;
            }
            return;
        }
        let recorder = Recorder::new(self.key.clone(), self.shared.metrics.clone());
        let (leads, clock) = (self.leads.subscribe(), self.shared.clock.clone());
        let published = gathered.published.clone();
        let handle = Handle::start(config.clone(), published, clock, recorder, leads, self.notices.clone());
        self.shared.registry.add(&self.key, &handle.asker());
        self.running = Some(Running {
            decided: handle.decided(),
            handle,
            config: config.clone(),
            follows: situation.generation,
        });
    }

    /// On beginning to lead: what is published is taken over before anything is decided to be written.
    async fn follow_leadership(&mut self) {
        let leads = self.shared.leadership.borrow().may_write(self.shared.clock.now());
        if leads == self.led {
            return;
        }
        if leads && self.synced() {
            let published = self.published();
            if let Some(running) = &self.running {
                running.handle.adopt(published).await;
                // The loop answers in order: when this report is here, the takeover has been decided on.
                drop(running.handle.asker().report().await);
            }
        }
        // A leader that has not seen what is published does not lead yet.
        self.led = leads && self.synced();
        if self.led != leads {
            self.again = Some(self.shared.clock.now() + Duration::from_millis(50));
        }
        self.leads.send_replace(self.led);
        self.told = None;
    }

    /// Waits until this process begins or ceases to lead; a mere renewal is no change.
    async fn leadership_turns(&self, leadership: &mut watch::Receiver<crate::leader::Leadership>) {
        let (clock, led) = (self.shared.clock.clone(), self.led);
        let turned = leadership.wait_for(|now| now.may_write(clock.now()) != led);
        if turned.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Has people told, as an Event.
    pub(super) fn tell_people(&self, notice: Notice) {
        if self.notices.try_send(notice).is_err() {
            warn!(pool = %self.key.name, namespace = %self.key.namespace, "an Event was dropped: too many wait");
        }
    }

    fn schedule(&mut self, failed: Option<ReconcileError>) -> Option<Moment> {
        let now = self.shared.clock.now();
        let refused = self.running.as_ref().is_some_and(|r| r.decided.borrow().refuses_us());
        let mut again = self
            .spec
            .as_ref()
            .map(|_| self.secrets.due(refused).max(now + Duration::from_millis(100)));
        again = earliest(earliest(again, self.again), self.written.ends());
        match failed {
            None => self.failures = 0,
            Some(error) => {
                if self.failures == 0 {
                    warn!(pool = %self.key.name, namespace = %self.key.namespace, error = error.told(), "a pass over the pool failed; it is made again");
                }
                again = earliest(again, Some(now + error.retry(self.failures)));
                self.failures = self.failures.saturating_add(1);
            }
        }
        again
    }
}

impl Drop for Tended {
    fn drop(&mut self) {
        self.shared.registry.remove(&self.key);
        let services = self
            .spec
            .as_ref()
            .map(|s| s.services.iter().map(|s| s.name.to_string()).collect::<Vec<_>>());
        let services = services.unwrap_or_default();
        let services: Vec<&str> = services.iter().map(String::as_str).collect();
        self.shared.metrics.forget(&self.key, &services);
    }
}

fn earliest(a: Option<Moment>, b: Option<Moment>) -> Option<Moment> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

async fn changed(pulse: &mut watch::Receiver<Pulse>) {
    if pulse.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn pulsed(pulse: Option<watch::Receiver<Pulse>>) {
    match pulse {
        Some(mut pulse) => changed(&mut pulse).await,
        None => std::future::pending().await,
    }
}

async fn decides(decided: Option<watch::Receiver<Arc<View>>>) {
    match decided {
        Some(mut decided) => {
            if decided.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        None => std::future::pending().await,
    }
}

fn watch_slices(client: Client, namespace: &str, selector: &str) -> Cache<EndpointSlice> {
    let api = Api::namespaced(client, namespace);
    Cache::start(vec![api], &watcher::Config::default().labels(selector), |_| {})
}

/// Keeps of a pod what members are made of.
fn trim_pod(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    pod.metadata.annotations = None;
}

/// Writes what people should be told as Events, while this process leads.
async fn tell(shared: Arc<Shared>, pool: ObjectReference, mut notices: mpsc::Receiver<Notice>) {
    let mut teller = Teller::new(
        shared.client.clone(),
        shared.clock.clone(),
        shared.instance.clone(),
        pool.clone(),
    );
    while let Some(notice) = notices.recv().await {
        if shared.leadership.borrow().may_write(shared.clock.now()) {
            let pod = notice.member.as_ref().map(|member| ObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Pod".into()),
                namespace: pool.namespace.clone(),
                name: Some(member.to_string()),
                ..ObjectReference::default()
            });
            teller.tell(&notice, pod).await;
        }
    }
    debug_assert_eq!(pool.kind.as_deref(), Some(KIND));
}
