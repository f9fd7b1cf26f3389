//! Rows h, i, n and o: the API server, the controller, its leader and its clock in trouble.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use lagwarden::app::{self, ControllerOptions};
use lagwarden::clock::Clock;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::stage::Stage;
use crate::support::http::get;
use crate::support::wait::{until, until_within};

/// How long the API server is away.
const AWAY: Duration = Duration::from_secs(30);
/// How soon everything is right again.
const RIGHT_WITHIN: Duration = Duration::from_secs(2);
/// How soon another controller publishes.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(6);

/// PG-92, K-67: nothing is emptied, and nothing spins.
pub(crate) async fn an_api_server_that_hangs_or_dies_changes_nothing(stage: &mut Stage) {
    stage.begin(json!({})).await;
    stage.controllers[0].ready().await;
    let before = stage.published().await;
    stage.cluster.hang_api().await;
    sleep(AWAY).await;
    assert!(stage.controllers[0].runs());
    let (status, _, why) = stage.controllers[0].get("/readyz").await.unwrap();
    assert_eq!(status, 503, "{why}");
    assert!(why.contains("the API server has not answered for"), "{why}");
    assert_eq!(stage.controllers[0].get("/livez").await.unwrap().0, 200);
    stage.cluster.resume_api().await;
    assert_eq!(stage.published().await, before, "nothing published has changed");
    stage.controllers[0].ready().await;

    stage.cluster.kill_api().await;
    // While it is away, a standby stalls: that can only be published afterwards.
    stage.server("pg-1").pause_replay().await.unwrap();
    sleep(AWAY).await;
    assert!(stage.controllers[0].runs());
    stage.cluster.start_api().await;
    until_within(RIGHT_WITHIN, "the list is right", async || {
        stage.listed().await == ["pg-2"]
    })
    .await;
    stage.server("pg-1").resume_replay().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
}

/// K-11, K-17: what is published stays until everyone was judged.
pub(crate) async fn a_controller_that_restarts_publishes_nothing_wrong(stage: &mut Stage) {
    stage.begin(json!({})).await;
    // One is behind and held by the fallback, one is down.
    stage.server_mut("pg-2").kill().await.unwrap();
    stage.until_listed(&["pg-1"]).await;
    stage.server("pg-1").pause_replay().await.unwrap();
    stage.until_state("Fallback").await;
    let history = stage.history().await;
    for _ in 0..3 {
        stage.controllers[0].kill().await;
        stage.controllers[0].start_again();
        stage.controllers[0].ready().await;
        until("it knows the pool again", async || {
            let known = stage.controllers[0].knows().await;
            known.is_some_and(|k| k["services"][0]["state"] == "Fallback")
        })
        .await;
    }
    assert_eq!(history.lists(), [["pg-1"]], "nothing emptied, nobody added");
    stage.server("pg-1").resume_replay().await.unwrap();
    stage.server_mut("pg-2").start().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    history.was(&[vec!["pg-1"], vec!["pg-1", "pg-2"]]).await;
}

/// K-66: nobody leads beyond the term.
pub(crate) async fn another_controller_takes_over_and_the_list_never_flips(stage: &mut Stage) {
    stage.begin(json!({})).await;
    stage.start_controller();
    stage.controllers[1].ready().await;
    until("the standby measures too", async || {
        let known = stage.controllers[1].knows().await;
        known.is_some_and(|k| k["services"][0]["state"] == "Normal")
    })
    .await;
    let history = stage.history().await;
    let first = stage.controllers[0].user.clone();
    let written_by_first = |stage: &Stage| {
        let writes = stage.writes().into_iter().filter(|w| w.user == first);
        writes
            .filter(|w| w.resource == "endpointslices" && w.code < 300)
            .count()
    };

    // The leader hangs. Its successor publishes what becomes true meanwhile.
    stage.controllers[0].hang().await;
    let written = written_by_first(stage);
    stage.server("pg-1").pause_replay().await.unwrap();
    let patience = TAKEN_OVER_WITHIN + Duration::from_secs(2);
    until_within(patience, "the list is right", async || stage.listed().await == ["pg-2"]).await;
    // It comes back, and knows that its time is over.
    stage.controllers[0].resume().await;
    stage.server("pg-1").resume_replay().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stage.controllers[0].ready().await;
    assert_eq!(
        written_by_first(stage),
        written,
        "the old leader wrote after its deadline"
    );

    // The new leader is killed: the first takes over again.
    stage.controllers[1].kill().await;
    stage.server("pg-2").pause_replay().await.unwrap();
    until_within(patience, "the list is right", async || stage.listed().await == ["pg-1"]).await;
    // The killed one returns, and stands by.
    stage.controllers[1].start_again();
    stage.controllers[1].ready().await;
    stage.server("pg-2").resume_replay().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    // The leader is told to end, and hands its Lease over: no waiting for it to run out.
    stage.controllers[0].terminate().await;
    stage.server("pg-1").pause_replay().await.unwrap();
    stage.until_listed(&["pg-2"]).await;
    let (both, one, two) = (vec!["pg-1", "pg-2"], vec!["pg-1"], vec!["pg-2"]);
    history
        .was(&[both.clone(), two.clone(), both.clone(), one, both, two])
        .await;
}

/// How many questions the controller in this process has had answered.
async fn probes() -> u64 {
    let (_, _, text) = get(HTTP, "/metrics").await.unwrap();
    let count = text.lines().find_map(|l| {
        l.strip_prefix("lagwarden_probe_duration_seconds_count")?
            .split(' ')
            .nth(1)
    });
    count.unwrap().parse().unwrap()
}

/// Where the controller in this process serves HTTP, in the network of this test alone.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

/// The controller runs in this process, so that its clock can be stepped where it is read.
pub(crate) async fn a_stepped_clock_changes_no_decision(stage: &mut Stage) {
    let clock = Clock::start();
    let (end, shutdown) = watch::channel(false);
    let user = format!("lagwarden-{}", stage.namespace);
    stage.cluster.write_kubeconfig(&user, Some("lagwarden"));
    let options = ControllerOptions {
        kubeconfig: Some(stage.cluster.kubeconfig(&user)),
        namespaces: vec![stage.namespace.clone()],
        http: HTTP,
        lease_namespace: Some(stage.namespace.clone()),
        lease: "lagwarden".into(),
        name: "in-process".into(),
    };
    let controller = tokio::spawn(app::controller(options, clock.clone(), shutdown));
    stage.apply(&stage.pool_with(json!({}))).await.unwrap();
    stage.start_load();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stage.until_state("Normal").await;
    let history = stage.history().await;
    let both = vec!["pg-1", "pg-2"];
    for step in [60_000, -60_000, -60_000, 60_000] {
        clock.step_wall(step);
        let before = probes().await;
        until("ninety more answers were judged", async || {
            probes().await >= before + 90
        })
        .await;
        assert_eq!(
            history.lists(),
            std::slice::from_ref(&both),
            "after a step of {step} ms"
        );
    }
    // With a minute's step in force, lag is found and healed as ever.
    clock.step_wall(60_000);
    stage.server("pg-1").pause_replay().await.unwrap();
    stage.until_listed(&["pg-2"]).await;
    clock.step_wall(-120_000);
    stage.server("pg-1").resume_replay().await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    history.was(&[both.clone(), vec!["pg-2"], both]).await;
    end.send_replace(true);
    controller.await.unwrap().unwrap();
}
