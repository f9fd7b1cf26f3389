//! A controller: the product's own program, as a pod with an address of its own would run it.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::support::cluster::Cluster;
use crate::support::http::get;
use crate::support::net::Sandbox;
use crate::support::signal::signal;
use crate::support::wait::until;

/// Where a controller serves HTTP.
const PORT: u16 = 8080;

/// A controller. Its process ends when this is dropped.
pub(crate) struct Controller {
    /// The name that the API server knows it by.
    pub(crate) user: String,
    /// Its network.
    pub(crate) sandbox: Sandbox,
    namespace: String,
    kubeconfig: PathBuf,
    log: PathBuf,
    process: Option<Child>,
}

impl Controller {
    /// Starts one that looks after `namespace`, with the documented rights only.
    pub(crate) fn start(cluster: &Cluster, namespace: &str, number: usize) -> Self {
        let user = format!("lagwarden-{namespace}-{number}");
        cluster.write_kubeconfig(&user, Some("lagwarden"));
        let mut controller = Self {
            sandbox: Sandbox::new(),
            namespace: namespace.into(),
            kubeconfig: cluster.kubeconfig(&user),
            log: cluster.folder().join(format!("{user}.log")),
            process: None,
            user,
        };
        controller.start_again();
        controller
    }

    /// Starts it again after [`Self::kill`].
    pub(crate) fn start_again(&mut self) {
        let launcher = self.sandbox.launcher();
        let log = File::options().create(true).append(true).open(&self.log).unwrap();
        let mut process = Command::new(&launcher[0]);
        process.args(&launcher[1..]).arg(env!("CARGO_BIN_EXE_lagwarden"));
        process.args([
            "controller",
            "--namespace",
            &self.namespace,
            "--lease-namespace",
            &self.namespace,
        ]);
        process.arg("--kubeconfig").arg(&self.kubeconfig);
        process
            .args(["--name", &self.user, "--http"])
            .arg(format!("0.0.0.0:{PORT}"));
        process
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        self.process = Some(process.spawn().unwrap());
    }

    /// Ends it without a word.
    pub(crate) async fn kill(&mut self) {
        self.process.take().unwrap().kill().await.unwrap();
    }

    /// Tells it to end, and waits until it has.
    pub(crate) async fn terminate(&mut self) {
        self.signal("TERM").await;
        let status = self.process.take().unwrap().wait().await.unwrap();
        assert!(status.success(), "{}: {status}", self.user);
    }

    /// Stops it in its tracks.
    pub(crate) async fn hang(&self) {
        self.signal("STOP").await;
    }

    /// Lets it go on.
    pub(crate) async fn resume(&self) {
        self.signal("CONT").await;
    }

    /// Whether its process runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.process.as_mut().is_some_and(|p| p.try_wait().unwrap().is_none())
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().and_then(Child::id).unwrap()
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// What it answers over HTTP: status, head and body. Nothing when it cannot be reached.
    pub(crate) async fn get(&self, path: &str) -> Option<(u16, String, String)> {
        get(SocketAddr::new(self.sandbox.address, PORT), path).await.ok()
    }

    /// What it knows of the pool `orders`; nothing before it is known.
    pub(crate) async fn knows(&self) -> Option<Value> {
        let path = format!("/api/v1/pools/{}/orders", self.namespace);
        let (status, _, body) = self.get(&path).await?;
        (status == 200).then(|| serde_json::from_str(&body).unwrap())
    }

    /// Waits until it is ready.
    pub(crate) async fn ready(&self) {
        until("the controller is ready", async || {
            self.get("/readyz").await.is_some_and(|(status, _, _)| status == 200)
        })
        .await;
    }

    async fn signal(&self, name: &str) {
        signal(self.pid(), name).await;
    }
}
