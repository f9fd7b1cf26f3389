//! A real control plane: etcd and kube-apiserver, and when asked for kube-controller-manager and kube-proxy.
//!
//! All of its state lies in a temporary folder. It listens in whatever network namespace the test is in. Every request
//! that changes something is in an audit log, with the user who made it.

mod certificates;
mod ports;

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use super::signal::signal;
use super::wait::until;
use certificates::Certificates;
use ports::Ports;

/// What runs besides etcd and the API server.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// kube-controller-manager: garbage collection, namespaces.
    pub(crate) controllers: bool,
    /// kube-proxy, which needs root and nftables.
    pub(crate) proxy: bool,
    /// The node's address: where the API server says that it is.
    pub(crate) node: Ipv4Addr,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: false,
            proxy: false,
            node: Ipv4Addr::LOCALHOST,
        }
    }
}

/// A control plane.
pub(crate) struct Cluster {
    programs: PathBuf,
    options: Options,
    ports: Ports,
    certificates: Certificates,
    etcd: Child,
    api: Mutex<Option<Child>>,
    others: Vec<Child>,
    folder: TempDir,
}

/// Nothing of it writes any more when its folder goes.
impl Drop for Cluster {
    fn drop(&mut self) {
        let mut children: Vec<Child> = self.others.drain(..).collect();
        children.extend(self.api.get_mut().take());
        for child in children.iter_mut().chain([&mut self.etcd]) {
            drop(child.start_kill());
            while matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// One request that changed something, or tried to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Write {
    pub(crate) user: String,
    pub(crate) verb: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) name: String,
    pub(crate) code: u64,
}

impl Cluster {
    /// Starts one, and waits until it is ready.
    pub(crate) async fn start(options: Options) -> Self {
        let folder = tempfile::Builder::new().prefix("lagwarden-cluster-").tempdir().unwrap();
        let certificates = Certificates::make(folder.path(), options.node);
        let ports = Ports::free();
        let programs = programs();
        let etcd = etcd(&programs, folder.path(), &ports);
        let mut cluster = Self {
            programs,
            options,
            ports,
            certificates,
            etcd,
            api: Mutex::new(None),
            others: Vec::new(),
            folder,
        };
        cluster.write_kubeconfig("admin", Some("system:masters"));
        cluster.start_api().await;
        if cluster.options.controllers {
            let manager = cluster.controller_manager();
            cluster.others.push(manager);
        }
        if cluster.options.proxy {
            cluster.announce_node().await;
            let proxy = cluster.kube_proxy();
            cluster.others.push(proxy);
        }
        cluster
    }

    /// A client with every right.
    pub(crate) async fn admin(&self) -> Client {
        self.client("admin").await
    }

