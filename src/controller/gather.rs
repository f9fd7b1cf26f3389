//! The first stage: what the pool's spec says, and what it refers to. Needs a client for Secrets and nodes; judges nothing
//! but whether things are as they must be.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use tokio::time::timeout;

use super::error::ReconcileError;
use super::findings::Situation;
use super::tend::Tended;
use crate::api;
use crate::api::v1alpha1::{DeletionPolicy, ReplicaPool};
use crate::pool::assemble::assemble;
use crate::pool::{Config, Published};
use crate::publish::slices::build::Owner;
use crate::publish::slices::plan::is_ours;
use crate::spec::PoolSpec;
use crate::spec::resolve::{Member, Problem, ProblemKind, ServiceView, duplicates, members, service};

/// How long looking a host's name up may take.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(2);

/// What a pass works with.
pub(super) struct Gathered {
    pub(super) owner: Owner,
    pub(super) members: Vec<Member>,
    /// The Services that can be published to, by name; absent ones are to be made.
    pub(super) services: BTreeMap<String, Option<ServiceView>>,
    /// The zone of each pod's node.
    pub(super) zones: BTreeMap<String, String>,
    /// What the loop should follow; absent while something is missing.
    pub(super) config: Option<Config>,
    /// What is published, for a loop that starts.
    pub(super) published: Vec<Published>,
}

impl Tended {
    /// Looks at everything once; nothing while the watches have not shown everything yet, or the spec was never valid.
    pub(super) async fn gather(
        &mut self,
        pool: &ReplicaPool,
        situation: &mut Situation,
    ) -> Result<Option<Gathered>, ReconcileError> {
        match PoolSpec::try_new(pool) {
            Ok(spec) => self.spec = Some(spec),
            // The newest valid one stays in force.
            Err(mistakes) => situation.mistakes = mistakes,
        }
        let Some(spec) = self.spec.clone() else { return Ok(None) };
        self.watch(&spec);
        if !self.synced() {
            return Ok(None);
        }
        let members = self.members(&spec, situation).await;
        situation.addresses = members
            .iter()
            .map(|m| (Arc::from(m.name.as_str()), address(m)))
            .collect();
        let refused = self.running.is_some() && situation_refuses(self);
        let read = self.secrets.refresh(&spec, refused, self.shared.clock.now()).await;
        let config = self.config(&spec, &members, situation);
        let mut gathered = Gathered {
            owner: self.owner(&spec),
            services: self.services(pool, &spec, situation),
            zones: self.zones(&members).await,
            config,
            published: Vec::new(),
            members,
        };
        if self.running.is_none() {
            gathered.published = self.published_over(&gathered.members);
        }
        read.map(|()| Some(gathered))
    }

    /// The pool's members. Hosts that are known by name only get the addresses that the name has now, when nothing was
    /// measured yet: what is published can so be told apart.
    async fn members(&self, spec: &PoolSpec, situation: &mut Situation) -> Vec<Member> {
        let pods = self.pods.as_ref().map(|(_, cache)| cache.all()).unwrap_or_default();
        let mut members = match members(spec, pods.iter().map(AsRef::as_ref)) {
            Ok(members) => members,
            Err(problem) => {
                situation.problems.push(problem);
                return Vec::new();
            }
        };
        for member in members.iter_mut().filter(|m| m.addresses.is_empty()) {
            if let (None, Some(host)) = (&self.running, &member.host) {
                member.addresses = look_up(host, member.port).await;
            }
        }
        members
    }

    fn config(&self, spec: &PoolSpec, members: &[Member], situation: &mut Situation) -> Option<Config> {
        let (account, authority) = match self.secrets.access(spec) {
            Ok(access) => access,
            Err(problems) => {
                situation.problems.extend(problems);
                return None;
            }
        };
        let generation = self.running.as_ref().map_or(1, |r| r.config.generation);
        match assemble(spec, members, &account, authority.as_ref(), generation) {
            Ok(config) => Some(config),
            Err(error) => {
                let secret = spec.connection.tls.ca().map_or("", |ca| ca.secret.as_str());
                let object = format!("Secret {}/{secret}", spec.namespace);
                let remedy = "put the authority's certificates there, as PEM text";
                let kind = ProblemKind::CaUnreadable;
                situation
                    .problems
                    .push(Problem::new(kind, &object, error.to_string(), remedy));
                None
            }
        }
    }

