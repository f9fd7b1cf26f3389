//! Rows d, e and e2: servers and networks in trouble.

use lagwarden::demo::postgres::Part;
use serde_json::json;

use crate::stage::{SERVICE, Stage};
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

/// PG-29: what is late on purpose is late, and stays out without a flutter. PG-12, PG-14, PG-17: what has lost its source is
/// known by what it lacks, whatever its log, its primary or its own state say.
pub(crate) async fn a_standby_that_is_late_on_purpose_or_has_no_source_stays_out(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let history = stage.history().await;
    stage.alter("pg-1", "recovery_min_apply_delay", "5s").await;
    stage.leaves_in_time("pg-1").await;
    stage.until_reason("pg-1", "Lagging", &["ApplyLag"]).await;
    stage.lasts("Degraded").await;
    stage.alter("pg-1", "recovery_min_apply_delay", "0").await;
    stage.until_listed(&["pg-1", "pg-2"]).await;

    // Its source refuses it, and what it asks its archive for is never there.
    stage.alter("pg-1", "restore_command", "exit 1").await;
    stage.alter("pg-1", "primary_conninfo", "host=127.0.0.1 port=1").await;
    stage.leaves_in_time("pg-1").await;
    stage.until_reason("pg-1", "Lagging", &["DeliveryLag"]).await;
    stage.lasts("Degraded").await;
    stage
        .server("pg-1")
        .sql("alter system reset primary_conninfo")
        .await
        .unwrap();
    stage.server("pg-1").sql("select pg_reload_conf()").await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;

    // While it is down, the primary removes log that it needs.
    stage.server_mut("pg-2").kill().await.unwrap();
    stage.until_listed(&["pg-1"]).await;
    let files = "select string_agg(name, ',' order by name) from pg_ls_waldir()";
    let needed = stage
        .server("pg-0")
        .sql("select pg_walfile_name(pg_current_wal_lsn())")
        .await
        .unwrap();
    let needed = needed[0][0].clone().unwrap();
    until("the primary has removed the segment", async || {
        let primary = stage.server("pg-0");
        primary.sql("select pg_switch_wal()").await.unwrap();
        primary.sql("checkpoint").await.unwrap();
        !primary.sql(files).await.unwrap()[0][0]
            .clone()
            .unwrap()
            .contains(&needed)
    })
    .await;
    stage.server_mut("pg-2").start().await.unwrap();
    stage.until_reason("pg-2", "Lagging", &["DeliveryLag"]).await;
    let both = vec!["pg-1", "pg-2"];
    history
        .was(&[
            both.clone(),
            vec!["pg-2"],
            both.clone(),
            vec!["pg-2"],
            both,
            vec!["pg-1"],
        ])
        .await;
}

/// PG-82: behind another standby or not, a standby is judged against the primary.
pub(crate) async fn a_cascade_is_judged_against_the_primary(stage: &mut Stage) {
    let services = json!([{ "name": SERVICE, "create": true, "maxStaleness": "2s", "fallback": ["None"] }]);
    stage.begin(json!({ "services": services })).await;
    let history = stage.history().await;
    stage.server("pg-2").follow(stage.server("pg-1")).await.unwrap();
    let middle = stage.address("pg-1").to_string();
    until("pg-2 receives from pg-1", async || {
        let source = stage
            .server("pg-2")
            .sql("select sender_host from pg_stat_wal_receiver")
            .await;
        source.is_ok_and(|rows| rows.first().is_some_and(|row| row[0].as_deref() == Some(&middle)))
    })
    .await;
    // One that does not apply passes on what it receives: only itself is late.
    stage.server("pg-1").pause_replay().await.unwrap();
    stage.until_listed(&["pg-2"]).await;
    stage.lasts("Degraded").await;
    stage.server("pg-1").resume_replay().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;

    // One that does not receive makes both late, and to each other they look level.
    stage.server("pg-1").freeze(Part::Receiver).await.unwrap();
    stage.until_listed(&[]).await;
    stage.until_reason("pg-1", "Lagging", &["DeliveryLag"]).await;
    stage.until_reason("pg-2", "Lagging", &["DeliveryLag"]).await;
    stage.server("pg-1").resume(Part::Receiver).await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    let lists = history.lists();
    assert_eq!(lists[..3], [vec!["pg-1", "pg-2"], vec!["pg-2"], vec!["pg-1", "pg-2"]]);
}
