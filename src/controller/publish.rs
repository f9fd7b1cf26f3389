//! The third stage: what was decided becomes objects. Chooses nothing: build, plan, apply.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, Patch, PatchParams};
use tokio::time::timeout;

use super::error::ReconcileError;
use super::findings::Situation;
use super::gather::Gathered;
use super::tend::Tended;
use super::{WRITE_WITHIN, within};
use crate::api;
use crate::policy::report::ServiceReport;
use crate::policy::state::ServiceState;
use crate::pool::View;
use crate::publish::slices::apply::{ApplyError, apply};
use crate::publish::slices::build::{Listed, ServiceList, build, owner_reference};
use crate::publish::slices::plan::{Step, foreign, plan};
use crate::spec::resolve::{Member, port_of_new, slice_ports};
use crate::telemetry::events::{Notice, Weight};
use crate::telemetry::metrics::Operation;

impl Tended {
    /// Makes the Services that are to be made, and the slices what they should be.
    pub(super) async fn publish(
        &mut self,
        gathered: &Gathered,
        situation: &mut Situation,
    ) -> Result<(), ReconcileError> {
        self.make_services(gathered, situation).await?;
        let Some(view) = situation.view.clone() else {
            return Ok(());
        };
        let existing = self.existing();
        let mut desired = Vec::new();
        let mut decided: BTreeMap<String, &ServiceReport> = BTreeMap::new();
        let mut untouched: Vec<&str> = Vec::new();
        let Some(spec) = self.spec.clone() else { return Ok(()) };
        for service in &spec.services {
            let name = service.name.as_ref();
            for slices in [foreign(&gathered.owner, name, &existing)]
                .into_iter()
                .filter(|s| !s.is_empty())
            {
                situation.foreign.push((name.to_owned(), slices));
            }
            let report = view.report.services.iter().find(|s| *s.name == *name);
            let list = report
                .filter(|r| is_decided(r))
                .and_then(|r| list(&spec, gathered, r, &view, situation));
            let Some(list) = list else {
                untouched.push(name);
                continue;
            };
            let built = build(&gathered.owner, &list);
            situation
                .refused
                .extend(built.refused.into_iter().map(|r| (name.to_owned(), r)));
            for slice in built.slices {
                decided.extend(slice.metadata.name.clone().zip(report));
                desired.push(slice);
            }
        }
        let plan = plan(&gathered.owner, &desired, &existing, &untouched);
        for name in &plan.repairs {
            self.repaired(name);
        }
        for step in &plan.steps {
            self.carry_out(step, &decided).await?;
        }
        Ok(())
    }

    async fn carry_out(
        &mut self,
        step: &Step,
        decided: &BTreeMap<String, &ServiceReport>,
    ) -> Result<(), ReconcileError> {
        let name = step.name().to_owned();
        let now = self.shared.clock.now();
        let within = within(&self.shared.leadership.borrow(), now).ok_or(ReconcileError::NotLeader)?;
        let slices = Api::namespaced(self.shared.client.clone(), &self.key.namespace);
        let stored = apply(&slices, step, within)
            .await
            .map_err(|source| ReconcileError::Publish {
                name: name.clone(),
                source,
            })?;
        let now = self.shared.clock.now();
        self.written.note(&name, stored, now);
        let fresh = decided
            .get(&name)
            .filter(|r| self.carried.insert(r.name.to_string(), r.number) != Some(r.number));
        // Only a decision of this process's own has a moment that it was made at.
        let after = fresh.filter(|r| r.number > 0).map(|r| now.since(r.decided));
        self.shared.metrics.published(&self.key, operation(step), after);
        tracing::info!(
            pool = %self.key.name,
            namespace = %self.key.namespace,
            slice = %name,
            operation = operation(step).as_str(),
            after_ms = after.map(|a| u64::try_from(a.as_millis()).unwrap_or(u64::MAX)),
            "published"
        );
        Ok(())
    }

    fn repaired(&self, name: &str) {
        let notice = Notice {
            weight: Weight::Warning,
            reason: "SliceRepaired",
            action: "Publish",
            note: format!("EndpointSlice {name} was changed by somebody else and is put right again"),
            member: None,
        };
        self.tell_people(notice);
    }

