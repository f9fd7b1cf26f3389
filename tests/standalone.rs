//! `lagwarden run`, as somebody without a cluster runs it: a file with a pool in, decisions as lines and as a file out,
//! health, metrics and the state over HTTP; and what it says of a file that is wrong.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "support/mod.rs"]
mod support;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use lagwarden::demo::postgres::{Binaries, Maker, Options, Server};
use lagwarden::engine::postgresql::ROLE_SQL;
use lagwarden::telemetry::catalogue;
use serde_json::{Value, json};
use support::http::get;
use support::signal::signal;
use support::wait::{until, within};
use tokio::process::{Child, Command};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A primary and a standby that follows it, with the documented role.
struct Servers {
    primary: Server,
    standby: Server,
}

async fn servers(folder: &Path) -> Servers {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/get-postgresql");
    let found = Command::new(script).arg("any").output().await.unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let programs = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let maker = Maker::new(Binaries::locate(&programs).unwrap(), folder).unwrap();
    let mut primary = maker.server(Options::new("pg-0", LOOPBACK, free_port())).await.unwrap();
    primary.start().await.unwrap();
    primary
        .sql(&ROLE_SQL.replace(":'password'", "'sword:fish'"))
        .await
        .unwrap();
    primary.sql("create table load (n bigint)").await.unwrap();
    let standby = Options::new("pg-1", LOOPBACK, free_port());
    let mut standby = maker.standby(standby, &primary).await.unwrap();
    standby.start().await.unwrap();
    until("the standby has the role", async || {
        standby.connect("lagwarden", "sword:fish").await.is_ok()
    })
    .await;
    Servers { primary, standby }
}

fn free_port() -> u16 {
    TcpListener::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap().port()
}

fn file(folder: &Path, servers: &Servers) -> PathBuf {
    let host = |server: &Server| {
        format!(
            "    - {{ name: {}, host: 127.0.0.1, port: {} }}",
            server.name(),
            server.port()
        )
    };
    let text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{ name: account }}\nstringData: {{ username: lagwarden, password: \"sword:fish\" }}\n---\n\
         apiVersion: lagwarden.io/v1alpha1\nkind: ReplicaPool\nmetadata: {{ name: orders }}\nspec:\n  engine: postgresql\n  members:\n    hosts:\n{}\n{}\n  \
         credentials: {{ secretName: account }}\n  tls: {{ mode: Disable }}\n  services:\n  - {{ name: fresh, maxStaleness: 1s, hardMaxStaleness: 10m }}\n",
        host(&servers.primary),
        host(&servers.standby),
    );
    let path = folder.join("pool.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

fn lagwarden(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagwarden"));
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// What the file of decisions says; nothing before it is there.
fn decided(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_decides_for_hosts_and_tells_in_lines_a_file_and_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let servers = servers(folder.path()).await;
    let (output, address) = (
        folder.path().join("decided.json"),
        SocketAddr::new(LOOPBACK, free_port()),
    );
    let pool = file(folder.path(), &servers);
    let child = lagwarden(&[
        "run",
        "-f",
        pool.to_str().unwrap(),
        "--output",
        output.to_str().unwrap(),
        "--http",
        &address.to_string(),
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let primary = servers
        .primary
        .connect("postgres", servers.primary.password())
        .await
        .unwrap();
    let load = tokio::spawn(async move {
        while primary.batch_execute("insert into load values (1)").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });

    let service = |state: &'static str| {
        let output = &output;
        async move || decided(output).is_some_and(|d| d["pools"][0]["services"][0]["state"] == state)
    };
    until("the standby serves", service("Normal")).await;
    let said = decided(&output).unwrap();
    let endpoint = json!([{ "name": "pg-1", "address": "127.0.0.1", "port": servers.standby.port() }]);
    assert_eq!(said["pools"][0]["primary"], "pg-0");
    assert_eq!(said["pools"][0]["services"][0]["endpoints"], endpoint);
    answers(address).await;

    // It lags, and the fallback keeps it as the only one there is.
    servers.standby.pause_replay().await.unwrap();
    until("the fallback is written", service("Fallback")).await;
    let said = decided(&output).unwrap();
    assert_eq!(said["pools"][0]["services"][0]["fallback"], "LeastLagged");
    assert_eq!(said["pools"][0]["services"][0]["endpoints"], endpoint);
    servers.standby.resume_replay().await.unwrap();
    until("it is fresh again", service("Normal")).await;

    load.abort();
    let done = end(child).await;
    let lines = String::from_utf8(done.stdout).unwrap();
    for word in [
        "orders ReplicaReady pg-1 serves fresh",
        "orders FallbackActive fresh has too few",
        "orders FallbackEnded fresh",
    ] {
        assert!(lines.contains(word), "{word:?} is missing in:\n{lines}");
    }
    let log = String::from_utf8(done.stderr).unwrap();
    assert!(!lines.contains("sword") && !log.contains("sword"), "{lines}\n{log}");
}

/// What is served over HTTP is what its readers need.
async fn answers(address: SocketAddr) {
    let (status, _, body) = get(address, "/livez").await.unwrap();
    assert_eq!((status, body.as_str()), (200, "ok\n"));
    let (status, _, body) = get(address, "/readyz").await.unwrap();
    assert_eq!((status, body.as_str()), (200, "[+] file ok\n"));
    let (status, head, text) = get(address, "/metrics").await.unwrap();
    assert_eq!(status, 200);
    assert!(
        head.to_lowercase().contains("content-type: text/plain; version=0.0.4"),
        "{head}"
    );
    let told = text
        .lines()
        .filter_map(|l| l.strip_prefix("# TYPE ")?.split(' ').next());
    for name in told.filter(|n| n.starts_with("lagwarden_")) {
        assert!(
            catalogue::ALL.iter().any(|m| m.name == name),
            "{name} is in no catalogue"
        );
    }
    for series in [
        "lagwarden_replica_staleness_seconds{namespace=\"default\",pool=\"orders\",replica=\"pg-1\"} 0.",
        "lagwarden_replica_in_service{namespace=\"default\",pool=\"orders\",replica=\"pg-1\",service=\"fresh\"} 1",
    ] {
        assert!(text.contains(series), "{series} is missing in:\n{text}");
    }
    let (status, _, body) = get(address, "/api/v1/pools/default/orders").await.unwrap();
    let state: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &state["primary"]["name"]), (200, &json!("pg-0")), "{body}");
    let (status, _, body) = get(address, "/api/v1/pools").await.unwrap();
    let all: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, all["pools"].as_array().unwrap().len()), (200, 1));
    let (status, _, body) = get(address, "/api/v1/pools/default/none").await.unwrap();
    assert_eq!(
        (status, body.as_str()),
        (404, "no pool default/none is looked after by this process\n")
    );
}

