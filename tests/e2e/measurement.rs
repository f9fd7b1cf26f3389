//! Rows c and c2: a healthy standby never looks stale, and quiet costs nothing.

use std::time::Duration;

use serde_json::json;
use tokio_postgres::Client;

use crate::stage::Stage;

/// For how long a workload is kept up.
const WHILE: Duration = Duration::from_secs(8);

/// PG-01, PG-07, PG-97: a primary that commits nothing makes nobody old.
pub(crate) async fn an_idle_minute_costs_no_write_and_evicts_nobody(stage: &mut Stage) {
    stage.begin(json!({})).await;
    let history = stage.history().await;
    let quiet = async |stage: &Stage, span: Duration| {
        let before = stage.settled().await;
        tokio::time::sleep(span).await;
        let after = stage.writes();
        assert_eq!(after.len(), before, "{:?}", &after[before..]);
        assert_eq!(stage.listed().await, ["pg-1", "pg-2"]);
    };
    // With load, then without any: an idle primary's standbys are as fresh as can be.
    quiet(stage, Duration::from_secs(30)).await;
    stage.stop_load();
    quiet(stage, Duration::from_secs(60)).await;
    assert_eq!(history.lists().len(), 1, "{:?}", history.lists());
}

/// PG-31, PG-72: nor does what it writes, or leaves unwritten.
pub(crate) async fn no_workload_makes_a_healthy_standby_look_stale(stage: &mut Stage) {
    let services = json!({ "services": [{ "name": "orders-fresh", "create": true, "maxStaleness": "1s" }] });
    stage.begin(services).await;
    stage.stop_load();
    let primary = stage
        .server("pg-0")
        .connect("postgres", stage.maker.password())
        .await
        .unwrap();
    let setup = "create table t (n int); create table t2 (n int, x text);
                 create table big as select g n, md5(g::text) x from generate_series(1, 400000) g";
    primary.batch_execute(setup).await.unwrap();
    stage.until_listed(&["pg-1", "pg-2"]).await;
    stage.until_state("Normal").await;
    let history = stage.history().await;
    for (what, workload) in WORKLOADS {
        workload.run(&primary).await;
        let lists = history.lists();
        assert_eq!(
            lists,
            [["pg-1", "pg-2"]],
            "{what}: a standby left\n{}",
            told(stage).await
        );
    }
}

async fn told(stage: &Stage) -> String {
    serde_json::to_string(&stage.controllers[0].knows().await).unwrap()
}

/// What a primary is kept busy with.
enum Workload {
    /// The statements once, and then nothing for a while; then the end.
    Once(&'static str, &'static str),
    /// The statements again and again with a pause between; then the end.
    Again(&'static str, Duration, &'static str),
}

/// The workloads under which position evidence is known to be hard: log that stays unflushed, long transactions, log that no
/// commit ends, headers of pages and segments.
const WORKLOADS: [(&str, Workload); 10] = [
    (
        "one commit each 10 ms",
        Workload::Again("insert into t values (1)", Duration::from_millis(10), ""),
    ),
    (
        "asynchronous commits",
        Workload::Again(
            "set synchronous_commit = off; insert into t values (1)",
            Duration::from_millis(50),
            "set synchronous_commit = on",
        ),
    ),
    (
        "an open transaction on an idle primary",
        Workload::Once(
            "begin; insert into t2 select g, repeat(md5(g::text), 10) from generate_series(1, 60) g",
            "commit",
        ),
    ),
    (
        "a row each 100 ms in one open transaction",
        Workload::Again(
            // The first turn begins it; a second begin is only a warning.
            "begin; insert into t values (1)",
            Duration::from_millis(100),
            "commit",
        ),
    ),
    (
        "an update of 400,000 rows",
        Workload::Once("update big set x = md5(x)", ""),
    ),
    ("VACUUM FULL", Workload::Once("vacuum full big", "")),
    (
        "an index made",
        Workload::Once("create index on big (n)", "drop index big_n_idx"),
    ),
    (
        "a segment switch each second",
        Workload::Again("select pg_switch_wal()", Duration::from_secs(1), ""),
    ),
    (
        "checkpoints and segment switches",
        Workload::Again("checkpoint; select pg_switch_wal()", Duration::from_millis(1500), ""),
    ),
    ("hint bits", Workload::Once("select count(*) from big", "")),
];

impl Workload {
    async fn run(&self, primary: &Client) {
        // VACUUM and CHECKPOINT refuse to be part of a batch with others.
        let each = async |statements: &str| {
            for statement in statements.split(';').filter(|s| !s.trim().is_empty()) {
                primary.batch_execute(statement).await.unwrap();
            }
        };
        match self {
            Self::Once(statements, end) => {
                each(statements).await;
                tokio::time::sleep(WHILE).await;
                each(end).await;
            }
            Self::Again(statements, pause, end) => {
                let turns = WHILE.as_millis() / pause.as_millis();
                for _ in 0..turns {
                    each(statements).await;
                    tokio::time::sleep(*pause).await;
                }
                each(end).await;
            }
        }
    }
}
