//! Rows a and b: who is in the Service, and who is not.

use serde_json::json;

use crate::stage::{SERVICE, Stage};
use crate::support::wait::until;

pub(crate) async fn a_new_pool_lists_both_standbys_and_clients_reach_exactly_them(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let clients = stage.clients().await;
    until("kube-proxy leads to both", async || {
        let reached = clients.reach(10).await;
        reached.keys().map(String::as_str).eq(["pg-1", "pg-2"])
    })
    .await;
    let reached = clients.reach(100).await;
    assert!(reached.keys().map(String::as_str).eq(["pg-1", "pg-2"]), "{reached:?}");

    let pool = stage.pools().get_status("orders").await.unwrap();
    let status = pool.status.unwrap();
    assert_eq!(status.observed_generation, pool.metadata.generation);
    assert_eq!(status.primary.as_ref().map(|p| p.name.as_str()), Some("pg-0"));
    let endpoints: Vec<&str> = status.services[0].endpoints.iter().map(String::as_str).collect();
    assert_eq!(
        (endpoints.as_slice(), status.services[0].ready),
        (["pg-1", "pg-2"].as_slice(), 2)
    );
    stage.until_condition("Ready", "True", "Published").await;
    stage.until_condition("EndpointsPublished", "True", "InSync").await;
    let note = stage.until_event("EndpointsChanged").await;
    assert_eq!(note, format!("{SERVICE} now lists pg-1, pg-2"));

    let table = stage.cluster.kubectl(&["-n", &stage.namespace, "get", "rpool"]).await;
    let words: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..6], ["orders", "True", "2/2", "2s", "-", "pg-0"], "{table}");
}

/// PG-26, PG-107, K-44, PG-121: without a person. Connections that are open stay.
pub(crate) async fn a_paused_standby_leaves_in_time_and_returns_by_the_rules(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let clients = stage.clients().await;
    let mut open = None;
    until("a client is connected to pg-1", async || {
        // kube-proxy leads nobody yet, or elsewhere.
        open = clients.connect().await.ok().filter(|(name, _)| name == "pg-1");
        open.is_some()
    })
    .await;
    stage.server("pg-1").pause_replay().await.unwrap();
    stage.leaves_in_time("pg-1").await;
    stage.until_listed(&["pg-2"]).await;
    clients.until_proxy_drops(stage.address("pg-1")).await;
    let reached = clients.reach(50).await;
    assert!(reached.keys().eq(["pg-2"]), "{reached:?}");
    let (_, open) = open.unwrap();
    open.simple_query("select 1").await.expect("an open connection stays");
    stage.until_reason("pg-1", "Lagging", &["Stalled"]).await;
    stage.until_state("Degraded").await;
    assert!(
        stage
            .until_event("Stalled")
            .await
            .starts_with("pg-1 no longer serves orders-fresh")
    );

    let history = stage.history().await;
    stage.server("pg-1").resume_replay().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stage.until_state("Normal").await;
    // It left once, and came once.
    history.was(&[vec!["pg-2"], vec!["pg-1", "pg-2"]]).await;
}