/// Tells it to end, as a service manager does.
async fn end(child: Child) -> Output {
    signal(child.id().unwrap(), "TERM").await;
    let done = within(child.wait_with_output()).await.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done
}

fn wrong_files() -> Vec<(String, Vec<&'static str>)> {
    let pool = |spec: &str| {
        format!("apiVersion: lagwarden.io/v1alpha1\nkind: ReplicaPool\nmetadata: {{ name: orders }}\nspec:\n{spec}")
    };
    let hosts = "  engine: postgresql\n  members: { hosts: [{ name: a, host: 127.0.0.1 }] }\n  credentials: { secretName: account }\n";
    vec![
        ("kind: [".to_owned(), vec!["line 1"]),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: { name: x }\n".to_owned(),
            vec!["ReplicaPool"],
        ),
        (
            pool(&format!("{hosts}  services: [{{ name: a, maxStalenes: 2s }}]\n")),
            vec!["line 8", "maxStalenes", "maxStaleness"],
        ),
        (
            pool(&format!(
                "{hosts}  services: [{{ name: a, maxStaleness: 2 seconds }}]\n"
            )),
            vec!["line 8", "2 seconds"],
        ),
        (
            pool(&format!("{hosts}  services: [{{ name: a }}]\n")),
            vec!["account", "Secret"],
        ),
        (
            pool(
                "  engine: postgresql\n  members: { podSelector: { matchLabels: { app: x } } }\n  credentials: { secretName: account }\n  services: [{ name: a }]\n",
            ),
            vec!["orders", "no cluster", "spec.members.hosts"],
        ),
        (
            pool(&format!("{hosts}  services: [{{ name: a, create: null }}]\n")),
            vec!["line 8", "spec.services[0].create", "true or false"],
        ),
        (
            pool(&format!("{hosts}  services: [{{ name: a, create: maybe }}]\n")),
            vec!["spec.services[0].create", "true or false"],
        ),
        (
            pool(&format!("{hosts}  services: [{{ name: a, minEndpoints: two }}]\n")),
            vec!["spec.services[0].minEndpoints", "a whole number"],
        ),
        (
            pool(&format!("{hosts}  services: [{{ name: a, fallback: LeastLagged }}]\n")),
            vec!["spec.services[0].fallback", "a list"],
        ),
        (
            pool(&format!("{hosts}  services: [{{ name: a, mode: Loose }}]\n")),
            vec!["spec.services[0].mode", "Balanced"],
        ),
        (
            pool(&format!("{hosts}  paused: []\n  services: [{{ name: a }}]\n")),
            vec!["spec.paused", "true or false"],
        ),
    ]
}

/// A file that is wrong is refused at once, with the place, the field, the value and the remedy.
#[tokio::test]
async fn a_wrong_file_is_told_where_and_why() {
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in wrong_files() {
        let path = folder.path().join("pool.yaml");
        std::fs::write(&path, &text).unwrap();
        let done = within(lagwarden(&["run", "-f", path.to_str().unwrap()]).output())
            .await
            .unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success() && done.stdout.is_empty(), "{text}\n{said}");
        let missing: Vec<_> = words.iter().filter(|w| !said.contains(**w)).collect();
        assert!(missing.is_empty(), "{missing:?} are missing in:\n{said}\nfor:\n{text}");
    }
    let done = within(lagwarden(&["run", "-f", "no-such.yaml"]).output())
        .await
        .unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        !done.status.success() && said.contains("no-such.yaml") && said.contains("No such file"),
        "{said}"
    );
}
