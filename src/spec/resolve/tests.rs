//! What pools refer to: pods, hosts, Services and their ports.

use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};

use super::{Availability, Family, Member, Problem, ProblemKind, list, members, port_of_new, service, slice_ports};
use crate::api::MAX_MEMBERS;
use crate::api::v1alpha1::ReplicaPool;
use crate::spec::PoolSpec;

fn pool(members: &Value) -> PoolSpec {
    let pool = json!({
        "apiVersion": "lagwarden.io/v1alpha1", "kind": "ReplicaPool",
        "metadata": { "name": "orders", "namespace": "shop" },
        "spec": {
            "engine": "postgresql", "members": members, "credentials": { "secretName": "account" },
            "services": [{ "name": "orders-fresh", "maxStaleness": "2s" }],
        },
    });
    PoolSpec::try_new(&serde_json::from_value::<ReplicaPool>(pool).unwrap()).unwrap()
}

fn of_pods() -> PoolSpec {
    pool(&json!({ "podSelector": { "matchLabels": { "app": "db" } } }))
}

/// A running, ready pod that declares a port `pg`, with these changes to its status.
fn pod(name: &str, port: u16, status: &Value) -> Pod {
    let mut pod = json!({
        "metadata": { "name": name, "namespace": "shop", "uid": name, "labels": { "app": "db" } },
        "spec": { "containers": [{ "name": "db", "ports": [{ "name": "pg", "containerPort": port }] }] },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.1" }],
            "conditions": [{ "type": "Ready", "status": "True" }],
        },
    });
    for (key, value) in status.as_object().unwrap() {
        pod["status"][key] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

fn found(pods: &[Pod]) -> Vec<Member> {
    members(&of_pods(), pods).unwrap()
}

/// The slice's ports, as name and number, of a Service with these ports.
fn ports(pool: &PoolSpec, ports: &Value, members: &[Member]) -> Result<Vec<(String, u16)>, Vec<Problem>> {
    let object = json!({ "metadata": { "name": "orders-fresh" }, "spec": { "ports": ports } });
    let object: Service = serde_json::from_value(object).unwrap();
    let view = service(pool, &pool.services[0], Some(&object))?.unwrap();
    let ports = slice_ports(pool, &view, members)?;
    Ok(ports.into_iter().map(|p| (p.name, p.number)).collect())
}

/// K-34, K-37: consumers match the Service's port by name and take the slice's number, which is `targetPort`.
#[test]
fn a_slice_has_the_names_and_the_target_numbers_of_the_service() {
    let pods = found(&[pod("a", 5432, &json!({}))]);
    let pool = of_pods();
    let number = json!([{ "port": 6432, "targetPort": 5432 }]);
    assert_eq!(ports(&pool, &number, &pods).unwrap(), [(String::new(), 5432)]);
    let named = json!([{ "name": "sql", "port": 6432, "targetPort": "pg" }, { "name": "plain", "port": 9187 }]);
    let expected = [("sql".to_string(), 5432), ("plain".to_string(), 9187)];
    assert_eq!(ports(&pool, &named, &pods).unwrap(), expected);
}

#[test]
fn a_port_that_leads_nowhere_or_to_several_is_a_problem_with_its_remedy() {
    let pool = of_pods();
    let named = json!([{ "port": 5432, "targetPort": "postgres" }]);
    let told = |members: &[Member], ports_: &Value| ports(&pool, ports_, members).unwrap_err().remove(0);
    let none = told(&found(&[pod("a", 5432, &json!({}))]), &named);
    assert_eq!(none.kind, ProblemKind::PortNotResolved);
    assert!(none.to_string().contains("they have pg: write the number"), "{none}");
    let two = found(&[pod("a", 5432, &json!({})), pod("b", 5433, &json!({}))]);
    let differ = told(&two, &json!([{ "port": 5432, "targetPort": "pg" }]));
    assert_eq!(differ.kind, ProblemKind::PortsDiffer);
    assert!(differ.to_string().contains("5432 and 5433"), "{differ}");
    let beyond = told(&two, &json!([{ "port": 5432, "targetPort": 70000 }]));
    assert_eq!(beyond.kind, ProblemKind::PortNotResolved);
    assert!(beyond.to_string().contains("70000"), "{beyond}");
}

#[test]
fn hosts_are_published_at_the_port_where_they_are_measured() {
    let host = |name: &str, port: u16| json!({ "name": name, "host": format!("{name}.example"), "port": port });
    let same = pool(&json!({ "hosts": [host("a", 6000), host("b", 6000)] }));
    let hosts = members(&same, []).unwrap();
    assert_eq!(port_of_new(&same, &same.services[0]).unwrap(), 6000);
    assert!(ports(&same, &json!([{ "port": 5432, "targetPort": 6000 }]), &hosts).is_ok());
    let other = ports(&same, &json!([{ "port": 5432 }]), &hosts).unwrap_err().remove(0);
    assert_eq!(other.kind, ProblemKind::PortsDiffer);
    assert!(other.to_string().contains("set targetPort to 6000"), "{other}");
    let differ = pool(&json!({ "hosts": [host("a", 6000), host("b", 6001)] }));
    let told = port_of_new(&differ, &differ.services[0]).unwrap_err();
    assert!(told.to_string().contains("6000 and 6001"), "{told}");
}

/// K-26: the address of a pod that has ended may be another's by now, whether it is still written there or not.
#[test]
fn a_pod_that_ended_is_no_member() {
    let ended = |phase: &str| pod("b", 5432, &json!({ "phase": phase }));
    let gone = pod("c", 5432, &json!({ "phase": "Failed", "podIP": null, "podIPs": null }));
    let members = found(&[pod("a", 5432, &json!({})), ended("Failed"), ended("Succeeded"), gone]);
    assert_eq!(members.iter().map(|m| m.name.as_str()).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_pods_availability_is_what_may_serve() {
    let not_ready = json!({ "conditions": [{ "type": "Ready", "status": "False" }] });
    let mut terminating = pod("d", 5432, &json!({}));
    terminating.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let pods = [
        pod("a", 5432, &json!({})),
        pod("b", 5432, &not_ready),
        pod("c", 5432, &json!({ "phase": "Pending" })),
        terminating,
    ];
    let shown: Vec<_> = found(&pods).iter().map(|m| m.availability).collect();
    assert_eq!(
        shown,
        [
            Availability::Ready,
            Availability::NotReady,
            Availability::NotRunning,
            Availability::Terminating
        ]
    );
}

/// K-27: one address of each family, and each family is asked for by itself.
#[test]
fn a_member_has_one_address_of_each_family_and_a_service_has_its_families() {
    let both =
        json!({ "podIP": "fd00::1", "podIPs": [{ "ip": "fd00::1" }, { "ip": "10.0.0.1" }, { "ip": "10.0.0.9" }] });
    let members = found(&[pod("a", 5432, &both)]);
    let shown: Vec<_> = members[0].addresses.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["fd00::1", "10.0.0.1"]);
    let pool = of_pods();
    let families = |spec: Value| {
        let object: Service = serde_json::from_value(json!({ "spec": spec })).unwrap();
        service(&pool, &pool.services[0], Some(&object))
            .unwrap()
            .unwrap()
            .families
    };
    let ports = json!([{ "port": 5432 }]);
    assert_eq!(families(json!({ "ports": ports })), [Family::V4]);
    assert_eq!(
        families(json!({ "ports": ports, "clusterIPs": ["fd00::a"] })),
        [Family::V6]
    );
    let dual = families(json!({ "ports": ports, "ipFamilies": ["IPv6", "IPv4"] }));
    assert_eq!(dual, [Family::V6, Family::V4]);
}

/// K-42: a slice holds a thousand endpoints, and a pool a tenth of that, so none is ever split or cut.
#[test]
fn more_pods_than_a_pool_can_have_are_refused_in_words() {
    let pods: Vec<_> = (0..=MAX_MEMBERS)
        .map(|n| pod(&format!("pg-{n:03}"), 5432, &json!({})))
        .collect();
    assert_eq!(found(&pods[1..]).len(), MAX_MEMBERS);
    let told = members(&of_pods(), &pods).unwrap_err();
    assert_eq!(told.kind, ProblemKind::TooManyMembers);
    assert!(
        told.to_string().contains("101 pods") && told.to_string().contains("podSelector"),
        "{told}"
    );
}

#[test]
fn a_service_that_cannot_be_published_to_says_everything_that_is_wrong() {
    let pool = of_pods();
    let kinds = |spec: Value| -> Vec<ProblemKind> {
        let object: Service = serde_json::from_value(json!({ "spec": spec })).unwrap();
        let told = service(&pool, &pool.services[0], Some(&object)).unwrap_err();
        told.iter().map(|p| p.kind).collect()
    };
    let selector = json!({ "app": "db" });
    assert_eq!(
        kinds(json!({ "selector": selector, "ports": [{ "port": 53, "protocol": "UDP" }] })),
        [ProblemKind::ServiceHasSelector, ProblemKind::ServicePortNotTcp]
    );
    assert_eq!(
        kinds(json!({ "type": "ExternalName" })),
        [ProblemKind::ServiceIsExternalName]
    );
    assert_eq!(kinds(json!({})), [ProblemKind::ServiceHasNoPort]);
    let missing = service(&pool, &pool.services[0], None).unwrap_err();
    assert_eq!(missing[0].kind, ProblemKind::ServiceNotFound);
}

#[test]
fn lists_read_as_sentences_and_stay_short() {
    assert_eq!(list::<&str>(&[]), "nothing");
    assert_eq!(list(&["a"]), "a");
    assert_eq!(list(&["a", "b"]), "a and b");
    assert_eq!(list(&["a", "b", "c", "d"]), "a, b, c and d");
    assert_eq!(list(&["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
}

#[test]
fn each_kind_has_its_own_word() {
    let words: std::collections::BTreeSet<_> = ProblemKind::ALL.iter().map(|k| k.as_str()).collect();
    assert_eq!(words.len(), ProblemKind::ALL.len());
}
