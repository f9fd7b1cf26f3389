//! From the true crossing of `maxStaleness` to the acknowledged write, and to the first refused connection.
//!
//! One replica and no fallback, so that its Service refuses connections when it has left. Replay is paused at a known
//! instant, under a commit every 10 ms; what is committed after it is missing, so the replica's true staleness crosses the limit
//! that much later. The instant is taken before the pause is asked for: figures are too large by the question's way there.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::row;
use crate::stage::Stage;

/// The Services: their name, limit in milliseconds, and port's cluster address once they are made.
const SERVICES: [(&str, u64); 2] = [("limit-1s", 1000), ("limit-2s", 2000)];

pub(crate) async fn measure(stage: &mut Stage) {
    let rounds = std::env::var("LAGWARDEN_ROUNDS")
        .ok()
        .map_or(100, |r| r.parse().unwrap());
    let hosts: Vec<_> = ["pg-0", "pg-1"]
        .map(|n| json!({ "name": n, "host": stage.address(n) }))
        .into();
    let services = SERVICES.map(|(name, limit)| json!({ "name": name, "create": true, "maxStaleness": format!("{limit}ms"), "fallback": ["None"] }));
    let pool = stage.pool_with(json!({ "members": { "podSelector": null, "hosts": hosts }, "services": services }));
    stage.apply(&pool).await.unwrap();
    stage.start_controller();
    stage.start_load();
    let address = stage.address("pg-1").to_string();
    let mut written: [Vec<f64>; 2] = Default::default();
    let mut refused: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        let mut addresses = Vec::new();
        for (name, _) in SERVICES {
            stage.until_listed_in(name, &[&address]).await;
            addresses.push(stage.cluster_address(name).await);
        }
        for address in &addresses {
            until_refused(*address, false).await;
        }
        let paused = SystemTime::now();
        stage.server("pg-1").pause_replay().await.unwrap();
        for (n, (name, limit)) in SERVICES.iter().enumerate() {
            let crossing = paused + Duration::from_millis(*limit);
            let early = crossing - Duration::from_millis(200);
            sleep(early.duration_since(SystemTime::now()).unwrap_or_default()).await;
            let at = until_refused(addresses[n], true).await;
            refused[n].push(after(crossing, at));
            stage.until_listed_in(name, &[]).await;
            let at = last_write(&stage.controllers[0].log(), name);
            written[n].push(after(crossing, at));
        }
        stage.server("pg-1").resume_replay().await.unwrap();
    }
    for (n, (_, limit)) in SERVICES.iter().enumerate() {
        row(
            &format!("crossing of {limit} ms to the acknowledged write"),
            written[n].clone(),
        );
        row(
            &format!("crossing of {limit} ms to the first refused connection"),
            refused[n].clone(),
        );
    }
}

/// Milliseconds from the crossing; below zero when it was early, as a bound is never less than the truth.
fn after(crossing: SystemTime, at: SystemTime) -> f64 {
    let late = at.duration_since(crossing).map(|d| d.as_secs_f64());
    late.unwrap_or_else(|early| -early.duration().as_secs_f64()) * 1000.0
}

/// When new connections began to be refused, or to be taken.
async fn until_refused(address: SocketAddr, wanted: bool) -> SystemTime {
    for _ in 0..10_000 {
        let connected = timeout(Duration::from_secs(1), TcpStream::connect(address)).await;
        if connected.is_ok_and(|c| c.is_err()) == wanted {
            return SystemTime::now();
        }
        sleep(Duration::from_millis(2)).await;
    }
    panic!("connections to {address} do not change");
}

/// When the controller had its last write to a slice of `service` acknowledged, by its own log.
fn last_write(log: &str, service: &str) -> SystemTime {
    let slice = format!("slice={service}-lagwarden-");
    let line = log
        .lines()
        .rfind(|l| l.contains("published") && l.contains(&slice))
        .unwrap();
    let at: Timestamp = line.split_whitespace().next().unwrap().parse().unwrap();
    SystemTime::from(at)
}
