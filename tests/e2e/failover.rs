//! Row g: the primary dies, another is promoted, the old one returns.

use serde_json::json;

use crate::stage::Stage;
use crate::support::wait::until;

/// PG-46, PG-47, PG-49, PG-51: the role first, then the timeline, then lag.
pub(crate) async fn a_failover_is_followed_and_a_second_primary_freezes_the_list(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let history = stage.history().await;
    // Its standbys try again at once; by default it is after five seconds, and under load one that waits is late and leaves.
    for standby in ["pg-1", "pg-2"] {
        stage.alter(standby, "wal_retrieve_retry_interval", "100ms").await;
    }
    the_primary_crashes(stage).await;
    let message = stage.until_condition("PrimaryResolved", "True", "PrimarySilent").await;
    assert!(message.starts_with("pg-0 is the primary"), "{message}");
    // Nobody can become staler than a primary that is down, for however long, nor by its recovery.
    stage.lasts("PrimarySilent").await;
    stage.server_mut("pg-0").start().await.unwrap();
    stage.start_load();
    stage.until_state("Normal").await;
    stage.lasts("Normal").await;
    assert_eq!(history.lists(), [["pg-1", "pg-2"]]);

    the_primary_crashes(stage).await;
    stage.server("pg-1").promote().await.unwrap();
    stage.until_listed(&["pg-2"]).await;
    until("the promoted one is the primary", async || {
        let status = stage.pools().get_status("orders").await.unwrap().status.unwrap();
        status.primary.is_some_and(|p| p.name == "pg-1")
    })
    .await;
    // pg-2 does not follow yet: once the new primary has commits of its own, nothing from before makes it fresh.
    stage
        .server("pg-1")
        .sql("create table after_the_failover (n int)")
        .await
        .unwrap();
    stage.until_state("Fallback").await;
    stage.until_reason("pg-2", "Lagging", &["Held"]).await;
    assert!(
        stage
            .until_event("EpochChanged")
            .await
            .starts_with("pg-2 no longer serves")
    );
    stage.server("pg-2").follow(stage.server("pg-1")).await.unwrap();
    until("the one that follows serves because it is fresh", async || {
        let status = stage.pools().get_status("orders").await.unwrap().status.unwrap();
        status.services[0].ready == 1
    })
    .await;
    // At no time was the list empty, and the promoted one was never again in it.
    history.was(&[vec!["pg-1", "pg-2"], vec!["pg-2"]]).await;

    stage.server_mut("pg-0").start().await.unwrap();
    let message = stage
        .until_condition("PrimaryResolved", "False", "SeveralPrimaries")
        .await;
    assert!(
        message.contains("pg-0, pg-1 all accept writes; fence all but one"),
        "{message}"
    );
    stage.until_state("Frozen").await;
    // Frozen means frozen: not even one that lags leaves while nobody knows behind whom.
    stage.server("pg-2").pause_replay().await.unwrap();
    stage.lasts("Frozen").await;
    history.was(&[vec!["pg-1", "pg-2"], vec!["pg-2"]]).await;

    stage.server_mut("pg-0").kill().await.unwrap();
    stage.until_condition("PrimaryResolved", "True", "Resolved").await;
}

/// It dies when both standbys have received everything. A commit that only one of them has would make the other one stale
/// for as long as nobody can send it, and unable to follow the first.
async fn the_primary_crashes(stage: &mut Stage) {
    stage.stop_load();
    until("both have received everything", async || {
        let everything = position(stage, "pg-0", "pg_current_wal_flush_lsn()").await;
        let received = "pg_last_wal_receive_lsn()";
        position(stage, "pg-1", received).await == everything && position(stage, "pg-2", received).await == everything
    })
    .await;
    stage.server_mut("pg-0").kill().await.unwrap();
    stage.until_state("PrimarySilent").await;
}

async fn position(stage: &Stage, server: &str, function: &str) -> Option<String> {
    let rows = stage.server(server).sql(&format!("select {function}")).await.unwrap();
    rows[0][0].clone()
}
