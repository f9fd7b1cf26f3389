//! Building and planning, without an API server.

use std::net::IpAddr;

use k8s_openapi::api::discovery::v1::EndpointSlice;

use super::build::{Built, Listed, Owner, ServiceList, build};
use super::plan::{SlicePlan, Step, foreign, plan};
use crate::api;
use crate::spec::resolve::{Family, SlicePort};

fn owner() -> Owner {
    Owner {
        namespace: "shop".into(),
        name: "orders".into(),
        uid: "pool-uid".into(),
        deletes: true,
    }
}

fn listed(name: &str, addresses: &[&str]) -> Listed {
    Listed {
        name: name.into(),
        pod_uid: Some(format!("{name}-uid")),
        addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        node: Some("node-1".into()),
        zone: Some("zone-1".into()),
    }
}

fn list(families: &[Family], listed: Vec<Listed>) -> ServiceList {
    ServiceList {
        service: "orders-fresh".into(),
        families: families.to_vec(),
        ports: vec![SlicePort {
            name: "pg".into(),
            number: 5432,
            app_protocol: None,
        }],
        listed,
    }
}

fn addresses(slice: &EndpointSlice) -> Vec<&str> {
    slice
        .endpoints
        .iter()
        .flat_map(|e| e.addresses.iter().map(String::as_str))
        .collect()
}

/// What the API server would return after applying `plan` to `existing`.
fn applied(plan: &SlicePlan, existing: &[EndpointSlice]) -> Vec<EndpointSlice> {
    let mut after = existing.to_vec();
    for step in &plan.steps {
        match step {
            Step::Apply(slice) => {
                after.retain(|s| s.metadata.name != slice.metadata.name);
                let mut stored = slice.as_ref().clone();
                stored.metadata.resource_version =
                    Some(format!("{}1", slice.metadata.resource_version.as_deref().unwrap_or("")));
                after.push(stored);
            }
            Step::Delete { name, .. } => after.retain(|s| s.metadata.name.as_ref() != Some(name)),
        }
    }
    after
}

/// K-39, K-47: its Service's label, all three conditions, and the pod with its uid.
#[test]
fn a_slice_says_everything_its_consumers_need() {
    let Built { slices, refused } = build(&owner(), &list(&[Family::V4], vec![listed("pg-1", &["10.0.0.1"])]));
    assert_eq!(refused, []);
    let yaml = serde_yaml::to_string(&slices[0]).unwrap();
    insta::assert_snapshot!(yaml);
}

/// K-09, K-14: order of members and repeated building change nothing.
#[test]
fn the_order_is_canonical() {
    let members = || {
        vec![
            listed("a", &["10.0.0.10"]),
            listed("b", &["10.0.0.9"]),
            listed("c", &["10.0.0.2"]),
        ]
    };
    let forward = build(&owner(), &list(&[Family::V4], members()));
    let backward = build(&owner(), &list(&[Family::V4], members().into_iter().rev().collect()));
    assert_eq!(forward, backward);
    assert_eq!(addresses(&forward.slices[0]), ["10.0.0.2", "10.0.0.9", "10.0.0.10"]);
}

/// K-32: one address that the API server refuses does not stop the others.
#[test]
fn what_cannot_be_published_is_left_out_and_named() {
    for bad in [
        "169.254.3.4",
        "127.0.0.1",
        "0.0.0.0",
        "224.0.0.5",
        "::1",
        "fe80::1",
        "ff02::1",
        "::",
        "::ffff:127.0.0.1",
    ] {
        let family = if bad.parse::<IpAddr>().unwrap().to_canonical().is_ipv4() {
            Family::V4
        } else {
            Family::V6
        };
        let good = if family == Family::V4 { "10.0.0.2" } else { "fd00::2" };
        let built = build(
            &owner(),
            &list(&[family], vec![listed("bad", &[bad]), listed("good", &[good])]),
        );
        assert_eq!(addresses(&built.slices[0]), [good], "{bad}");
        assert_eq!(built.refused.len(), 1, "{bad}: {:?}", built.refused);
        assert_eq!(built.refused[0].member, "bad");
    }
}

#[test]
fn each_family_has_its_slice() {
    let both = listed("both", &["10.0.0.1", "fd00::1"]);
    let one = listed("one", &["10.0.0.2"]);
    let built = build(&owner(), &list(&[Family::V4, Family::V6], vec![both, one.clone()]));
    let found: Vec<_> = built
        .slices
        .iter()
        .map(|s| (s.address_type.as_str(), addresses(s)))
        .collect();
    assert_eq!(
        found,
        [("IPv4", vec!["10.0.0.1", "10.0.0.2"]), ("IPv6", vec!["fd00::1"])]
    );
    assert_eq!(built.refused, [], "one family carries it");
    let built = build(&owner(), &list(&[Family::V6], vec![one]));
    assert_eq!(built.refused.len(), 1);
    let mapped = build(&owner(), &list(&[Family::V4], vec![listed("m", &["::ffff:10.1.2.3"])]));
    assert_eq!(addresses(&mapped.slices[0]), ["10.1.2.3"]);
}

