//! The Services that a pool publishes to, and the ports of their slices.
//!
//! A slice has one set of ports for all its endpoints. Each port of the Service becomes one of the slice, with the same
//! name, since consumers match them by name and say nothing when they differ; its number is the Service's `targetPort`,
//! which consumers never look at again.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::pods::Member;
use super::{Problem, ProblemKind, list};
use crate::api::v1alpha1::ReplicaPool;
use crate::spec::{MemberSource, PoolSpec, ReadService};

/// An address family, and so one slice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// A Service that can be published to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceView {
    /// Its name.
    pub name: String,
    /// Its uid: another one under its name is another Service.
    pub uid: Option<String>,
    /// The families that it answers on, its main one first; at least one.
    pub families: Vec<Family>,
    /// Its ports; at least one.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServicePort {
    /// Its name; empty for the only port of a Service.
    pub name: String,
    /// Where it leads: a number, or the name of a port of the pods.
    pub target: IntOrString,
    /// What is spoken there, copied to the slice.
    pub app_protocol: Option<String>,
}

/// A port of a slice; always TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlicePort {
    /// The name of the Service's port.
    pub name: String,
    /// The port that clients are sent to.
    pub number: u16,
    /// What is spoken there.
    pub app_protocol: Option<String>,
}

/// Whether `service` can be published to. `Ok(None)` when it does not exist and is to be made.
pub fn service(
    pool: &PoolSpec,
    wanted: &ReadService,
    service: Option<&Service>,
) -> Result<Option<ServiceView>, Vec<Problem>> {
    let object = format!("Service {}/{}", pool.namespace, wanted.name);
    let Some(service) = service else {
        if wanted.create {
            return Ok(None);
        }
        let remedy = "create it without a selector, or set create: true to have it made";
        return Err(vec![Problem::new(
            ProblemKind::ServiceNotFound,
            &object,
            "does not exist",
            remedy,
        )]);
    };
    let spec = service.spec.clone().unwrap_or_default();
    let problems = unusable(&object, &spec);
    if !problems.is_empty() {
        return Err(problems);
    }
    let ports = spec.ports.into_iter().flatten().map(|port| ServicePort {
        name: port.name.unwrap_or_default(),
        target: port.target_port.unwrap_or(IntOrString::Int(port.port)),
        app_protocol: port.app_protocol,
    });
    Ok(Some(ServiceView {
        name: wanted.name.to_string(),
        uid: service.metadata.uid.clone(),
        families: families(spec.ip_families.as_deref(), spec.cluster_ips.as_deref()),
        ports: ports.collect(),
    }))
}

/// Why nothing can be published to a Service.
fn unusable(object: &str, spec: &ServiceSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut note = |kind, problem: String, remedy| problems.push(Problem::new(kind, object, problem, remedy));
    if let Some(selector) = spec.selector.as_ref().filter(|s| !s.is_empty()) {
        let pairs: Vec<_> = selector.iter().map(|(k, v)| format!("{k}={v}")).collect();
        note(
            ProblemKind::ServiceHasSelector,
            format!(
                "has the selector {}, so Kubernetes adds every ready pod to it",
                list(&pairs)
            ),
            "remove its selector, or name another Service",
        );
    }
    let ports = spec.ports.as_deref().unwrap_or_default();
    if spec.type_.as_deref() == Some("ExternalName") {
        let problem = "is of type ExternalName, which has no endpoints".into();
        note(
            ProblemKind::ServiceIsExternalName,
            problem,
            "name a Service of type ClusterIP",
        );
    } else if ports.is_empty() {
        let remedy = "add a port, whose targetPort is where clients connect";
        note(ProblemKind::ServiceHasNoPort, "has no port".into(), remedy);
    }
    for port in ports {
        if let Some(protocol) = port.protocol.as_deref().filter(|p| *p != "TCP") {
            let problem = format!(
                "has port {} with protocol {protocol}, and databases speak TCP",
                port.port
            );
            note(ProblemKind::ServicePortNotTcp, problem, "remove the port, or use TCP");
        }
    }
    problems
}

fn families(stated: Option<&[String]>, addresses: Option<&[String]>) -> Vec<Family> {
    let stated = stated
        .unwrap_or_default()
        .iter()
        .map(|f| if f == "IPv6" { Family::V6 } else { Family::V4 });
    let shown = addresses
        .unwrap_or_default()
        .iter()
        .map(|a| if a.contains(':') { Family::V6 } else { Family::V4 });
    let families: Vec<_> = stated.collect();
    let families = if families.is_empty() { shown.collect() } else { families };
    if families.is_empty() {
        vec![Family::V4]
    } else {
        families
    }
}

/// The ports of the slices of `service` over these members, in the order of the Service.
pub fn slice_ports(pool: &PoolSpec, service: &ServiceView, members: &[Member]) -> Result<Vec<SlicePort>, Vec<Problem>> {
    let object = format!("Service {}/{}", pool.namespace, service.name);
    let mut problems = Vec::new();
    let mut ports = Vec::new();
    for port in &service.ports {
        match number(&object, &port.target, members) {
            Ok(number) => ports.push(SlicePort {
                name: port.name.clone(),
                number,
                app_protocol: port.app_protocol.clone(),
            }),
            Err(problem) => problems.push(problem),
        }
    }
    if let (MemberSource::Hosts(_), true) = (&pool.members, problems.is_empty()) {
        problems.extend(unpublished_host(&object, &ports, members));
    }
    if problems.is_empty() { Ok(ports) } else { Err(problems) }
}

