//! Row k: pools that are wrong, and what people are told about each.

use lagwarden::demo::postgres::{Maker, Options};
use lagwarden::engine::postgresql::ROLE_SQL;
use serde_json::{Value, json};

use crate::stage::{ROLE, SERVICE, Stage};
use crate::support::net::Sandbox;
use crate::support::tls::Paper;
use crate::world::subfolder;

/// A pool that the API server takes and that cannot work: its name, what is wrong in its spec, the condition that says so,
/// its reason, and words that its message has: the field or the object, the value, the remedy.
struct Bad {
    name: &'static str,
    changes: Value,
    told: (&'static str, &'static str, &'static str),
    words: &'static [&'static str],
}

/// PG-76, PG-87: with the error's own text, and what to do about it.
pub(crate) async fn twenty_bad_pools_are_told_what_is_wrong_and_disturb_nobody(stage: &mut Stage) {
    // With patience for a machine that is busy with all of them.
    let services = json!([{ "name": SERVICE, "create": true, "maxStaleness": "5s" }]);
    stage.begin(json!({ "services": services })).await;
    let history = stage.history().await;
    for (changes, words) in refused_at_admission() {
        let said = refusal(stage, &changes).await;
        let missing: Vec<_> = words.iter().filter(|w| !said.contains(**w)).collect();
        assert!(missing.is_empty(), "{changes}: {missing:?} are missing in: {said}");
    }
    let stranger = prepare(stage).await;
    let bad = accepted_and_wrong(stage, &stranger.address.to_string());
    for pool in &bad {
        let mut object = stage.pool_with(hosts(stage, &pool.changes));
        object["metadata"]["name"] = json!(pool.name);
        stage
            .apply(&object)
            .await
            .unwrap_or_else(|said| panic!("{}: {said}", pool.name));
    }
    for pool in &bad {
        let (kind, status, reason) = pool.told;
        let message = stage.until_condition_of(pool.name, kind, status, reason).await;
        let missing: Vec<_> = pool.words.iter().filter(|w| !message.contains(**w)).collect();
        assert!(
            missing.is_empty(),
            "{}: {missing:?} are missing in: {message}",
            pool.name
        );
        assert!(!message.contains(ROLE.1), "{message}");
    }
    // What was missing comes, and nobody has to say so.
    stage
        .secret("no-such", &[("username", ROLE.0), ("password", ROLE.1)])
        .await;
    stage
        .until_condition_of("unknown-secret", "Ready", "True", "Published")
        .await;
    assert_eq!(history.lists(), [["pg-1", "pg-2"]]);
    stage.until_condition("Ready", "True", "Published").await;

    // A pool that was good and is made bad: what was valid last stays in force, and goes on deciding.
    let broken = json!({ "services": services, "members": { "podSelector": { "matchLabels": { "my app": "x" } } } });
    stage.apply(&stage.pool_with(broken)).await.unwrap();
    stage.until_condition("Stalled", "True", "SpecInvalid").await;
    stage.server("pg-1").pause_replay().await.unwrap();
    history.was(&[vec!["pg-1", "pg-2"], vec!["pg-2"]]).await;
    assert!(stage.controllers[0].runs());
}

fn refused_at_admission() -> Vec<(Value, Vec<&'static str>)> {
    let service = |changes: Value| {
        let mut service = json!({ "name": "bad-read", "create": true });
        for (key, value) in changes.as_object().unwrap() {
            service[key] = value.clone();
        }
        json!({ "services": [service] })
    };
    vec![
        (
            service(json!({ "maxStalenes": "2s" })),
            vec!["spec.services[0].maxStalenes", "unknown field"],
        ),
        (
            service(json!({ "maxStaleness": "2 seconds" })),
            vec!["spec.services[0].maxStaleness", "2 seconds"],
        ),
        (
            service(json!({ "maxStaleness": "200ms" })),
            vec!["maxStaleness", "200ms", "samplePeriod"],
        ),
        (
            service(json!({ "maxStaleness": "5s", "hardMaxStaleness": "1s" })),
            vec!["hardMaxStaleness", "1s"],
        ),
        (
            service(json!({ "primaryMaxSharePercent": 150 })),
            vec!["primaryMaxSharePercent", "100"],
        ),
        (
            service(json!({ "fallback": ["Secondary"] })),
            vec!["spec.services[0].fallback[0]", "LeastLagged"],
        ),
        (
            json!({ "members": { "hosts": [{ "name": "a", "host": "10.0.0.1" }] } }),
            vec!["podSelector and hosts"],
        ),
        (
            json!({ "engine": "oracle" }),
            vec!["spec.engine", "oracle", "postgresql"],
        ),
        (
            json!({ "tls": { "mode": "VerifyFull" } }),
            vec!["spec.tls", "caSecretName"],
        ),
        (
            json!({ "primary": { "detect": "Label" } }),
            vec!["spec.primary", "podLabel"],
        ),
    ]
}