/// K-24: one address is published once.
#[test]
fn an_address_that_two_members_have_is_published_once() {
    let built = build(
        &owner(),
        &list(
            &[Family::V4],
            vec![listed("b", &["10.0.0.1"]), listed("a", &["10.0.0.1"])],
        ),
    );
    assert_eq!(addresses(&built.slices[0]), ["10.0.0.1"]);
    assert_eq!(
        built.refused.iter().map(|r| r.member.as_str()).collect::<Vec<_>>(),
        ["b"]
    );
}

#[test]
fn planning_again_after_applying_is_empty() {
    let desired = build(
        &owner(),
        &list(&[Family::V4, Family::V6], vec![listed("a", &["10.0.0.1", "fd00::1"])]),
    )
    .slices;
    let first = plan(&owner(), &desired, &[], &[]);
    assert_eq!(first.steps.len(), 2);
    let there = applied(&first, &[]);
    assert_eq!(plan(&owner(), &desired, &there, &[]), SlicePlan::default());
}

#[test]
fn a_change_carries_the_version_that_was_looked_at() {
    let before = build(
        &owner(),
        &list(
            &[Family::V4],
            vec![listed("a", &["10.0.0.1"]), listed("b", &["10.0.0.2"])],
        ),
    )
    .slices;
    let there = applied(&plan(&owner(), &before, &[], &[]), &[]);
    let after = build(&owner(), &list(&[Family::V4], vec![listed("a", &["10.0.0.1"])])).slices;
    let change = plan(&owner(), &after, &there, &[]);
    let [Step::Apply(slice)] = change.steps.as_slice() else {
        panic!("{change:?}")
    };
    assert_eq!(slice.metadata.resource_version.as_deref(), Some("1"));
    assert_eq!(change.repairs, [""; 0]);
}

#[test]
fn a_list_may_be_empty_and_its_slice_stays() {
    let built = build(&owner(), &list(&[Family::V4], vec![]));
    assert_eq!(built.slices[0].endpoints, []);
}

/// K-01, K-06, K-12: others' slices are named, and left alone.
#[test]
fn foreign_slices_are_named_and_not_touched() {
    let desired = build(&owner(), &list(&[Family::V4], vec![listed("a", &["10.0.0.1"])])).slices;
    let mut other = desired[0].clone();
    other.metadata.name = Some("orders-fresh-abcde".into());
    let labels = other.metadata.labels.as_mut().unwrap();
    labels.insert(api::LABEL_MANAGED_BY.into(), "endpointslice-controller.k8s.io".into());
    let mut empty = other.clone();
    (empty.metadata.name, empty.endpoints) = (Some("empty".into()), vec![]);
    let existing = [desired[0].clone(), other, empty];
    assert_eq!(foreign(&owner(), "orders-fresh", &existing), ["orders-fresh-abcde"]);
    assert_eq!(plan(&owner(), &desired, &existing, &[]).steps, []);
}

/// K-19: what an earlier life of the pool, or an earlier spec, left behind goes.
#[test]
fn slices_of_ours_that_nobody_wants_go() {
    let mut left = build(&owner(), &list(&[Family::V4], vec![listed("a", &["10.0.0.1"])]))
        .slices
        .remove(0);
    left.metadata
        .labels
        .as_mut()
        .unwrap()
        .insert(api::LABEL_SERVICE_NAME.into(), "gone".into());
    (left.metadata.name, left.metadata.uid) = (Some("gone-lagwarden-0-ipv4".into()), Some("u".into()));
    let steps = plan(&owner(), &[], std::slice::from_ref(&left), &[]).steps;
    assert!(
        matches!(steps.as_slice(), [Step::Delete { uid: Some(uid), .. }] if uid == "u"),
        "{steps:?}"
    );
    assert_eq!(plan(&owner(), &[], std::slice::from_ref(&left), &["gone"]).steps, []);
    left.metadata.owner_references.as_mut().unwrap()[0].uid = "another pool".into();
    assert_eq!(plan(&owner(), &[], &[left], &[]).steps, []);
}

/// K-07: an edit by somebody else is repaired, and said.
#[test]
fn edits_are_repaired() {
    let desired = build(&owner(), &list(&[Family::V4], vec![listed("a", &["10.0.0.1"])])).slices;
    let mut there = applied(&plan(&owner(), &desired, &[], &[]), &[]);
    there[0]
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .remove(api::LABEL_SERVICE_NAME);
    let change = plan(&owner(), &desired, &there, &[]);
    assert_eq!((change.steps.len(), change.repairs.len()), (1, 1));
    there[0]
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert("theirs".into(), "stays".into());
    there[0]
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .insert(api::LABEL_SERVICE_NAME.into(), "orders-fresh".into());
    assert_eq!(plan(&owner(), &desired, &there, &[]).steps, [], "others may add labels");
}

#[test]
fn retained_slices_have_no_owner() {
    let keeps = Owner {
        deletes: false,
        ..owner()
    };
    let built = build(&keeps, &list(&[Family::V4], vec![listed("a", &["10.0.0.1"])]));
    assert_eq!(built.slices[0].metadata.owner_references, None);
    let owned = build(&owner(), &list(&[Family::V4], vec![listed("a", &["10.0.0.1"])])).slices;
    assert_eq!(
        plan(&keeps, &built.slices, &owned, &[]).steps.len(),
        1,
        "a changed policy is a change"
    );
}
