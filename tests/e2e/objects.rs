//! Rows j, l and m: Services, slices, pods, Secrets and pools that change hands or go.

use k8s_openapi::api::core::v1::Endpoints;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use lagwarden::demo::postgres::{Maker, Options};
use serde_json::json;

use crate::stage::{ROLE, SECRET, SERVICE, Stage};
use crate::support::net::Sandbox;
use crate::support::wait::until;
use crate::world::subfolder;

/// K-01, K-02, K-07: told or repaired, never removed.
pub(crate) async fn others_endpoints_are_told_and_ours_are_put_right(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let ours = stage.published().await.remove(0);

    // Somebody edits our slice, then deletes it.
    let edited = json!({ "endpoints": [{ "addresses": ["10.77.9.9"] }] });
    let params = PatchParams::default();
    stage
        .slices()
        .patch(&ours.name_any(), &params, &Patch::Merge(edited))
        .await
        .unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    let note = stage.until_event("SliceRepaired").await;
    assert!(note.contains(&ours.name_any()), "{note}");
    stage
        .slices()
        .delete(&ours.name_any(), &DeleteParams::default())
        .await
        .unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;

    // Somebody adds a slice of their own: it is told, and left alone.
    let foreign = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "by-hand", "labels": { "kubernetes.io/service-name": SERVICE } },
        "endpoints": [{ "addresses": ["10.77.9.9"] }], "ports": [{ "port": 5432 }],
    });
    let foreign: EndpointSlice = serde_json::from_value(foreign).unwrap();
    stage.slices().create(&PostParams::default(), &foreign).await.unwrap();
    let message = stage
        .until_condition("EndpointsPublished", "False", "ForeignEndpointSlices")
        .await;
    assert!(message.contains("by-hand"), "{message}");
    assert!(stage.slices().get_opt("by-hand").await.unwrap().is_some());
    stage
        .slices()
        .delete("by-hand", &DeleteParams::default())
        .await
        .unwrap();
    stage.until_condition("EndpointsPublished", "True", "InSync").await;
}

/// K-06: Kubernetes would add every pod to it.
pub(crate) async fn a_service_of_somebody_else_is_refused_in_words(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let history = stage.history().await;

    // Another pool names our Service: the older pool keeps it.
    let mut second = stage.pool_with(json!({}));
    second["metadata"]["name"] = json!("second");
    stage.apply(&second).await.unwrap();
    let message = stage
        .until_condition_of("second", "Stalled", "True", "DuplicateService")
        .await;
    assert!(message.contains(SERVICE) && message.contains("orders"), "{message}");

    // A Service with a selector: Kubernetes itself adds every pod to it.
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "with-selector" },
        "spec": { "selector": { "app": "orders-db" }, "ports": [{ "name": "postgresql", "port": 5432 }] },
    });
    let service = serde_json::from_value(service).unwrap();
    stage.services().create(&PostParams::default(), &service).await.unwrap();
    let mut third = stage.pool_with(json!({ "services": [{ "name": "with-selector" }] }));
    third["metadata"]["name"] = json!("third");
    stage.apply(&third).await.unwrap();
    let message = stage
        .until_condition_of("third", "Stalled", "True", "ServiceHasSelector")
        .await;
    assert!(message.contains("app=orders-db"), "{message}");
    let made = stage.slices().list(&ListParams::default()).await.unwrap().items;
    let of_third = made
        .iter()
        .filter(|s| s.labels().get("lagwarden.io/pool").is_some_and(|p| p == "third"));
    assert_eq!(of_third.count(), 0);
    remove_the_selector(stage).await;
    stage.until_listed_in("with-selector", &["pg-1", "pg-2"]).await;
    assert_eq!(history.lists(), [["pg-1", "pg-2"]]);
}

