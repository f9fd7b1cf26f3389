//! Row f: every replica lags, and the declared fallback decides.

use serde_json::{Value, json};

use crate::stage::Stage;
use crate::support::wait::until;

fn service(name: &str, changes: Value) -> Value {
    let mut service = json!({ "name": name, "create": true, "maxStaleness": "2s", "hardMaxStaleness": "10m" });
    for (key, value) in changes.as_object().unwrap() {
        service[key] = value.clone();
    }
    service
}

/// A Service, what it declares, whom it lists when both replicas lag, and the state and reason that it shows.
type Case = (
    &'static str,
    fn() -> Value,
    &'static [&'static str],
    (&'static str, &'static str),
);

const CASES: [Case; 8] = [
    ("orders-fresh", || json!({}), &["pg-2"], ("Fallback", "LeastLagged")),
    (
        "least",
        || json!({ "fallback": ["LeastLagged"], "minEndpoints": 2 }),
        &["pg-1", "pg-2"],
        ("Fallback", "LeastLagged"),
    ),
    // The last set that needed no fallback.
    (
        "keep",
        || json!({ "fallback": ["KeepLast"] }),
        &["pg-2"],
        ("Fallback", "KeepLast"),
    ),
    ("none", || json!({ "fallback": ["None"] }), &[], ("Exhausted", "-")),
    (
        "primary-100",
        || json!({ "fallback": ["Primary"], "primaryMaxSharePercent": 100 }),
        &["pg-0"],
        ("Fallback", "Primary"),
    ),
    (
        "primary-50",
        || json!({ "fallback": ["Primary"], "primaryMaxSharePercent": 50 }),
        &["pg-0", "pg-2"],
        ("Fallback", "Primary"),
    ),
    (
        "primary-34",
        || json!({ "fallback": ["Primary"], "primaryMaxSharePercent": 34 }),
        &["pg-0", "pg-1", "pg-2"],
        ("Fallback", "Primary"),
    ),
    // A share of 20 % needs four replicas: the primary is left out, and the next fallback decides.
    (
        "primary-20",
        || json!({ "fallback": ["Primary", "LeastLagged"], "primaryMaxSharePercent": 20 }),
        &["pg-2"],
        ("Fallback", "LeastLagged"),
    ),
];

/// PG-102, PG-106, PG-109, PG-111. pg-1 is paused before pg-2, so that pg-2 is the freshest by a clear margin.
pub(crate) async fn when_all_lag_each_fallback_gives_exactly_its_list(stage: &mut Stage) {
    let services: Vec<_> = CASES.iter().map(|case| service(case.0, case.1())).collect();
    stage.begin(json!({ "services": services })).await;
    stage.server("pg-1").pause_replay().await.unwrap();
    stage.until_listed(&["pg-2"]).await;
    let history = stage.history().await;
    stage.server("pg-2").pause_replay().await.unwrap();
    for (service, _, list, _) in CASES {
        stage.until_listed_in(service, list).await;
    }
    until("the status names each fallback", async || {
        let status = stage.pools().get_status("orders").await.unwrap().status.unwrap();
        let said = status
            .services
            .iter()
            .map(|s| (s.state.as_str(), s.reason.as_deref().unwrap_or("-")));
        said.eq(CASES.iter().map(|case| case.3))
    })
    .await;
    let message = stage.until_condition("FallbackActive", "True", "LeastLagged").await;
    assert!(message.contains("primary-100: the primary serves reads"), "{message}");
    until("an Event says so", async || {
        let notes = stage.events("FallbackActive").await;
        notes
            .iter()
            .any(|n| n.contains("orders-fresh has too few fresh replicas"))
    })
    .await;

    for name in ["pg-1", "pg-2"] {
        stage.server(name).resume_replay().await.unwrap();
    }
    for (service, ..) in CASES {
        stage.until_listed_in(service, &["pg-1", "pg-2"]).await;
    }
    stage.until_condition("FallbackActive", "False", "NotNeeded").await;
    // Somebody served at all times, and never the primary.
    let lists = history.lists();
    assert!(
        lists.iter().all(|l| !l.is_empty() && l.iter().all(|n| n != "pg-0")),
        "{lists:?}"
    );
}

/// PG-104: staler than the declared hard limit is nobody's.
pub(crate) async fn beyond_the_hard_limit_nobody_serves_and_it_is_said(stage: &mut Stage) {
    let services = json!({ "services": [
        { "name": "orders-fresh", "create": true, "maxStaleness": "2s", "hardMaxStaleness": "4s" },
        // With a last resort.
        { "name": "orders-any", "create": true, "maxStaleness": "2s", "hardMaxStaleness": "4s",
          "fallback": ["LeastLagged", "Primary"], "primaryMaxSharePercent": 100 },
    ]});
    stage.begin(services).await;
    for name in ["pg-1", "pg-2"] {
        stage.server(name).pause_replay().await.unwrap();
    }
    stage.until_state("Fallback").await;
    stage.until_listed(&[]).await;
    stage.until_state("Exhausted").await;
    stage.until_listed_in("orders-any", &["pg-0"]).await;
    let note = stage.until_event("NoEndpoints").await;
    assert!(note.starts_with("orders-fresh has no endpoint"), "{note}");
    for name in ["pg-1", "pg-2"] {
        stage.server(name).resume_replay().await.unwrap();
    }
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stage.until_event("FallbackEnded").await;
}