    fn services(
        &self,
        pool: &ReplicaPool,
        spec: &PoolSpec,
        situation: &mut Situation,
    ) -> BTreeMap<String, Option<ServiceView>> {
        let pools = self.shared.pools.all();
        let taken = duplicates(pool, pools.iter().map(AsRef::as_ref));
        let mut usable = BTreeMap::new();
        for wanted in &spec.services {
            let object = format!("Service {}/{}", spec.namespace, wanted.name);
            if let Some(problem) = taken.iter().find(|p| p.object == object) {
                situation.problems.push(problem.clone());
                continue;
            }
            let found: Option<Arc<Service>> = self.shared.services.find(&spec.namespace, &wanted.name);
            match service(spec, wanted, found.as_deref()) {
                Ok(view) => drop(usable.insert(wanted.name.to_string(), view)),
                Err(problems) => situation.problems.extend(problems),
            }
        }
        usable
    }

    async fn zones(&self, members: &[Member]) -> BTreeMap<String, String> {
        let mut zones = BTreeMap::new();
        for node in members.iter().filter_map(|m| m.node.as_ref()) {
            if zones.contains_key(node) {
                continue;
            }
            if let Some(zone) = self.shared.zones.of(node, self.shared.clock.now()).await {
                zones.insert(node.clone(), zone);
            }
        }
        zones
    }

    pub(super) fn owner(&self, spec: &PoolSpec) -> Owner {
        Owner {
            namespace: self.key.namespace.to_string(),
            name: self.key.name.to_string(),
            uid: self.uid.clone(),
            deletes: spec.deletion == DeletionPolicy::Delete,
        }
    }

    /// All slices that concern the pool: of its Services, and its own whatever their Service.
    pub(super) fn existing(&mut self) -> Vec<EndpointSlice> {
        let mut shown = self.ours.all();
        if let Some((_, cache)) = &self.slices {
            shown.extend(cache.all());
        }
        self.written.over(shown, self.shared.clock.now())
    }

    /// What is published, in terms of the members of the running loop.
    pub(super) fn published(&mut self) -> Vec<Published> {
        let Some(spec) = self.spec.clone() else {
            return Vec::new();
        };
        let pods = self.pods.as_ref().map(|(_, cache)| cache.all()).unwrap_or_default();
        let mut members = members(&spec, pods.iter().map(AsRef::as_ref)).unwrap_or_default();
        if let Some(running) = &self.running {
            let view = running.view();
            for member in members.iter_mut().filter(|m| m.addresses.is_empty()) {
                member
                    .addresses
                    .extend(view.contacts.get(member.name.as_str()).and_then(|c| c.peer));
            }
        }
        self.published_over(&members)
    }

    fn published_over(&mut self, members: &[Member]) -> Vec<Published> {
        let Some(spec) = self.spec.clone() else {
            return Vec::new();
        };
        let owner = self.owner(&spec);
        let slices = self.existing();
        let of_service = |name: &str| {
            let ours = slices.iter().filter(|s| is_ours(&owner, s));
            let its = ours.filter(|s| {
                s.metadata
                    .labels
                    .as_ref()
                    .and_then(|l| l.get(api::LABEL_SERVICE_NAME))
                    .is_some_and(|n| n == name)
            });
            its.flat_map(|s| &s.endpoints)
                .flat_map(|e| &e.addresses)
                .filter_map(|a| a.parse().ok())
                .collect::<Vec<IpAddr>>()
        };
        let listed = |addresses: &[IpAddr]| {
            let is_in = |m: &&Member| m.addresses.iter().any(|a| addresses.contains(&a.to_canonical()));
            members
                .iter()
                .filter(is_in)
                .map(|m| Arc::from(m.name.as_str()))
                .collect()
        };
        let services = spec.services.iter();
        services
            .map(|s| Published {
                service: s.name.clone(),
                endpoints: listed(&of_service(&s.name)),
            })
            .collect()
    }
}

fn situation_refuses(tended: &Tended) -> bool {
    tended.running.as_ref().is_some_and(|r| r.view().refuses_us())
}

fn address(member: &Member) -> String {
    match (&member.host, member.addresses.first()) {
        (Some(host), _) if host.contains(':') => format!("[{host}]:{}", member.port),
        (Some(host), _) => format!("{host}:{}", member.port),
        (None, Some(address)) => format!("{address}:{}", member.port),
        (None, None) => "no address yet".into(),
    }
}

async fn look_up(host: &str, port: u16) -> Vec<IpAddr> {
    let looked = timeout(LOOK_UP_WITHIN, tokio::net::lookup_host((host, port))).await;
    // A name without an address now is told by the probes.
    looked
        .ok()
        .and_then(Result::ok)
        .map(|found| found.map(|a| a.ip()).collect())
        .unwrap_or_default()
}
