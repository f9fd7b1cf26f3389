//! The same pools before a real API server, and what `kubectl` shows of one.

use std::fs;

use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error};
use lagwarden::api::{self, crd};
use serde_json::{Value, json};

use crate::pools::{Judge, cases};
use crate::support::cluster::{Cluster, Options};

fn pools(client: Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(api::GROUP, api::VERSION, api::KIND);
    Api::namespaced_with(
        client,
        "default",
        &ApiResource::from_gvk_with_plural(&kind, api::PLURAL),
    )
}

async fn cluster() -> (Cluster, Client) {
    let cluster = Cluster::start(Options::default()).await;
    cluster.install(&crd::definition()).await;
    let client = cluster.admin().await;
    (cluster, client)
}

/// What the API server says to a pool that is only tried; nothing when it takes it.
async fn refusal(pools: &Api<DynamicObject>, pool: &Value) -> Option<String> {
    let object: DynamicObject = serde_json::from_value(pool.clone()).unwrap();
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match pools.create(&params, &object).await {
        Ok(_) => None,
        Err(Error::Api(status)) => Some(status.message),
        Err(error) => panic!("the API server does not answer: {error}"),
    }
}

#[tokio::test]
async fn a_real_api_server_says_the_same() {
    let (_cluster, client) = cluster().await;
    let pools = pools(client);
    let mut failures = Vec::new();
    for case in cases("bad") {
        let said = refusal(&pools, &case.pool).await;
        let fine = match (&said, case.by) {
            (Some(said), Judge::Rule) => case.missing(said, &case.server_field).is_empty(),
            (Some(_), Judge::Schema) | (None, Judge::Nobody) => true,
            (None, _) | (Some(_), Judge::Nobody) => false,
        };
        if !fine {
            failures.push(format!("{}: {said:?}", case.what));
        }
    }
    for case in cases("good") {
        failures.extend(
            refusal(&pools, &case.pool)
                .await
                .map(|said| format!("{}: {said}", case.what)),
        );
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every example is taken as it is, its other objects included.
#[tokio::test]
async fn the_examples_can_be_applied() {
    let (cluster, _) = cluster().await;
    let mut files: Vec<_> = fs::read_dir("examples").unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        for mode in ["--dry-run=server", "--validate=strict"] {
            let said = cluster.kubectl(&["apply", mode, "-f", file.to_str().unwrap()]).await;
            assert!(said.contains("replicapool.lagwarden.io/"), "{said}");
        }
    }
}

#[tokio::test]
async fn kubectl_shows_a_pool_as_people_expect() {
    let (cluster, client) = cluster().await;
    let pool = cases("good").remove(0).pool;
    let pools = pools(client);
    let object: DynamicObject = serde_json::from_value(pool).unwrap();
    let name = object.metadata.name.clone().unwrap();
    pools.create(&PostParams::default(), &object).await.unwrap();
    let status = json!({ "status": {
        "observedGeneration": 1, "summary": "1/2", "staleness": "2s", "fallback": "-", "reason": "Degraded",
        "primary": { "name": "pg-0", "address": "10.0.0.1:5432" },
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Published", "message": "m",
                         "lastTransitionTime": "2026-01-01T00:00:00Z" }],
    }});
    pools
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    let said = cluster.kubectl(&["get", "rpool"]).await;
    let words: Vec<Vec<&str>> = said.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(
        words[0],
        ["NAME", "READY", "IN-SERVICE", "STALENESS", "FALLBACK", "PRIMARY", "AGE"]
    );
    assert_eq!(words[1][1..6], ["True", "1/2", "2s", "-", "pg-0"]);
    let wide = cluster.kubectl(&["get", "rpool", "-o", "wide"]).await;
    assert!(wide.lines().next().unwrap().ends_with("ENGINE       REASON"), "{wide}");
    let manual = cluster.kubectl(&["explain", "rpool.spec", "--recursive"]).await;
    for field in [
        "maxStaleness",
        "primaryMaxSharePercent",
        "caSecretName",
        "onPrimarySilent",
    ] {
        assert!(manual.contains(field), "{manual}");
    }
    let one = cluster.kubectl(&["explain", "rpool.spec.services.maxStaleness"]).await;
    assert!(one.contains("Default: 2s"), "{one}");
}
