//! Who is a member now: the pods that are there, or the hosts that were written.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;

use super::{Problem, ProblemKind, list};
use crate::api::MAX_MEMBERS;
use crate::spec::{HostMember, MemberSource, PoolSpec, PrimarySource};

/// One member, as the objects show it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// Name of the pod, or as written in the pool.
    pub name: String,
    /// Uid of the pod: a pod that was deleted and made again under its name is another member. Absent for a host.
    pub uid: Option<String>,
    /// What to connect to for measuring: a DNS name or an address. Absent while a pod has none.
    pub host: Option<String>,
    /// The port to connect to for measuring.
    pub port: u16,
    /// What to publish, at most one address of each family. Empty for a host that is known by name: then it is what the
    /// name resolves to.
    pub addresses: Vec<IpAddr>,
    /// How its pod is. Always [`Availability::Ready`] for a host.
    pub availability: Availability,
    /// The pod's node.
    pub node: Option<String>,
    /// The host's zone. A pod's is its node's, which is another object.
    pub zone: Option<String>,
    /// Whether the pool designates it as the primary; its server must say so too. Always false when any may be.
    pub designated: bool,
    /// The pod's named ports.
    pub named_ports: BTreeMap<String, u16>,
}

/// How a member's pod is. Only one that is ready may serve; the others are still measured while they have an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Availability {
    /// It runs and is ready.
    Ready,
    /// It runs and is not ready.
    NotReady,
    /// It does not run yet.
    NotRunning,
    /// It is being deleted, however it is.
    Terminating,
}

/// The members of `pool`, by name. `pods` are those of its namespace, or of its selector: others are passed over, and so are
/// pods that have ended, since their addresses may belong to others by now.
pub fn members<'a>(pool: &PoolSpec, pods: impl IntoIterator<Item = &'a Pod>) -> Result<Vec<Member>, Problem> {
    let object = format!("ReplicaPool {}/{}", pool.namespace, pool.name);
    let mut members: Vec<_> = match &pool.members {
        MemberSource::Hosts(hosts) => hosts.iter().map(|host| of_host(host, &pool.primary)).collect(),
        MemberSource::Pods { selector, port } => {
            let none = BTreeMap::new();
            let members: Vec<_> = pods
                .into_iter()
                .filter(|pod| pod.metadata.namespace.as_ref().is_none_or(|n| *n == pool.namespace))
                .filter(|pod| selector.matches(pod.metadata.labels.as_ref().unwrap_or(&none)))
                .filter(|pod| !matches!(phase(pod), "Succeeded" | "Failed"))
                .map(|pod| of_pod(pod, *port, &pool.primary))
                .collect();
            if members.is_empty() {
                let problem = format!(
                    "has no members, as no pod in namespace {} matches {selector}",
                    pool.namespace
                );
                let remedy = format!(
                    "correct members.podSelector after kubectl get pods -n {} --show-labels",
                    pool.namespace
                );
                return Err(Problem::new(ProblemKind::NoMembers, &object, problem, remedy));
            }
            members
        }
    };
    members.sort_by(|a, b| a.name.cmp(&b.name));
    if members.len() > MAX_MEMBERS {
        let names: Vec<_> = members.iter().map(|m| &m.name).collect();
        let problem = format!(
            "selects {} pods ({}), and {MAX_MEMBERS} is the most",
            members.len(),
            list(&names)
        );
        let remedy = "narrow members.podSelector to the pods of one database";
        return Err(Problem::new(ProblemKind::TooManyMembers, &object, problem, remedy));
    }
    Ok(members)
}

fn of_host(host: &HostMember, primary: &PrimarySource) -> Member {
    let address = host.publish_address.or_else(|| host.host.parse().ok());
    Member {
        name: host.name.clone(),
        uid: None,
        host: Some(host.host.clone()),
        port: host.port,
        addresses: address.into_iter().collect(),
        availability: Availability::Ready,
        node: None,
        zone: host.zone.clone(),
        designated: *primary == PrimarySource::Named(host.name.clone()),
        named_ports: BTreeMap::new(),
    }
}

fn of_pod(pod: &Pod, port: u16, primary: &PrimarySource) -> Member {
    let meta = &pod.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let addresses = addresses(pod);
    Member {
        designated: match primary {
            PrimarySource::Any => false,
            PrimarySource::Label { key, value } => meta.labels.as_ref().and_then(|l| l.get(key)) == Some(value),
            PrimarySource::Named(wanted) => *wanted == name,
        },
        name,
        uid: meta.uid.clone(),
        host: addresses.first().map(IpAddr::to_string),
        port,
        addresses,
        availability: availability(pod),
        node: pod.spec.as_ref().and_then(|s| s.node_name.clone()),
        zone: None,
        named_ports: named_ports(pod),
    }
}

fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|s| s.phase.as_deref())
        .unwrap_or("Pending")
}

fn availability(pod: &Pod) -> Availability {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    if pod.metadata.deletion_timestamp.is_some() {
        Availability::Terminating
    } else if phase(pod) != "Running" {
        Availability::NotRunning
    } else if conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True")) {
        Availability::Ready
    } else {
        Availability::NotReady
    }
}

/// The first address of each family, the pod's main one first.
fn addresses(pod: &Pod) -> Vec<IpAddr> {
    let Some(status) = &pod.status else { return Vec::new() };
    let listed = status.pod_ips.iter().flatten().map(|ip| ip.ip.as_str());
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in status
        .pod_ip
        .as_deref()
        .into_iter()
        .chain(listed)
        .filter_map(|text| text.parse().ok())
    {
        let address: IpAddr = address;
        if addresses.iter().all(|known| known.is_ipv4() != address.is_ipv4()) {
            addresses.push(address);
        }
    }
    addresses
}

fn named_ports(pod: &Pod) -> BTreeMap<String, u16> {
    let Some(spec) = &pod.spec else { return BTreeMap::new() };
    // A native sidecar is an init container that keeps running; its ports are reachable like any other's.
    let sidecars = spec
        .init_containers
        .iter()
        .flatten()
        .filter(|c| c.restart_policy.as_deref() == Some("Always"));
    spec.containers
        .iter()
        .chain(sidecars)
        .flat_map(|container| container.ports.iter().flatten())
        .filter(|port| port.protocol.as_deref().is_none_or(|p| p == "TCP"))
        .filter_map(|port| Some((port.name.clone()?, u16::try_from(port.container_port).ok()?)))
        .collect()
}
