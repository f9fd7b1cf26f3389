//! What should be published: decision and members in, EndpointSlices out. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::api;
use crate::spec::resolve::{Family, SlicePort};

/// The pool that publishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Whether what it publishes goes with it.
    pub deletes: bool,
}

/// A member that is in the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its pod's uid; absent for a host.
    pub pod_uid: Option<String>,
    /// Its addresses, of any family.
    pub addresses: Vec<IpAddr>,
    /// Its node.
    pub node: Option<String>,
    /// Its zone.
    pub zone: Option<String>,
}

/// One service's list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServiceList {
    /// The Service.
    pub service: String,
    /// The families that it answers on.
    pub families: Vec<Family>,
    /// The ports of its slices.
    pub ports: Vec<SlicePort>,
    /// Who is in.
    pub listed: Vec<Listed>,
}

/// An address that cannot be published: the API server would refuse the whole slice because of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Whose it is.
    pub member: String,
    /// The address; absent when the member has none of the family.
    pub address: Option<IpAddr>,
    /// Why not, in words.
    pub why: &'static str,
}

/// What should be there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Built {
    /// One for each family, in the order of the Service.
    pub slices: Vec<EndpointSlice>,
    /// What was left out.
    pub refused: Vec<Refused>,
}

/// The slices of one service.
pub fn build(owner: &Owner, list: &ServiceList) -> Built {
    let mut built = Built::default();
    for family in &list.families {
        let endpoints = endpoints(owner, list, *family, &mut built.refused);
        built.slices.push(slice(owner, list, *family, endpoints));
    }
    // A member without an address of a second family is no mistake as long as one family carries it.
    let carried = |member: &str| {
        let published = || {
            built
                .slices
                .iter()
                .flat_map(|s| &s.endpoints)
                .flat_map(|e| &e.addresses)
        };
        let its = list
            .listed
            .iter()
            .filter(|l| l.name == member)
            .flat_map(|l| &l.addresses);
        its.map(|a| canonical(*a).to_string())
            .any(|a| published().any(|p| *p == a))
    };
    let worth_telling = |r: &&Refused| r.address.is_some() || !carried(&r.member);
    built.refused = built.refused.iter().filter(worth_telling).cloned().collect();
    built
}

/// The slice's name: fixed, so that it is found without labels that people may change.
pub fn name(owner: &Owner, service: &str, family: Family) -> String {
    let family = match family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    };
    format!(
        "{service}-lagwarden-{:08x}-{family}",
        hash(&[&owner.namespace, &owner.name, service])
    )
}

fn slice(owner: &Owner, list: &ServiceList, family: Family, endpoints: Vec<Endpoint>) -> EndpointSlice {
    let labels = [
        (api::LABEL_SERVICE_NAME, list.service.as_str()),
        (api::LABEL_MANAGED_BY, api::MANAGED_BY),
        (api::LABEL_POOL, owner.name.as_str()),
    ];
    EndpointSlice {
        metadata: ObjectMeta {
            name: Some(name(owner, &list.service, family)),
            namespace: Some(owner.namespace.clone()),
            labels: Some(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into()),
            owner_references: owner.deletes.then(|| vec![owner_reference(owner)]),
            ..ObjectMeta::default()
        },
        address_type: match family {
            Family::V4 => "IPv4".into(),
            Family::V6 => "IPv6".into(),
        },
        endpoints,
        ports: Some(list.ports.iter().map(port).collect()),
    }
}

/// Our pool as the owner of what it publishes.
pub fn owner_reference(owner: &Owner) -> OwnerReference {
    OwnerReference {
        api_version: format!("{}/{}", api::GROUP, api::VERSION),
        kind: api::KIND.into(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
        controller: Some(true),
        // Blocking the owner's deletion needs a privilege that we do not ask for.
        block_owner_deletion: None,
    }
}

fn port(port: &SlicePort) -> EndpointPort {
    EndpointPort {
        name: Some(port.name.clone()),
        port: Some(i32::from(port.number)),
        protocol: Some("TCP".into()),
        app_protocol: port.app_protocol.clone(),
    }
}

fn endpoints(owner: &Owner, list: &ServiceList, family: Family, refused: &mut Vec<Refused>) -> Vec<Endpoint> {
    let mut listed: Vec<&Listed> = list.listed.iter().collect();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    let mut taken = BTreeSet::new();
    // Consumers compare lists in order; by address, so that a renamed pod alone changes no order.
    let mut endpoints = BTreeMap::new();
    for member in listed {
        let mut refuse = |address, why| {
            refused.push(Refused {
                member: member.name.clone(),
                address,
                why,
            });
        };
        let Some(address) = member
            .addresses
            .iter()
            .map(|a| canonical(*a))
            .find(|a| family_of(a) == family)
        else {
            refuse(None, "it has no address of a family that the Service answers on");
            continue;
        };
        if let Some(why) = unpublishable(address) {
            refuse(Some(address), why);
        } else if !taken.insert(address) {
            refuse(Some(address), "another member has the same address");
        } else {
            endpoints.insert(address, endpoint(owner, member, address));
        }
    }
    endpoints.into_values().collect()
}

fn endpoint(owner: &Owner, member: &Listed, address: IpAddr) -> Endpoint {
    let target = member.pod_uid.as_ref().map(|uid| ObjectReference {
        kind: Some("Pod".into()),
        namespace: Some(owner.namespace.clone()),
        name: Some(member.name.clone()),
        uid: Some(uid.clone()),
        ..ObjectReference::default()
    });
    Endpoint {
        addresses: vec![address.to_string()],
        conditions: Some(EndpointConditions {
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
        }),
        target_ref: target,
        node_name: member.node.clone(),
        zone: member.zone.clone(),
        ..Endpoint::default()
    }
}

fn family_of(address: &IpAddr) -> Family {
    match address {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    }
}

/// An IPv4 address that is written as an IPv6 one is an IPv4 address.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Why the API server would refuse the address (`ValidateNonSpecialIP` in Kubernetes' `pkg/apis/core/validation`).
fn unpublishable(address: IpAddr) -> Option<&'static str> {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || (v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || is_link_local_multicast(v6),
    };
    if address.is_unspecified() {
        Some("it is the unspecified address")
    } else if address.is_loopback() {
        Some("it is a loopback address; give the host a publishAddress that clients can reach")
    } else if link_local {
        Some("it is a link-local address")
    } else {
        None
    }
}

fn is_link_local_multicast(address: Ipv6Addr) -> bool {
    address.is_multicast() && address.segments()[0] & 0x000f == 0x0002
}

/// FNV-1a over the parts with a separator: short, stable across versions, and no secret.
fn hash(parts: &[&str]) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    bytes.fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