/// What Kubernetes had made for the selector stays, so it is told; when that goes too, all is well.
async fn remove_the_selector(stage: &Stage) {
    let made_for_it =
        ListParams::default().labels("endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io");
    let left: Api<Endpoints> = Api::namespaced(stage.client.clone(), &stage.namespace);
    until(
        "Kubernetes has made slices and Endpoints for the selector",
        async || {
            let slices = stage.slices().list(&made_for_it).await.unwrap().items;
            let endpoints = left.get_opt("with-selector").await.unwrap();
            slices.iter().any(|s| !s.endpoints.is_empty()) && endpoints.is_some()
        },
    )
    .await;
    let none = json!({ "spec": { "selector": null } });
    let params = PatchParams::default();
    stage
        .services()
        .patch("with-selector", &params, &Patch::Merge(none))
        .await
        .unwrap();
    stage
        .until_condition_of("third", "EndpointsPublished", "False", "ForeignEndpointSlices")
        .await;
    // Kubernetes mirrors an Endpoints object that is left behind, so that goes first.
    left.delete("with-selector", &DeleteParams::default()).await.unwrap();
    for slice in stage.slices().list(&made_for_it).await.unwrap().items {
        stage
            .slices()
            .delete(&slice.name_any(), &DeleteParams::default())
            .await
            .unwrap();
    }
    stage
        .until_condition_of("third", "EndpointsPublished", "True", "InSync")
        .await;
}

/// K-21, K-22: by uid, and by the cluster that answers there.
pub(crate) async fn pods_are_followed_by_uid_and_strangers_never_join(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let clients = stage.clients().await;
    let old = stage.networks["pg-1"].clone();
    let uid_of = async |stage: &Stage, name: &str| {
        let slices = stage.published().await;
        let endpoint = slices[0]
            .endpoints
            .iter()
            .find(|e| e.target_ref.as_ref().unwrap().name.as_deref() == Some(name));
        endpoint.map(|e| {
            (
                e.target_ref.as_ref().unwrap().uid.clone().unwrap(),
                e.addresses[0].clone(),
            )
        })
    };
    let (first_uid, first_address) = uid_of(stage, "pg-1").await.unwrap();

    // Terminating and unready pods leave at once.
    stage.pods.terminate("pg-1").await;
    stage.until_listed(&["pg-2"]).await;
    stage.until_reason("pg-1", "Excluded", &["Terminating"]).await;
    stage.pods.remove("pg-1").await;
    stage.server_mut("pg-1").kill().await.unwrap();

    // It is made again, elsewhere.
    stage.add_server("pg-1", Sandbox::new(), Some("pg-0")).await;
    stage.until_listed(&["pg-1", "pg-2"]).await;
    let (uid, address) = uid_of(stage, "pg-1").await.unwrap();
    assert!(uid != first_uid && address != first_address);

    // Its old address is given to a pod of another database, with the same labels.
    let others = Maker::new(stage.binaries.clone(), &subfolder(&stage.folder, "others")).unwrap();
    let mut options = Options::new("stranger", old.address, 5432);
    options.launcher = old.launcher();
    let mut stranger = others.server(options).await.unwrap();
    stranger.start().await.unwrap();
    let role = lagwarden::engine::postgresql::ROLE_SQL.replace(":'password'", &format!("'{}'", ROLE.1));
    stranger.sql(&role).await.unwrap();
    stage.pods.make("stranger", old.address).await;
    stage.until_reason("stranger", "Excluded", &["ForeignServer"]).await;
    let message = stage
        .until_condition("MeasurementHealthy", "False", "ForeignServer")
        .await;
    assert!(
        message.contains("stranger") && message.contains("remove it from spec.members"),
        "{message}"
    );
    assert_eq!(stage.listed().await, ["pg-1", "pg-2"]);
    let reached = clients.reach(20).await;
    assert!(!reached.contains_key(&old.address.to_string()), "{reached:?}");

    stage.pods.show("pg-2", stage.address("pg-2"), "False").await;
    stage.until_listed(&["pg-1"]).await;
    stage.until_reason("pg-2", "Excluded", &["PodNotReady"]).await;
    stage.pods.show("pg-2", stage.address("pg-2"), "True").await;
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stranger.kill().await.unwrap();
}