/// What the API server says to an author who creates such a pool with kubectl, which asks for strict validation.
async fn refusal(stage: &Stage, changes: &Value) -> String {
    let mut pool = stage.pool_with(changes.clone());
    pool["metadata"]["name"] = json!("refused");
    let path = format!(
        "/apis/lagwarden.io/v1alpha1/namespaces/{}/replicapools?fieldValidation=Strict",
        stage.namespace
    );
    let request = http::Request::post(path).header("Content-Type", "application/json");
    let request = request.body(serde_json::to_vec(&pool).unwrap()).unwrap();
    let created = stage.client.request::<Value>(request).await;
    created.expect_err(&format!("{changes} is refused")).to_string()
}

/// Everything that the bad pools need to be bad: accounts, Secrets, certificates, a server of another cluster.
async fn prepare(stage: &mut Stage) -> Sandbox {
    let paper = Paper::for_names(&["orders-db"]);
    for server in stage.servers.values() {
        paper.give_to(server);
        server.sql("alter system set ssl = on").await.unwrap();
        server.sql("select pg_reload_conf()").await.unwrap();
    }
    stage
        .server("pg-0")
        .sql("create role nobody_special login password 'x'")
        .await
        .unwrap();
    stage
        .secret("wrong-password", &[("username", ROLE.0), ("password", "not the one")])
        .await;
    stage
        .secret("no-grant", &[("username", "nobody_special"), ("password", "x")])
        .await;
    stage.secret("half", &[("username", ROLE.0)]).await;
    stage.secret("authority", &[("ca.crt", &paper.authority)]).await;
    stage
        .secret("another-authority", &[("ca.crt", &Paper::for_names(&[]).authority)])
        .await;
    stage.secret("no-authority", &[("ca.crt", "not a certificate")]).await;

    let others = Maker::new(stage.binaries.clone(), &subfolder(&stage.folder, "others")).unwrap();
    let network = Sandbox::new();
    let mut options = Options::new("stranger", network.address, 5432);
    options.launcher = network.launcher();
    let mut stranger = others.server(options).await.unwrap();
    stranger.start().await.unwrap();
    let role = ROLE_SQL.replace(":'password'", &format!("'{}'", ROLE.1));
    stranger.sql(&role).await.unwrap();
    stage.servers.insert("stranger".into(), stranger);
    network
}

/// The stage's three servers as hosts, measured at leisure, with these changes.
fn hosts(stage: &Stage, changes: &Value) -> Value {
    let name = changes["services"][0]["name"].as_str();
    let mut spec = json!({
        "members": { "podSelector": null, "hosts": entries(stage, &["pg-0", "pg-1", "pg-2"]) },
        "measurement": { "samplePeriod": "500ms", "probePeriod": "500ms" },
    });
    for (key, value) in changes.as_object().unwrap() {
        spec[key] = value.clone();
    }
    assert!(name.is_some(), "every bad pool has a Service of its own: {changes}");
    spec
}

fn entries(stage: &Stage, names: &[&str]) -> Value {
    names
        .iter()
        .map(|n| json!({ "name": n, "host": stage.address(n) }))
        .collect()
}

