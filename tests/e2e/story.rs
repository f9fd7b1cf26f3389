//! The README's story through a real cluster, as `kubectl` shows it. `make demo-cluster` runs this row and prints it.

use serde_json::json;

use crate::stage::Stage;
use crate::support::wait::until;

/// Tells one chapter: what happens, and what a person sees then. Returns what was seen.
async fn chapter(stage: &Stage, what: &str) -> String {
    // kube-proxy follows in its own time.
    until("clients are led to somebody", async || {
        !stage.clients().await.reach(1).await.contains_key("nobody")
    })
    .await;
    let pools = stage.kubectl(&["get", "rpool", "-o", "wide"]).await;
    let reached = stage.clients().await.reach(30).await;
    let reached: Vec<_> = reached.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let seen = format!(
        "{pools}30 new connections through the Service reach {}\n",
        reached.join(", ")
    );
    show(&format!("\n== {what}\n$ kubectl get rpool -o wide\n{seen}"));
    seen
}

#[expect(clippy::print_stdout, reason = "the story is shown when asked for")]
fn show(text: &str) {
    if std::env::var_os("LAGWARDEN_SHOW").is_some() {
        println!("{text}");
    }
}

/// The README has the same columns, and the same row but for the age.
fn the_readme_shows(table: &str) {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let readme = include_str!("../../README.md");
    for line in table.lines() {
        let mut seen = words(line);
        if line.starts_with("orders") {
            *seen.last_mut().unwrap() = "5m".into();
        }
        assert!(
            readme.lines().any(|l| words(l) == seen),
            "README.md does not show {line:?}"
        );
    }
    assert_eq!(table.lines().count(), 2, "{table}");
}

fn check(seen: &str, words: &[&str]) {
    let missing: Vec<_> = words.iter().filter(|w| !seen.contains(**w)).collect();
    assert!(missing.is_empty(), "{missing:?} are missing in:\n{seen}");
}

pub(crate) async fn a_person_with_kubectl_sees_what_happens_and_why(stage: &mut Stage) {
    stage
        .begin(json!({ "services": [{ "name": "orders-fresh", "create": true, "hardMaxStaleness": "10m" }] }))
        .await;
    the_readme_shows(&stage.kubectl(&["get", "rpool"]).await);
    let seen = chapter(stage, "both standbys follow").await;
    check(&seen, &["2/2", "2s", "pg-0", "Normal", "pg-1 ", "pg-2 "]);
    assert!(!seen.contains("pg-0 3"), "no client reaches the primary: {seen}");

    stage.server("pg-1").pause_replay().await.unwrap();
    stage.until_reason("pg-1", "Lagging", &["Stalled"]).await;
    stage.clients().await.until_proxy_drops(stage.address("pg-1")).await;
    let seen = chapter(stage, "pg-1 stops applying: it has left the Service").await;
    check(&seen, &["1/2", "Degraded", "reach pg-2 30"]);

    stage.server("pg-2").pause_replay().await.unwrap();
    stage.until_state("Fallback").await;
    let seen = chapter(stage, "pg-2 stops too: the freshest one serves, and it is said").await;
    check(&seen, &["0/2", "LeastLagged", "reach pg-2 30"]);

    for name in ["pg-1", "pg-2"] {
        stage.server(name).resume_replay().await.unwrap();
    }
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stage.until_state("Normal").await;
    let seen = chapter(stage, "both apply again: they are back").await;
    check(&seen, &["2/2", "Normal"]);

    let told = stage.kubectl(&["describe", "rpool", "orders"]).await;
    show(&format!("\n$ kubectl describe rpool orders\n{told}"));
    check(
        &told,
        &[
            "ReplicaReady",
            "Stalled",
            "FallbackActive",
            "FallbackEnded",
            "pg-1 no longer serves orders-fresh",
            "pg-2 serves orders-fresh beyond the limit: it is held",
        ],
    );
}