    async fn make_services(&mut self, gathered: &Gathered, situation: &mut Situation) -> Result<(), ReconcileError> {
        let Some(spec) = self.spec.clone() else { return Ok(()) };
        for wanted in &spec.services {
            if !matches!(gathered.services.get(wanted.name.as_ref()), Some(None)) {
                continue;
            }
            let port = match port_of_new(&spec, wanted) {
                Ok(port) => i32::from(port),
                Err(problem) => {
                    situation.problems.push(problem);
                    continue;
                }
            };
            let service = Service {
                metadata: ObjectMeta {
                    name: Some(wanted.name.to_string()),
                    namespace: Some(spec.namespace.clone()),
                    labels: Some([(api::LABEL_POOL.to_owned(), spec.name.clone())].into()),
                    owner_references: gathered.owner.deletes.then(|| vec![owner_reference(&gathered.owner)]),
                    ..ObjectMeta::default()
                },
                spec: Some(ServiceSpec {
                    ports: Some(vec![ServicePort {
                        name: Some(spec.engine.as_str().to_owned()),
                        port,
                        target_port: Some(IntOrString::Int(port)),
                        protocol: Some("TCP".into()),
                        ..ServicePort::default()
                    }]),
                    ..ServiceSpec::default()
                }),
                ..Service::default()
            };
            self.make_service(&wanted.name, &service).await?;
        }
        Ok(())
    }

    async fn make_service(&self, name: &str, service: &Service) -> Result<(), ReconcileError> {
        let within =
            within(&self.shared.leadership.borrow(), self.shared.clock.now()).ok_or(ReconcileError::NotLeader)?;
        let services: Api<Service> = Api::namespaced(self.shared.client.clone(), &self.key.namespace);
        let params = PatchParams::apply(api::FIELD_MANAGER);
        let failed = |source| ReconcileError::MakeService {
            name: name.to_owned(),
            source,
        };
        match timeout(within, services.patch(name, &params, &Patch::Apply(service))).await {
            Ok(Ok(_)) => {
                let notice = Notice {
                    weight: Weight::Normal,
                    reason: "ServiceCreated",
                    action: "Publish",
                    note: format!("Service {name} was made, as create is true"),
                    member: None,
                };
                self.tell_people(notice);
                Ok(())
            }
            Ok(Err(error)) => Err(failed(ApplyError::Api(Box::new(error)))),
            Err(_) => Err(failed(ApplyError::Timeout(WRITE_WITHIN))),
        }
    }
}

/// Whether a service's list is to be carried out: not while it is kept as found, or frozen by a person.
fn is_decided(report: &ServiceReport) -> bool {
    !matches!(report.state, ServiceState::ColdStart | ServiceState::Paused)
}

/// The list of one service; nothing when it cannot be published to.
fn list(
    spec: &crate::spec::PoolSpec,
    gathered: &Gathered,
    report: &ServiceReport,
    view: &View,
    situation: &mut Situation,
) -> Option<ServiceList> {
    let service = gathered.services.get(report.name.as_ref())?.as_ref()?;
    let ports = match slice_ports(spec, service, &gathered.members) {
        Ok(ports) => ports,
        Err(problems) => {
            situation.problems.extend(problems);
            return None;
        }
    };
    let is_in = |m: &&Member| report.endpoints.iter().any(|name| **name == *m.name);
    let listed = gathered.members.iter().filter(is_in).map(|m| listed(m, gathered, view));
    Some(ServiceList {
        service: service.name.clone(),
        families: service.families.clone(),
        ports,
        listed: listed.collect(),
    })
}

fn listed(member: &Member, gathered: &Gathered, view: &View) -> Listed {
    let mut addresses = member.addresses.clone();
    if addresses.is_empty() {
        // A host that is known by name: the address that it was measured at.
        addresses.extend(view.contacts.get(member.name.as_str()).and_then(|c| c.peer));
    }
    let zone = member.node.as_ref().and_then(|node| gathered.zones.get(node));
    Listed {
        name: member.name.clone(),
        pod_uid: member.uid.clone(),
        addresses,
        node: member.node.clone(),
        zone: member.zone.clone().or_else(|| zone.cloned()),
    }
}

/// What kind of request the step is, as metrics and logs name it.
fn operation(step: &Step) -> Operation {
    match step {
        Step::Apply(slice) if slice.metadata.resource_version.is_none() => Operation::Create,
        Step::Apply(_) => Operation::Update,
        Step::Delete { .. } => Operation::Delete,
    }
}
