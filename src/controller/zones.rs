//! Which zone a node is in, for the endpoints of its pods.
//!
//! Nodes are read by name, once each; where they may not be read (a process that may see some namespaces only), endpoints
//! have no zone.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::Api;
use tokio::time::timeout;

use crate::policy::moment::Moment;

/// The label that says it.
const LABEL: &str = "topology.kubernetes.io/zone";
/// How long reading one may take.
const WITHIN: Duration = Duration::from_secs(1);
/// How long an answer is believed.
const BELIEVED: Duration = Duration::from_secs(600);
/// Nodes that are remembered.
const MOST: usize = 10_000;

/// The zones of nodes that were asked for.
pub(super) struct Zones {
    nodes: Api<Node>,
    known: Mutex<BTreeMap<String, (Option<String>, Moment)>>,
}

impl Zones {
    /// None is known yet.
    pub(super) fn new(client: Client) -> Self {
        Self {
            nodes: Api::all(client),
            known: Mutex::default(),
        }
    }

    /// The zone of `node`; absent when it has none, or cannot be read now.
    pub(super) async fn of(&self, node: &str, now: Moment) -> Option<String> {
        if let Some((zone, at)) = self.remembered(node)
            && now.since(at) < BELIEVED
        {
            return zone;
        }
        let zone = match timeout(WITHIN, self.nodes.get_opt(node)).await {
            Ok(Ok(found)) => found.and_then(|n| n.metadata.labels?.get(LABEL).cloned()),
            Ok(Err(kube::Error::Api(_))) => None,
            // Not an answer: what was known stays, and the next pass asks again.
            Ok(Err(_)) | Err(_) => return self.remembered(node).and_then(|(zone, _)| zone),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(node.to_owned(), (zone.clone(), now));
        zone
    }

    fn remembered(&self, node: &str) -> Option<(Option<String>, Moment)> {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(node)
            .cloned()
    }
}
