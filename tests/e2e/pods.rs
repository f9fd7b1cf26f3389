//! Pods as a kubelet would show them: the objects are real, and what they say is where a server runs.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::support::cluster::NODE;
use crate::support::wait::until;

/// The pods of one namespace.
#[derive(Clone)]
pub(crate) struct Pods {
    api: Api<Pod>,
}

impl Pods {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
        }
    }

    /// Makes a running, ready pod of the database at `address`.
    pub(crate) async fn make(&self, name: &str, address: IpAddr) -> String {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "labels": { "app": "orders-db" } },
            "spec": { "nodeName": NODE, "containers": [
                { "name": "postgres", "image": "postgres", "ports": [{ "name": "postgresql", "containerPort": 5432 }] }] },
        });
        let pod = serde_json::from_value(pod).unwrap();
        let made = self.api.create(&PostParams::default(), &pod).await.unwrap();
        self.show(name, address, "True").await;
        made.uid().unwrap()
    }

    /// Says that the pod's readiness is `ready` ("True" or "False").
    pub(crate) async fn show(&self, name: &str, address: IpAddr, ready: &str) {
        let status = json!({ "status": {
            "phase": "Running", "podIP": address, "podIPs": [{ "ip": address }],
            "conditions": [{ "type": "Ready", "status": ready }],
        }});
        let params = PatchParams::default();
        self.api
            .patch_status(name, &params, &Patch::Strategic(status))
            .await
            .unwrap();
    }

    /// Sets a label.
    pub(crate) async fn label(&self, name: &str, key: &str, value: &str) {
        let labels = json!({ "metadata": { "labels": { key: value } } });
        self.api
            .patch(name, &PatchParams::default(), &Patch::Merge(labels))
            .await
            .unwrap();
    }

    /// Begins to delete it, as `kubectl delete` does: it stays, terminating, until its kubelet is done.
    pub(crate) async fn terminate(&self, name: &str) {
        self.api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Deletes it at once, and waits until it is gone.
    pub(crate) async fn remove(&self, name: &str) {
        self.api
            .delete(name, &DeleteParams::default().grace_period(0))
            .await
            .unwrap();
        until("the pod is gone", async || {
            self.api.get_opt(name).await.unwrap().is_none()
        })
        .await;
    }
}