    /// A client of `user`, for whom a kubeconfig was written.
    pub(crate) async fn client(&self, user: &str) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(user)).unwrap();
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.default_retry = false;
        config.read_timeout = Some(Duration::from_secs(60));
        Client::try_from(config).unwrap()
    }

    /// The kubeconfig of `user`.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.folder.path().join(format!("{user}.kubeconfig"))
    }

    /// The folder of the control plane's programs, kubectl among them.
    pub(crate) fn programs(&self) -> &Path {
        &self.programs
    }

    /// A folder of the test's own, which goes with the cluster.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a user that is known by certificate, with no right but what is bound to it.
    pub(crate) fn write_kubeconfig(&self, user: &str, group: Option<&str>) {
        let (certificate, key) = self.certificates.client(user, group);
        let folder = self.folder.path();
        fs::write(folder.join(format!("{user}.crt")), certificate).unwrap();
        fs::write(folder.join(format!("{user}.key")), key).unwrap();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
             clusters:\n- name: test\n  cluster:\n    server: https://{node}:{port}\n    certificate-authority: {ca}\n\
             users:\n- name: test\n  user:\n    client-certificate: {crt}\n    client-key: {key}\n\
             contexts:\n- name: test\n  context:\n    cluster: test\n    user: test\n",
            node = self.options.node,
            port = self.ports.api,
            ca = folder.join("ca.crt").display(),
            crt = folder.join(format!("{user}.crt")).display(),
            key = folder.join(format!("{user}.key")).display(),
        );
        fs::write(self.kubeconfig(user), text).unwrap();
    }

    /// Installs a resource definition and waits until objects of it can be made.
    pub(crate) async fn install(&self, definition: &CustomResourceDefinition) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.admin().await);
        definitions.create(&PostParams::default(), definition).await.unwrap();
        let name = definition.metadata.name.clone().unwrap();
        until("the definition is established", async || {
            let now = definitions.get_status(&name).await.unwrap();
            let conditions = now.status.and_then(|s| s.conditions).unwrap_or_default();
            conditions
                .iter()
                .any(|c| c.type_ == "Established" && c.status == "True")
        })
        .await;
    }

    /// Stops the API server in its tracks: connections stay open, and nothing is answered.
    pub(crate) async fn hang_api(&self) {
        signal(self.api_pid().await, "STOP").await;
    }

    /// Lets it go on.
    pub(crate) async fn resume_api(&self) {
        signal(self.api_pid().await, "CONT").await;
    }

    async fn api_pid(&self) -> u32 {
        self.api.lock().await.as_ref().and_then(Child::id).unwrap()
    }

    /// Ends the API server at once: its port refuses.
    pub(crate) async fn kill_api(&self) {
        let mut api = self.api.lock().await.take().unwrap();
        api.kill().await.unwrap();
    }

    /// Starts the API server, and waits until it is ready.
    pub(crate) async fn start_api(&self) {
        *self.api.lock().await = Some(self.api_server());
        let client = self.admin().await;
        until("the API server is ready", async || {
            let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
            client.request_text(request).await.is_ok_and(|said| said == "ok")
        })
        .await;
    }

    /// Runs kubectl with every right, and answers what it says.
    pub(crate) async fn kubectl(&self, arguments: &[&str]) -> String {
        let mut kubectl = Command::new(self.programs.join("kubectl"));
        kubectl
            .arg("--kubeconfig")
            .arg(self.kubeconfig("admin"))
            .args(arguments);
        kubectl
            .stdin(Stdio::null())
            .env("KUBECACHEDIR", self.folder.path().join("cache"));
        let done = kubectl.output().await.unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "kubectl {arguments:?}: {said}");
        assert!(!said.contains("Warning:"), "{said}");
        said
    }

    /// Every request that changed something, or tried to, in order.
    pub(crate) fn writes(&self) -> Vec<Write> {
        let log = fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let write = |e: Value| Write {
            user: text(&e["user"]["username"]),
            verb: text(&e["verb"]),
            resource: text(&e["objectRef"]["resource"]),
            subresource: text(&e["objectRef"]["subresource"]),
            name: text(&e["objectRef"]["name"]),
            code: e["responseStatus"]["code"].as_u64().unwrap_or_default(),
        };
        entries.map(write).collect()
    }

    fn api_server(&self) -> Child {
        let folder = self.folder.path();
        let file = |name: &str| folder.join(name).display().to_string();
        fs::write(folder.join("audit.yaml"), AUDIT_POLICY).unwrap();
        let mut api = self.program("kube-apiserver");
        api.arg(format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd))
            .arg(format!("--secure-port={}", self.ports.api))
            .args([
                "--bind-address=0.0.0.0",
                "--endpoint-reconciler-type=none",
                "--authorization-mode=RBAC",
            ])
            .args([
                "--disable-admission-plugins=ServiceAccount",
                "--service-cluster-ip-range=10.96.0.0/16",
            ])
            .arg(format!("--advertise-address={}", self.options.node))
            .arg(format!("--tls-cert-file={}", file("apiserver.crt")))
            .arg(format!("--tls-private-key-file={}", file("apiserver.key")))
            .arg(format!("--client-ca-file={}", file("ca.crt")))
            .arg(format!(
                "--service-account-issuer=https://127.0.0.1:{}/",
                self.ports.api
            ))
            .arg(format!("--service-account-key-file={}", file("accounts.pub")))
            .arg(format!("--service-account-signing-key-file={}", file("accounts.key")))
            .arg(format!("--audit-policy-file={}", file("audit.yaml")))
            .arg(format!("--audit-log-path={}", file("audit.log")));
        api.spawn().unwrap()
    }

    fn controller_manager(&self) -> Child {
        let folder = self.folder.path();
        let mut manager = self.program("kube-controller-manager");
        manager
            .arg(format!("--kubeconfig={}", self.kubeconfig("admin").display()))
            .arg(format!("--secure-port={}", self.ports.controllers))
            .args([
                "--bind-address=127.0.0.1",
                "--leader-elect=false",
                "--use-service-account-credentials=true",
                // Nobody sends the node's heartbeats.
                "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller",
            ])
            .arg(format!(
                "--service-account-private-key-file={}",
                folder.join("accounts.key").display()
            ))
            .arg(format!("--root-ca-file={}", folder.join("ca.crt").display()))
            .arg(format!("--flex-volume-plugin-dir={}", folder.join("flex").display()));
        manager.spawn().unwrap()
    }

    /// kube-proxy waits half a minute for the node's address unless it is there first.
    async fn announce_node(&self) {
        let client = self.admin().await;
        let node = serde_json::json!({ "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": NODE, "labels": { "topology.kubernetes.io/zone": ZONE } } });
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client);
        let node = serde_json::from_value(node).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status =
            serde_json::json!({ "status": { "addresses": [{ "type": "InternalIP", "address": self.options.node }] } });
        let patch = kube::api::Patch::Merge(status);
        nodes
            .patch_status(NODE, &kube::api::PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    fn kube_proxy(&self) -> Child {
        let config = format!(
            "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n\
             hostnameOverride: {NODE}\nclientConnection: {{kubeconfig: {kubeconfig}}}\nnodePortAddresses: [127.0.0.0/8]\n\
             healthzBindAddress: 127.0.0.1:{health}\nmetricsBindAddress: 127.0.0.1:{metrics}\n\
             nftables: {{minSyncPeriod: 1s, syncPeriod: 30s, masqueradeAll: true}}\nconntrack: {{maxPerCore: 0, min: 0}}\n",
            kubeconfig = self.kubeconfig("admin").display(),
            health = self.ports.health,
            metrics = self.ports.metrics,
        );
        let path = self.folder.path().join("kube-proxy.yaml");
        fs::write(&path, config).unwrap();
        let mut proxy = self.program("kube-proxy");
        proxy.arg(format!("--config={}", path.display()));
        proxy.spawn().unwrap()
    }

    fn program(&self, name: &str) -> Command {
        program(&self.programs, self.folder.path(), name)
    }
}

