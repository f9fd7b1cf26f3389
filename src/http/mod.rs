//! What the process answers over HTTP: health, metrics, and what each pool knows.
//!
//! | path | answer |
//! | --- | --- |
//! | `/livez` | 200 while every pool's loop answers |
//! | `/readyz` | 200 when the process does its work; else 503, with the reasons |
//! | `/metrics` | Prometheus' text format |
//! | `/api/v1/pools` | every pool, as JSON |
//! | `/api/v1/pools/{namespace}/{name}` | one pool, as JSON |
//!
//! Nothing can be changed here. A request is answered within two seconds; what a loop does not tell by then is left out.

pub mod json;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::pool::registry::Registry;
use crate::telemetry::events::PoolKey;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::scrape;

/// One thing that must hold for the process to do its work; its answer says what is the matter.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What is served.
#[derive(Clone)]
pub struct Site {
    /// The loops that run.
    pub registry: Registry,
    /// The process's metrics.
    pub metrics: Metrics,
    /// What must hold for the process to do its work, by name.
    pub ready: Vec<(&'static str, Check)>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Site")
    }
}

/// Listens on `address`. What is bound is in the answer, since port 0 means any.
pub async fn listen(address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("listen on {address}"))?;
    let bound = listener.local_addr().context("learn what is listened on")?;
    Ok((listener, bound))
}

/// Serves `site` until `shutdown` says true.
pub async fn serve(listener: TcpListener, site: Site, mut shutdown: watch::Receiver<bool>) -> anyhow::Result<()> {
    let ending = async move {
        // Gone or true: the process ends.
        drop(shutdown.wait_for(|ending| *ending).await);
    };
    axum::serve(listener, router(site))
        .with_graceful_shutdown(ending)
        .await
        .context("serve HTTP")
}

/// The paths of `site`.
pub fn router(site: Site) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/api/v1/pools", get(pools))
        .route("/api/v1/pools/{namespace}/{name}", get(pool))
        .with_state(site)
}

async fn livez(State(site): State<Site>) -> Response {
    let (running, answering) = (site.registry.len(), site.registry.reports().await.len());
    if answering < running {
        let why = format!("{} of {running} pools do not answer\n", running - answering);
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    }
    "ok\n".into_response()
}

async fn readyz(State(site): State<Site>) -> Response {
    let mut ready = true;
    let lines = site.ready.iter().map(|(name, check)| match check() {
        Ok(()) => format!("[+] {name} ok\n"),
        Err(why) => {
            ready = false;
            format!("[-] {name}: {why}\n")
        }
    });
    let told: String = lines.collect();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, told).into_response()
}

async fn metrics(State(site): State<Site>) -> Response {
    let reports = site.registry.reports().await;
    let reports: Vec<_> = reports.into_iter().map(|(key, view)| (key, view.report)).collect();
    match scrape::text(&site.metrics, &reports) {
        Ok(text) => ([(header::CONTENT_TYPE, scrape::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn pools(State(site): State<Site>) -> Json<json::Pools> {
    let reports = site.registry.reports().await;
    Json(json::Pools {
        pools: reports.iter().map(|(key, view)| json::pool(key, view)).collect(),
    })
}

async fn pool(State(site): State<Site>, Path((namespace, name)): Path<(String, String)>) -> Response {
    let key = PoolKey {
        namespace: namespace.as_str().into(),
        name: name.as_str().into(),
    };
    if let Some(view) = site.registry.report(&key).await {
        return Json(json::pool(&key, &view)).into_response();
    }
    let why = format!("no pool {key} is looked after by this process\n");
    (StatusCode::NOT_FOUND, why).into_response()
}