#[expect(clippy::too_many_lines, reason = "a table: one entry for each mistake")]
fn accepted_and_wrong(stage: &Stage, stranger: &str) -> Vec<Bad> {
    let bad = |name, mut changes: Value, told, words| {
        if changes["services"].is_null() {
            changes["services"] = json!([{ "name": format!("{name}-read"), "create": true, "maxStaleness": "5s" }]);
        }
        Bad {
            name,
            changes,
            told,
            words,
        }
    };
    let tls = |mode: &str, authority: &str, name: &str| json!({ "tls": { "mode": mode, "caSecretName": authority, "serverName": name } });
    let with_stranger = {
        let mut all = entries(stage, &["pg-0", "pg-1"]);
        all.as_array_mut()
            .unwrap()
            .push(json!({ "name": "stranger", "host": stranger }));
        json!({ "members": { "podSelector": null, "hosts": all } })
    };
    vec![
        bad(
            "unknown-secret",
            json!({ "credentials": { "secretName": "no-such" } }),
            ("Stalled", "True", "SecretNotFound"),
            &["Secret", "no-such", "create it"],
        ),
        bad(
            "half-a-secret",
            json!({ "credentials": { "secretName": "half" } }),
            ("Stalled", "True", "SecretKeyMissing"),
            &["half", "password", "spec.credentials.passwordKey"],
        ),
        bad(
            "wrong-password",
            json!({ "credentials": { "secretName": "wrong-password" } }),
            ("Stalled", "True", "AuthFailed"),
            &["pg-0", "Secret wrong-password", "spec.credentials"],
        ),
        bad(
            "no-grant",
            json!({ "credentials": { "secretName": "no-grant" } }),
            ("MeasurementHealthy", "False", "PermissionDenied"),
            &["pg_read_all_stats", "spec.credentials"],
        ),
        bad(
            "no-database",
            json!({ "database": "no_such_database" }),
            ("Stalled", "True", "DatabaseNotFound"),
            &["no_such_database", "spec.database"],
        ),
        bad(
            "tls-name",
            tls("VerifyFull", "authority", "another-name"),
            ("Stalled", "True", "TlsFailed"),
            &["another-name", "spec.tls", "serverName"],
        ),
        bad(
            "tls-authority",
            tls("VerifyFull", "another-authority", "orders-db"),
            ("Stalled", "True", "TlsFailed"),
            &["certificate", "caSecretName"],
        ),
        bad(
            "tls-no-authority",
            tls("VerifyFull", "no-authority", "orders-db"),
            ("Stalled", "True", "CaUnreadable"),
            &["no-authority", "ca.crt", "PEM"],
        ),
        bad(
            "closed-port",
            json!({ "members": { "podSelector": null, "port": 5999, "hosts": entries(stage, &["pg-0", "pg-1"]) } }),
            ("MeasurementHealthy", "False", "Refused"),
            &["5999", "spec.members"],
        ),
        bad(
            "no-such-host",
            json!({ "members": { "podSelector": null, "hosts": [{ "name": "a", "host": "db.invalid" }] } }),
            ("Stalled", "True", "NameNotResolved"),
            &["db.invalid", "spec.members.hosts"],
        ),
        bad(
            "stranger",
            with_stranger,
            ("MeasurementHealthy", "False", "ForeignServer"),
            &["stranger", "remove it from spec.members"],
        ),
        bad(
            "no-primary",
            json!({ "members": { "podSelector": null, "hosts": entries(stage, &["pg-1", "pg-2"]) } }),
            ("PrimaryResolved", "False", "NoPrimary"),
            &[
                "every member that answers is a replica",
                "add the primary to the members",
            ],
        ),
        bad(
            "no-pods",
            json!({ "members": { "podSelector": { "matchLabels": { "app": "no-such-app" } } } }),
            ("Ready", "False", "NoMembers"),
            &["app=no-such-app", "podSelector"],
        ),
        bad(
            "no-service",
            json!({ "services": [{ "name": "no-such-service", "maxStaleness": "5s" }] }),
            ("Stalled", "True", "ServiceNotFound"),
            &["no-such-service", "create: true"],
        ),
        bad(
            "designated-replica",
            json!({ "primary": { "detect": "Host", "host": "pg-1" } }),
            ("PrimaryResolved", "False", "DesignatedIsReplica"),
            &["pg-1 is designated and is in recovery", "promote it"],
        ),
        bad(
            "bad-label",
            json!({ "members": { "podSelector": { "matchLabels": { "my app": "x" } } } }),
            ("Stalled", "True", "SpecInvalid"),
            &["spec.members.podSelector.matchLabels", "my app"],
        ),
    ]
}