/// The node that kube-proxy runs on.
pub(crate) const NODE: &str = "node-1";
/// Its zone.
pub(crate) const ZONE: &str = "zone-1";

/// Only what changes something, who did it, and how it was answered.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
    - level: Metadata\n  verbs: [create, update, patch, delete, deletecollection]\n- level: None\n";

fn etcd(programs: &Path, folder: &Path, ports: &Ports) -> Child {
    let (client, peer) = (
        format!("http://127.0.0.1:{}", ports.etcd),
        format!("http://127.0.0.1:{}", ports.peer),
    );
    let mut etcd = program(programs, folder, "etcd");
    etcd.arg("--data-dir").arg(folder.join("etcd"));
    etcd.args([
        "--unsafe-no-fsync",
        "--log-level=error",
        "--listen-client-urls",
        &client,
    ]);
    etcd.args(["--advertise-client-urls", &client, "--listen-peer-urls", &peer]);
    etcd.args([
        "--initial-advertise-peer-urls",
        &peer,
        "--initial-cluster",
        &format!("default={peer}"),
    ]);
    etcd.spawn().unwrap()
}

fn program(programs: &Path, folder: &Path, name: &str) -> Command {
    let log = File::options()
        .create(true)
        .append(true)
        .open(folder.join(format!("{name}.log")))
        .unwrap();
    let mut command = Command::new(programs.join(name));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true);
    command
}

/// The folder of the control plane's programs.
fn programs() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/get-kubernetes");
    let found = std::process::Command::new(script)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(found.status.success(), "a control plane cannot be had: see above");
    PathBuf::from(String::from_utf8(found.stdout).unwrap().trim())
}
