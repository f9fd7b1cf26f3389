//! What the process costs: idle, and per probe against a bare C client at the same pace.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;
use tokio::time::sleep;

use crate::stage::{ROLE, Stage};
use crate::support::wait::until;

/// How long a quiet pool is watched.
const QUIET: Duration = Duration::from_secs(60);
/// How long probes are counted.
const PROBING: Duration = Duration::from_secs(60);

/// Memory and API writes of a controller whose pool is quiet.
pub(crate) async fn idle(stage: &mut Stage) {
    stage.stop_load();
    stage.settled().await;
    let user = stage.controllers[0].user.clone();
    let count = |stage: &Stage, lease: bool| {
        let writes = stage.cluster.writes();
        writes
            .iter()
            .filter(|w| w.user == user && (w.resource == "leases") == lease)
            .count()
    };
    let before = (count(stage, false), count(stage, true));
    sleep(QUIET).await;
    println!(
        "| API writes of an idle pool in {QUIET:?}, without the Lease | 1 | {} | |",
        count(stage, false) - before.0
    );
    println!(
        "| renewals of the Lease in {QUIET:?} | 1 | {} | |",
        count(stage, true) - before.1
    );
    let status = std::fs::read_to_string(format!("/proc/{}/status", stage.controllers[0].pid())).unwrap();
    let resident = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap().trim();
    println!("| resident memory of the controller, one pool of 2 members | 1 | {resident} | |");
}

/// CPU per question: `lagwarden run` against the same questions by libpq, at once, on the same servers.
pub(crate) async fn probes(stage: &mut Stage) {
    for mut controller in stage.controllers.drain(..) {
        controller.terminate().await;
    }
    stage.start_load();
    let hosts: Vec<_> = ["pg-0", "pg-1", "pg-2"]
        .map(|n| json!({ "name": n, "host": stage.address(n) }))
        .into();
    let mut pool = stage.pool_with(json!({ "members": { "podSelector": null, "hosts": hosts } }));
    pool["spec"]["services"][0]["create"] = json!(false);
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "orders-lagwarden", "namespace": stage.namespace },
        "stringData": { "username": ROLE.0, "password": ROLE.1 } });
    let file = stage.folder.join("pool.yaml");
    std::fs::write(&file, format!("{secret}\n---\n{pool}\n")).unwrap();
    let mut ours = Command::new(env!("CARGO_BIN_EXE_lagwarden"));
    ours.args(["--log", "error", "run", "-f"])
        .arg(&file)
        .stdout(Stdio::null())
        .kill_on_drop(true);
    let mut ours = ours.spawn().unwrap();
    let mut theirs = bare_client(stage).await.spawn().unwrap();
    for server in stage.servers.values() {
        until("both are connected", async || {
            let connected = format!("select count(*) from pg_stat_activity where usename = '{}'", ROLE.0);
            server.sql(&connected).await.unwrap()[0][0].as_deref() == Some("2")
        })
        .await;
    }
    let pids = [ours.id().unwrap(), theirs.id().unwrap()];
    let before = pids.map(cpu);
    sleep(PROBING).await;
    let after = pids.map(cpu);
    for client in [&mut ours, &mut theirs] {
        assert!(client.try_wait().unwrap().is_none(), "a client ended by itself");
    }
    ours.kill().await.unwrap();
    theirs.kill().await.unwrap();
    // Three members, ten questions a second each.
    let asked = u32::try_from(PROBING.as_secs() * 30).unwrap();
    let each = [0, 1].map(|n| after[n].0.checked_sub(before[n].0).unwrap() / asked);
    let turns = [0, 1].map(|n| f64::from(after[n].1 - before[n].1) / f64::from(asked));
    let ratio = each[0].as_secs_f64() / each[1].as_secs_f64();
    println!("| CPU per question, whole process | {asked} | {:?} | |", each[0]);
    println!(
        "| CPU per question, bare C client in the same run | {asked} | {:?} | |",
        each[1]
    );
    println!("| ratio | | {ratio:.2} | |");
    println!("| turns on a core per question, ours | {asked} | {:.2} | |", turns[0]);
    println!(
        "| turns on a core per question, the C client's | {asked} | {:.2} | |",
        turns[1]
    );
}

/// A C program on libpq that asks each server its question every 100 ms, and does nothing with the answers.
async fn bare_client(stage: &Stage) -> Command {
    let program = stage.folder.join("probe");
    let library = library(stage.binaries.folder()).canonicalize().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/bench/probe.c");
    let made = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(source)
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", library.parent().unwrap().display()))
        .arg("-Wl,--allow-shlib-undefined")
        .status()
        .await;
    assert!(made.unwrap().success(), "a C compiler is needed: {source}");
    let mut client = Command::new(program);
    for name in ["pg-0", "pg-1", "pg-2"] {
        client.arg(format!(
            "host={} user={} password={} dbname=postgres sslmode=disable",
            stage.address(name),
            ROLE.0,
            ROLE.1
        ));
        client.arg(if name == "pg-0" {
            lagwarden::engine::postgresql::SAMPLE
        } else {
            lagwarden::engine::postgresql::PROBE
        });
    }
    client.kill_on_drop(true);
    client
}

/// libpq, beside the servers' programs or where the system has it.
fn library(programs: &Path) -> PathBuf {
    let architecture = std::env::consts::ARCH;
    let system = [
        format!("/usr/lib/{architecture}-linux-gnu"),
        "/usr/lib64".into(),
        "/usr/lib".into(),
    ];
    let folders = [programs.join("../lib")].into_iter().chain(system.map(PathBuf::from));
    let files = folders.filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
    let mut libraries = files.map(|file| file.unwrap().path());
    let named = |path: &Path| {
        path.file_name()
            .is_some_and(|n| n.to_string_lossy().starts_with("libpq.so"))
    };
    libraries.find(|path| named(path)).expect("libpq is on this machine")
}

/// How long all threads of a process were on a core, and how often they were given one.
fn cpu(pid: u32) -> (Duration, u32) {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let each = tasks.map(|task| {
        let text = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        let numbers: Vec<u64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        (Duration::from_nanos(numbers[0]), u32::try_from(numbers[2]).unwrap())
    });
    each.fold((Duration::ZERO, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}