fn number(object: &str, target: &IntOrString, members: &[Member]) -> Result<u16, Problem> {
    let name = match target {
        IntOrString::Int(number) => {
            let refused = |_| {
                let problem = format!("has targetPort {number}, which is not a port");
                Problem::new(ProblemKind::PortNotResolved, object, problem, "choose from 1 to 65535")
            };
            return u16::try_from(*number).map_err(refused);
        }
        IntOrString::String(name) => name,
    };
    // A pod without the name has no say: containers need not declare their ports.
    let declared: BTreeSet<u16> = members
        .iter()
        .filter_map(|m| m.named_ports.get(name).copied())
        .collect();
    match Vec::from_iter(declared).as_slice() {
        [number] => Ok(*number),
        [] => {
            let known: BTreeSet<_> = members.iter().flat_map(|m| m.named_ports.keys()).collect();
            let problem = format!(
                "has targetPort {name}, and no member has a port of that name; they have {}",
                list(&Vec::from_iter(known))
            );
            Err(Problem::new(
                ProblemKind::PortNotResolved,
                object,
                problem,
                "write the number as its targetPort",
            ))
        }
        several => {
            let numbers: Vec<_> = several.iter().map(u16::to_string).collect();
            let problem = format!(
                "has targetPort {name}, which is {} in different pods, and a slice has one number for all",
                list(&numbers)
            );
            Err(Problem::new(
                ProblemKind::PortsDiffer,
                object,
                problem,
                "give the pods' port one number",
            ))
        }
    }
}

/// The problem of a host whose own port clients would not be sent to: they would reach another server than the one measured.
fn unpublished_host(object: &str, ports: &[SlicePort], members: &[Member]) -> Option<Problem> {
    let stray = members.iter().find(|m| ports.iter().all(|p| p.number != m.port))?;
    let numbers: Vec<_> = ports.iter().map(|p| p.number.to_string()).collect();
    let measured: BTreeSet<_> = members.iter().map(|m| m.port).collect();
    let problem = format!(
        "has targetPort {}, and member {} is measured at port {}: clients would reach another server",
        list(&numbers),
        stray.name,
        stray.port
    );
    let remedy = if measured.len() == 1 {
        format!("set targetPort to {}", stray.port)
    } else {
        "give all hosts of the pool the same port, since a slice has one number for all".into()
    };
    Some(Problem::new(ProblemKind::PortsDiffer, object, problem, remedy))
}

/// The `port` and `targetPort` of a Service that is made for `pool`: where its members are measured.
pub fn port_of_new(pool: &PoolSpec, service: &ReadService) -> Result<u16, Problem> {
    let hosts = match &pool.members {
        MemberSource::Pods { port, .. } => return Ok(*port),
        MemberSource::Hosts(hosts) => hosts,
    };
    let ports: BTreeSet<u16> = hosts.iter().map(|h| h.port).collect();
    match Vec::from_iter(ports).as_slice() {
        [port] => Ok(*port),
        several => {
            let numbers: Vec<_> = several.iter().map(u16::to_string).collect();
            let object = format!("Service {}/{}", pool.namespace, service.name);
            let problem = format!(
                "cannot be made, as the hosts have ports {} and a slice has one for all",
                list(&numbers)
            );
            let remedy = "give all hosts of the pool the same port";
            Err(Problem::new(ProblemKind::PortsDiffer, &object, problem, remedy))
        }
    }
}

/// The Services of `pool` that an older pool of its namespace names too: those are the older one's. `pools` may hold others
/// and `pool` itself. Of two made in the same second the first by name is the older.
pub fn duplicates<'a>(pool: &ReplicaPool, pools: impl IntoIterator<Item = &'a ReplicaPool>) -> Vec<Problem> {
    let age = |p: &ReplicaPool| (p.metadata.creation_timestamp.clone(), p.metadata.name.clone());
    let (namespace, name) = (&pool.metadata.namespace, &pool.metadata.name);
    let older: Vec<_> = pools
        .into_iter()
        .filter(|p| p.metadata.namespace == *namespace && p.metadata.name != *name && age(p) < age(pool))
        .collect();
    let claim = |service: &str| older.iter().find(|p| p.spec.services.iter().any(|s| s.name == service));
    pool.spec
        .services
        .iter()
        .filter_map(|service| {
            let owner = claim(&service.name)?.metadata.name.as_deref().unwrap_or_default();
            let object = format!("Service {}/{}", namespace.as_deref().unwrap_or("default"), service.name);
            let problem = format!("belongs to the older ReplicaPool {owner}");
            let remedy = "name another Service, or remove it from that pool";
            Some(Problem::new(ProblemKind::DuplicateService, &object, problem, remedy))
        })
        .collect()
}
