//! Eyes on a stage: what is published, what status and Events say, and waiting for it.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use lagwarden::api::v1alpha1::ReplicaPoolStatus;
use serde_json::Value;

use crate::clients::Clients;
use crate::history::{History, List, listed};
use crate::stage::{SERVICE, Stage};
use crate::support::cluster::Write;
use crate::support::wait::until;

impl Stage {
    /// The slices of the read Service.
    pub(crate) async fn published(&self) -> Vec<EndpointSlice> {
        let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={SERVICE}"));
        self.slices().list(&of_service).await.unwrap().items
    }

    /// The names that the read Service leads to, sorted.
    pub(crate) async fn listed(&self) -> List {
        listed(&self.published().await)
    }

    /// The names that this Service leads to, sorted.
    pub(crate) async fn listed_in(&self, service: &str) -> List {
        let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        listed(&self.slices().list(&of_service).await.unwrap().items)
    }

    /// Waits until the read Service leads to exactly these.
    pub(crate) async fn until_listed(&self, names: &[&str]) {
        self.until_listed_in(SERVICE, names).await;
    }

    /// Waits until this Service leads to exactly these.
    pub(crate) async fn until_listed_in(&self, service: &str, names: &[&str]) {
        until(&format!("{service} lists {names:?}"), async || {
            self.listed_in(service).await == names
        })
        .await;
    }

    /// Everything that the read Service leads to from now on.
    pub(crate) async fn history(&self) -> History {
        History::begin(self.client.clone(), &self.namespace, SERVICE).await
    }

    async fn status(&self) -> ReplicaPoolStatus {
        let pool = self.pools().get_status("orders").await.unwrap();
        pool.status.unwrap_or_default()
    }

    /// Waits until the status says that the read Service is in this state.
    pub(crate) async fn until_state(&self, state: &str) {
        until(&format!("the status says {state}"), async || {
            let status = self.status().await;
            status.services.first().is_some_and(|s| s.state == state)
        })
        .await;
    }

    /// The read Service stays in this state for longer than any proof lasts, by the controller's own count: whoever may
    /// still leave would have left.
    pub(crate) async fn lasts(&self, state: &str) {
        until(&format!("{state} lasts"), async || {
            let known = self.controllers[0].knows().await.unwrap();
            let service = &known["services"][0];
            assert_eq!(service["state"], state, "{service}");
            service["sinceSecondsAgo"].as_f64().unwrap() > 5.0
        })
        .await;
    }

    /// Waits until the status gives this reason for the state of a member.
    pub(crate) async fn until_reason(&self, member: &str, state: &str, reasons: &[&str]) {
        until(&format!("{member} is {state} because of {reasons:?}"), async || {
            let status = self.status().await;
            let found = status.members.iter().find(|m| m.name == member);
            found.is_some_and(|m| {
                m.state.as_deref() == Some(state) && m.reason.as_deref().is_some_and(|r| reasons.contains(&r))
            })
        })
        .await;
    }

    /// Watches a standby until it has left. In every moment that is looked at, it is in the list exactly when it is proven to
    /// be within the limit.
    pub(crate) async fn leaves_in_time(&self, name: &str) {
        until(&format!("{name} has left"), async || {
            let (is_in, upper) = self.known(name).await;
            assert_eq!(is_in, upper.is_some_and(|u| u <= 2.0), "{name}: {upper:?}");
            !is_in
        })
        .await;
    }

    /// Watches a standby until it has left, which it must do before its last proof is too old.
    pub(crate) async fn leaves_early(&self, name: &str) {
        until(&format!("{name} has left"), async || {
            let (is_in, upper) = self.known(name).await;
            assert!(upper.is_some_and(|u| u < 2.0), "{name}: {upper:?}");
            !is_in
        })
        .await;
    }

    /// Whether the first controller has a standby in the list, and what is proven of its staleness, in seconds.
    async fn known(&self, name: &str) -> (bool, Option<f64>) {
        let known = self.controllers[0].knows().await.unwrap();
        let of = |all: &Value| {
            all.as_array()
                .unwrap()
                .iter()
                .find(|m| m["name"] == name)
                .cloned()
                .unwrap()
        };
        let seat = of(&known["services"][0]["members"]);
        let member = of(&known["members"]);
        (
            seat["inService"].as_bool().unwrap(),
            member["stalenessSeconds"]["upper"].as_f64(),
        )
    }

