//! What one row plays on: a namespace, a primary and two standbys in pods, controllers, and eyes on what is published.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lagwarden::api::v1alpha1::ReplicaPool;
use lagwarden::demo::postgres::{Binaries, Maker, Options, Server};
use lagwarden::engine::postgresql::ROLE_SQL;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::controller::Controller;
use crate::pods::Pods;
use crate::support::cluster::Cluster;
use crate::support::net::Sandbox;
use crate::support::wait::until;

/// The read Service of every row.
pub(crate) const SERVICE: &str = "orders-fresh";
/// The Secret of the pool's account.
pub(crate) const SECRET: &str = "orders-lagwarden";
/// The documented account and its password.
pub(crate) const ROLE: (&str, &str) = ("lagwarden", "sword:fish");

/// One row's world.
pub(crate) struct Stage {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) servers: BTreeMap<String, Server>,
    pub(crate) networks: BTreeMap<String, Sandbox>,
    pub(crate) pods: Pods,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) maker: Maker,
    pub(crate) binaries: Binaries,
    pub(crate) folder: PathBuf,
    load: Option<JoinHandle<()>>,
}

impl Stage {
    /// A namespace with the account's Secret, and three running servers in pods: `pg-0` is the primary.
    pub(crate) async fn set(
        cluster: Arc<Cluster>,
        maker: Maker,
        binaries: Binaries,
        folder: &Path,
        namespace: &str,
    ) -> Self {
        let client = cluster.admin().await;
        let made = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
        let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
        namespaces
            .create(&PostParams::default(), &serde_json::from_value(made).unwrap())
            .await
            .unwrap();
        let mut stage = Self {
            pods: Pods::new(client.clone(), namespace),
            cluster,
            client,
            namespace: namespace.into(),
            servers: BTreeMap::new(),
            networks: BTreeMap::new(),
            controllers: Vec::new(),
            maker,
            binaries,
            folder: folder.into(),
            load: None,
        };
        stage
            .secret(SECRET, &[("username", ROLE.0), ("password", ROLE.1)])
            .await;
        stage.add_server("pg-0", Sandbox::new(), None).await;
        let role = ROLE_SQL.replace(":'password'", &format!("'{}'", ROLE.1));
        stage.server("pg-0").sql(&role).await.unwrap();
        for name in ["pg-1", "pg-2"] {
            stage.add_server(name, Sandbox::new(), Some("pg-0")).await;
        }
        for name in ["pg-1", "pg-2"] {
            until("the standby has the role", async || {
                stage.server(name).connect(ROLE.0, ROLE.1).await.is_ok()
            })
            .await;
        }
        stage
    }

    /// Applies the usual pool with these changes to its spec (a merge patch), starts a controller and a steady load, and
    /// waits until both standbys serve.
    pub(crate) async fn begin(&mut self, changes: Value) {
        self.apply(&self.pool_with(changes)).await.unwrap();
        self.start_controller();
        self.start_load();
        self.until_listed(&["pg-1", "pg-2"]).await;
        self.until_state("Normal").await;
    }

    /// The usual pool, with these changes to its spec (a merge patch).
    pub(crate) fn pool_with(&self, changes: Value) -> Value {
        let mut pool = json!({
            "apiVersion": "lagwarden.io/v1alpha1", "kind": "ReplicaPool",
            "metadata": { "name": "orders", "namespace": self.namespace },
            "spec": {
                "engine": "postgresql",
                "members": { "podSelector": { "matchLabels": { "app": "orders-db" } } },
                "credentials": { "secretName": SECRET },
                "tls": { "mode": "Disable" },
                "measurement": { "samplePeriod": "100ms", "probePeriod": "100ms" },
                "services": [{ "name": SERVICE, "create": true, "maxStaleness": "2s" }],
            },
        });
        merge(&mut pool["spec"], &changes);
        pool
    }

    /// Applies a pool as its author, and answers what the API server refuses it with.
    pub(crate) async fn apply(&self, pool: &Value) -> Result<(), String> {
        let name = pool["metadata"]["name"].as_str().unwrap();
        let params = PatchParams::apply("author").force();
        match self.pools().patch(name, &params, &Patch::Apply(pool)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Starts another controller of this namespace; it stands by when one leads.
    pub(crate) fn start_controller(&mut self) {
        let number = self.controllers.len();
        self.controllers
            .push(Controller::start(&self.cluster, &self.namespace, number));
    }

    /// Commits a row each ten milliseconds on the primary, for as long as the row plays.
    pub(crate) fn start_load(&mut self) {
        let primary = self.server("pg-0");
        let (address, password) = (primary.address(), primary.password().to_owned());
        let load = async move {
            let mut config = tokio_postgres::Config::new();
            config
                .host(address.to_string())
                .user("postgres")
                .password(password)
                .dbname("postgres");
            loop {
                // A primary that is down is tried again: the load is steady, not lucky.
                if let Ok((client, connection)) = config.connect(tokio_postgres::NoTls).await {
                    tokio::spawn(connection);
                    while client.batch_execute(LOAD).await.is_ok() {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        self.load = Some(tokio::spawn(load));
    }

    /// Ends the load.
    pub(crate) fn stop_load(&mut self) {
        if let Some(load) = self.load.take() {
            load.abort();
        }
    }

    /// Makes a server in a network and a pod of this name: a standby of `primary`, or a primary.
    pub(crate) async fn add_server(&mut self, name: &str, network: Sandbox, primary: Option<&str>) {
        let mut options = Options::new(name, network.address, 5432);
        options.launcher = network.launcher();
        let mut server = match primary {
            Some(primary) => self.maker.standby(options, self.server(primary)).await.unwrap(),
            None => self.maker.server(options).await.unwrap(),
        };
        server.start().await.unwrap();
        self.pods.make(name, network.address).await;
        self.servers.insert(name.into(), server);
        self.networks.insert(name.into(), network);
    }

    /// Gives a server's setting this value from now on.
    pub(crate) async fn alter(&self, server: &str, setting: &str, value: &str) {
        let server = self.server(server);
        let set = format!("alter system set {setting} = '{value}'");
        server.sql(&set).await.unwrap();
        server.sql("select pg_reload_conf()").await.unwrap();
    }

    pub(crate) fn server(&self, name: &str) -> &Server {
        &self.servers[name]
    }

    pub(crate) fn server_mut(&mut self, name: &str) -> &mut Server {
        self.servers.get_mut(name).unwrap()
    }

    pub(crate) fn address(&self, name: &str) -> IpAddr {
        self.networks[name].address
    }

    /// Makes or replaces a Secret.
    pub(crate) async fn secret(&self, name: &str, data: &[(&str, &str)]) {
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": data });
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        secrets
            .patch(name, &PatchParams::apply("author").force(), &Patch::Apply(secret))
            .await
            .unwrap();
    }

    pub(crate) fn pools(&self) -> Api<ReplicaPool> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn slices(&self) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Ends everything that was started here.
    pub(crate) async fn clear(mut self) {
        self.stop_load();
        self.controllers.clear();
        for server in self.servers.values_mut() {
            // Some are dead already: that was their row.
            drop(server.kill().await);
        }
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

/// One small commit.
const LOAD: &str = "create table if not exists load (n bigint); insert into load values (1)";

/// Applies a JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(patch) if target.is_object() => {
            for (key, change) in patch {
                if change.is_null() {
                    target.as_object_mut().unwrap().remove(key);
                } else {
                    merge(&mut target[key], change);
                }
            }
        }
        _ => *target = patch.clone(),
    }
}