/// PG-52: a label may be wrong.
pub(crate) async fn a_label_names_the_primary_and_the_server_is_asked_all_the_same(stage: &mut Stage) {
    stage.pods.label("pg-0", "role", "primary").await;
    let primary = json!({ "detect": "Label", "podLabel": { "key": "role", "value": "primary" } });
    stage.begin(json!({ "primary": primary })).await;
    // During a switch-over two pods may carry it, or none: nobody leaves for that.
    let history = stage.history().await;
    stage.pods.label("pg-1", "role", "primary").await;
    let message = stage
        .until_condition("PrimaryResolved", "False", "SeveralDesignated")
        .await;
    assert!(
        message.contains("pg-0, pg-1 are all designated; leave one"),
        "{message}"
    );
    stage.pods.label("pg-0", "role", "replica").await;
    stage
        .until_condition("PrimaryResolved", "False", "DesignatedIsReplica")
        .await;
    stage.pods.label("pg-1", "role", "replica").await;
    stage
        .until_condition("PrimaryResolved", "False", "NoneDesignated")
        .await;
    stage.pods.label("pg-0", "role", "primary").await;
    stage.until_condition("PrimaryResolved", "True", "Resolved").await;
    stage.until_state("Normal").await;
    assert_eq!(history.lists(), [["pg-1", "pg-2"]]);
}

pub(crate) async fn secrets_rotate_without_a_restart(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let change = "alter role lagwarden password 'a second one';
                  select pg_terminate_backend(pid) from pg_stat_activity where usename = 'lagwarden'";
    stage.server("pg-0").sql(change).await.unwrap();
    let message = stage.until_condition("MeasurementHealthy", "False", "AuthFailed").await;
    assert!(message.contains(SECRET) && !message.contains(ROLE.1), "{message}");
    stage
        .secret(SECRET, &[("username", ROLE.0), ("password", "a second one")])
        .await;
    stage.until_condition("MeasurementHealthy", "True", "AllAnswer").await;
    stage.until_listed(&["pg-1", "pg-2"]).await;
    // Nowhere is a password told.
    let metrics = stage.controllers[0].get("/metrics").await.unwrap().2;
    let everything = [stage.controllers[0].log(), metrics, stage.tell().await].concat();
    assert!(!everything.contains(ROLE.1) && !everything.contains("a second one"));
}

/// K-76: no finalizer stands in the way.
pub(crate) async fn a_deleted_pool_takes_its_objects_with_it_or_leaves_them(stage: &mut Stage) {
    stage.begin(json!({})).await;
    stage.pools().delete("orders", &DeleteParams::default()).await.unwrap();
    until("garbage collection takes the slices and the Service", async || {
        stage.published().await.is_empty() && stage.services().get_opt(SERVICE).await.unwrap().is_none()
    })
    .await;

    stage
        .apply(&stage.pool_with(json!({ "deletionPolicy": "Retain" })))
        .await
        .unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    let kept = stage.published().await;
    assert!(kept.iter().all(|s| s.owner_references().is_empty()));
    stage.pools().delete("orders", &DeleteParams::default()).await.unwrap();
    until("the pool is forgotten", async || {
        stage.controllers[0].knows().await.is_none()
    })
    .await;
    assert_eq!(stage.published().await, kept);
    assert!(stage.services().get_opt(SERVICE).await.unwrap().is_some());
    // A pool of the same name takes them over.
    stage.apply(&stage.pool_with(json!({}))).await.unwrap();
    stage.until_condition("EndpointsPublished", "True", "InSync").await;
    assert_eq!(stage.listed().await, ["pg-1", "pg-2"]);
}