    /// A condition of a pool.
    pub(crate) async fn condition(&self, pool: &str, kind: &str) -> Option<Condition> {
        let status = self.pools().get_status(pool).await.unwrap().status?;
        status.conditions.into_iter().find(|c| c.type_ == kind)
    }

    /// Waits until a condition of the pool says `status` for `reason`, and answers its message.
    pub(crate) async fn until_condition(&self, kind: &str, status: &str, reason: &str) -> String {
        self.until_condition_of("orders", kind, status, reason).await
    }

    /// Waits until a condition of this pool says `status` for `reason`, and answers its message.
    pub(crate) async fn until_condition_of(&self, pool: &str, kind: &str, status: &str, reason: &str) -> String {
        let mut message = String::new();
        until(&format!("{kind} of {pool} is {status} for {reason}"), async || {
            let found = self.condition(pool, kind).await;
            let found = found.filter(|c| c.status == status && c.reason == reason);
            message = found.as_ref().map(|c| c.message.clone()).unwrap_or_default();
            found.is_some()
        })
        .await;
        message
    }

    /// The notes of all Events about the pool with this reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let fits = all.into_iter().filter(|e| e.reason.as_deref() == Some(reason));
        fits.filter_map(|e| e.note).collect()
    }

    /// Waits until there is an Event with this reason, and answers its note.
    pub(crate) async fn until_event(&self, reason: &str) -> String {
        let mut note = String::new();
        until(&format!("an Event {reason}"), async || {
            note = self.events(reason).await.pop().unwrap_or_default();
            !note.is_empty()
        })
        .await;
        note
    }

    /// Clients of the read Service.
    pub(crate) async fn clients(&self) -> Clients {
        let address = self.cluster_address(SERVICE).await.ip().to_string();
        let names = self
            .networks
            .iter()
            .map(|(name, n)| (n.address, name.clone()))
            .collect();
        Clients::new(&address, self.maker.password(), names)
    }

    /// The cluster's own address of a Service.
    pub(crate) async fn cluster_address(&self, service: &str) -> SocketAddr {
        let service = self.services().get(service).await.unwrap();
        let address = service.spec.unwrap().cluster_ip.unwrap();
        SocketAddr::new(address.parse().unwrap(), 5432)
    }

    /// Runs kubectl in this stage's namespace, and answers what it says.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let all = [&["--namespace", &self.namespace], arguments].concat();
        self.cluster.kubectl(&all).await
    }

    /// Every write that this row's controllers asked the API server for, except the renewal of their Lease.
    pub(crate) fn writes(&self) -> Vec<Write> {
        let users: Vec<&str> = self.controllers.iter().map(|c| c.user.as_str()).collect();
        let all = self.cluster.writes().into_iter();
        all.filter(|w| users.contains(&w.user.as_str()) && w.resource != "leases")
            .collect()
    }

    /// The number of such writes, once what is under way is done.
    pub(crate) async fn settled(&self) -> usize {
        let mut writes = self.writes().len();
        until("no write follows the last one for three seconds", async || {
            tokio::time::sleep(Duration::from_secs(3)).await;
            let now = self.writes().len();
            std::mem::replace(&mut writes, now) == now
        })
        .await;
        writes
    }

    /// What somebody would look at when the row failed.
    pub(crate) async fn tell(&self) -> String {
        let mut told = Vec::new();
        for controller in &self.controllers {
            let log = controller.log();
            let lines: Vec<&str> = log.lines().collect();
            let end = lines[lines.len().saturating_sub(40)..].join("\n");
            told.push(format!("--- log of {}\n{end}", controller.user));
        }
        let pools = self.pools().list(&ListParams::default()).await.map(|l| l.items);
        for pool in pools.unwrap_or_default() {
            let status = serde_json::to_string(&pool.status).unwrap();
            told.push(format!("--- status of {}: {status}", pool.name_any()));
        }
        let slices = self.slices().list(&ListParams::default()).await.map(|l| l.items);
        told.push(format!(
            "--- slices: {}",
            serde_json::to_string(&slices.unwrap_or_default()).unwrap()
        ));
        told.join("\n")
    }
}
