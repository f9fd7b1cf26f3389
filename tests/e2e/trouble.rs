//! Rows d, e and e2: servers and networks in trouble.

use lagwarden::demo::postgres::Part;
use serde_json::json;

use crate::stage::Stage;
use crate::support::wait::until;

/// PG-11, PG-16, PG-22, PG-89: what looks like streaming proves nothing, and what is dead is known to be.
pub(crate) async fn a_stalled_link_and_a_dead_server_leave_for_their_own_reasons(stage: &mut Stage) {
    stage.begin(json!({})).await;
    // The primary and the standby both still say "streaming".
    stage.server("pg-1").freeze(Part::Receiver).await.unwrap();
    stage.leaves_in_time("pg-1").await;
    stage.until_listed(&["pg-2"]).await;
    stage.until_reason("pg-1", "Lagging", &["DeliveryLag"]).await;
    stage.server("pg-1").resume(Part::Receiver).await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;

    stage.server_mut("pg-2").kill().await.unwrap();
    stage.leaves_early("pg-2").await;
    stage.until_listed(&["pg-1"]).await;
    stage.until_reason("pg-2", "Lagging", &["Down"]).await;
    stage.server_mut("pg-2").start().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
}

/// PG-21, PG-26, PG-86: a server that never answers delays nobody else's measurement.
pub(crate) async fn a_stopped_applier_and_a_hung_server_leave_for_their_own_reasons(stage: &mut Stage) {
    stage.begin(json!({})).await;
    stage.server("pg-1").freeze(Part::Applier).await.unwrap();
    stage.leaves_in_time("pg-1").await;
    stage.until_listed(&["pg-2"]).await;
    stage.until_reason("pg-1", "Lagging", &["Stalled"]).await;
    stage.server("pg-1").resume(Part::Applier).await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;

    // It accepts connections, as its kernel does, and never answers.
    stage.server("pg-2").freeze(Part::Whole).await.unwrap();
    stage.leaves_in_time("pg-2").await;
    stage.until_listed(&["pg-1"]).await;
    stage.until_reason("pg-2", "Lagging", &["Unreachable"]).await;
    stage.server("pg-2").resume(Part::Whole).await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
}

/// PG-94: one that cannot be reached is one; all at once is us.
pub(crate) async fn one_standby_out_of_our_reach_leaves_and_all_out_of_our_reach_stay(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let us = [stage.controllers[0].sandbox.address];
    stage.networks["pg-1"].cut_from(&us);
    stage.leaves_in_time("pg-1").await;
    stage.until_listed(&["pg-2"]).await;
    stage.until_reason("pg-1", "Lagging", &["Unreachable"]).await;
    stage.networks["pg-1"].heal();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stage.until_state("Normal").await;

    let history = stage.history().await;
    for network in stage.networks.values() {
        network.cut_from(&us);
    }
    stage.until_state("ControllerIsolated").await;
    stage.until_event("ControllerIsolated").await;
    stage.lasts("ControllerIsolated").await;
    for network in stage.networks.values() {
        network.heal();
    }
    stage.until_state("Normal").await;
    assert_eq!(history.lists(), [["pg-1", "pg-2"]]);
}

/// PG-91: refused to us is not dead.
pub(crate) async fn standbys_that_refuse_us_alone_stay_and_a_dead_one_leaves(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let history = stage.history().await;
    let us = [stage.controllers[0].sandbox.address];
    for name in ["pg-1", "pg-2"] {
        stage.networks[name].refuse(&us);
    }
    stage.until_state("Degraded").await;
    for name in ["pg-1", "pg-2"] {
        stage.until_reason(name, "Serving", &["Unreachable"]).await;
    }
    until("the condition names both", async || {
        let message = stage.until_condition("MeasurementHealthy", "False", "Refused").await;
        message.starts_with("2 of 3 members give no position: pg-1")
    })
    .await;
    stage.lasts("Degraded").await;
    assert_eq!(history.lists(), [["pg-1", "pg-2"]]);

    stage.server_mut("pg-1").kill().await.unwrap();
    stage.until_listed(&["pg-2"]).await;
    stage.until_reason("pg-1", "Lagging", &["Down"]).await;
    history.was(&[vec!["pg-1", "pg-2"], vec!["pg-2"]]).await;
}
