//! Watches against an API server that plays tricks: it lists truthfully, and its watches are as the test says.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::stream;
use k8s_openapi::api::core::v1::Service;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

use super::*;

/// How a watch is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Watches {
    /// It lasts, and tells nothing.
    Silent,
    /// It tells at once that its version is too old.
    TellGone,
    /// It is refused, as its version is too old.
    RefuseGone,
}

#[derive(Debug)]
struct Server {
    names: Vec<&'static str>,
    watches: Watches,
    lists: Vec<Instant>,
}

type Shared = Arc<Mutex<Server>>;

fn gone() -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410,
        "message": "too old resource version" })
}

#[expect(
    clippy::disallowed_methods,
    reason = "how far apart two requests are decides nothing"
)]
async fn services(State(server): State<Shared>, RawQuery(query): RawQuery) -> Response {
    let mut server = server.lock().unwrap();
    if query.is_some_and(|q| q.contains("watch=true")) {
        return match server.watches {
            Watches::Silent => Body::from_stream(stream::pending::<Result<String, std::io::Error>>()).into_response(),
            Watches::TellGone => format!("{}\n", json!({ "type": "ERROR", "object": gone() })).into_response(),
            Watches::RefuseGone => (http::StatusCode::GONE, Json(gone())).into_response(),
        };
    }
    server.lists.push(Instant::now());
    let items: Vec<Value> = server
        .names
        .iter()
        .map(|name| json!({ "metadata": { "name": name, "namespace": "shop", "resourceVersion": "1" } }))
        .collect();
    Json(json!({ "kind": "ServiceList", "apiVersion": "v1", "metadata": { "resourceVersion": "1" }, "items": items }))
        .into_response()
}

async fn watching(watches: Watches, every: Duration) -> (Shared, Cache<Service>) {
    let server = Arc::new(Mutex::new(Server {
        names: vec!["a"],
        watches,
        lists: Vec::new(),
    }));
    let app = Router::new()
        .route("/api/v1/namespaces/shop/services", get(services))
        .with_state(server.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = Client::try_from(Config::new(format!("http://{address}").parse().unwrap())).unwrap();
    let api = Api::namespaced(client, "shop");
    let cache = Cache::listing_every(every, vec![api], &watcher::Config::default(), |_| {});
    (server, cache)
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(Duration::from_secs(20), waited).await.is_ok(), "{what}");
}

/// K-71, K-72: whatever the watch says of its version, what is listed is known, and lists do not become a storm.
#[tokio::test]
async fn a_version_that_is_always_too_old_costs_lists_at_growing_pauses() {
    for watches in [Watches::TellGone, Watches::RefuseGone] {
        let (server, cache) = watching(watches, LIST_EVERY).await;
        until("it is known", || cache.synced() && cache.all().len() == 1).await;
        server.lock().unwrap().names.push("b");
        until("the change is known", || cache.find("shop", "b").is_some()).await;
        until("it lists five times", || server.lock().unwrap().lists.len() >= 5).await;
        let lists = server.lock().unwrap().lists.clone();
        let pauses: Vec<_> = lists.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Each pause doubles the last, less a quarter at most of either, so four of them are at least this much.
        let all: Duration = pauses.iter().sum();
        assert!(
            all >= Duration::from_millis(150 + 300 + 600 + 1200),
            "{watches:?}: {pauses:?}"
        );
        assert!(cache.synced(), "what was known stays known");
    }
}

/// K-29: an event that never came is made up for.
#[tokio::test]
async fn what_a_watch_did_not_tell_is_found_by_listing_anew() {
    let (server, cache) = watching(Watches::Silent, Duration::from_millis(300)).await;
    until("it is known", || cache.find("shop", "a").is_some()).await;
    let mut pulse = cache.pulse();
    pulse.mark_unchanged();
    server.lock().unwrap().names = vec!["b"];
    until("the change is known", || cache.find("shop", "b").is_some()).await;
    assert!(cache.find("shop", "a").is_none(), "what is gone is gone");
    assert!(pulse.has_changed().unwrap());
}
