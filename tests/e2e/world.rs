//! What all rows share: the control plane, and the cluster that every database begins as.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;

use futures::FutureExt;
use lagwarden::api::crd;
use lagwarden::demo::postgres::{Binaries, Maker};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::RwLock;

use crate::stage::Stage;
use crate::support::cluster::{Cluster, Options};
use crate::support::net;

/// A row takes a stage and panics when what it promises does not hold.
pub(crate) type Row = for<'a> fn(&'a mut Stage) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Whether a row may run beside others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Company {
    /// Beside others.
    Shared,
    /// With nobody else.
    Alone,
}

/// What all rows share.
pub(crate) struct World {
    cluster: Arc<Cluster>,
    company: RwLock<()>,
    binaries: Binaries,
    maker: Maker,
    folder: TempDir,
    runtime: Runtime,
}

/// The rights of a controller, as an operator would give them.
const RIGHTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/rights.yaml");

impl World {
    /// Starts the control plane.
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        net::set_up();
        let folder = tempfile::Builder::new().prefix("lagwarden-e2e-").tempdir().unwrap();
        open_to_all(folder.path());
        let binaries = Binaries::locate(&programs()).unwrap();
        let (cluster, maker) = runtime.block_on(async {
            let maker = Maker::new(binaries.clone(), &subfolder(folder.path(), "databases")).unwrap();
            maker.initialize().await.unwrap();
            let options = Options {
                controllers: true,
                proxy: true,
                node: net::NODE,
            };
            let cluster = Cluster::start(options).await;
            cluster.install(&crd::definition()).await;
            cluster.kubectl(&["apply", "-f", RIGHTS]).await;
            (cluster, maker)
        });
        Self {
            cluster: Arc::new(cluster),
            company: RwLock::new(()),
            binaries,
            maker,
            folder,
            runtime,
        }
    }

    /// Runs one row on a stage of its own.
    pub(crate) fn run(&self, name: &str, company: Company, row: Row) -> Result<(), String> {
        self.runtime.block_on(async {
            match company {
                Company::Shared => {
                    let _beside = self.company.read().await;
                    self.play(name, row).await
                }
                Company::Alone => {
                    let _alone = self.company.write().await;
                    self.play(name, row).await
                }
            }
        })
    }

    async fn play(&self, name: &str, row: Row) -> Result<(), String> {
        let short = name.rsplit("::").next().unwrap_or(name);
        let namespace: String = short.replace('_', "-").chars().take(50).collect();
        let namespace = namespace.trim_end_matches('-');
        let folder = subfolder(self.folder.path(), namespace);
        let maker = self.maker.elsewhere(&folder).unwrap();
        let mut stage = Stage::set(self.cluster.clone(), maker, self.binaries.clone(), &folder, namespace).await;
        let played = AssertUnwindSafe(row(&mut stage)).catch_unwind().await;
        let outcome = match played {
            Ok(()) => Ok(()),
            Err(panic) => Err(format!("{}\n{}", said(&*panic), stage.tell().await)),
        };
        stage.clear().await;
        outcome
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "the row panicked".into())
}

fn programs() -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/get-postgresql");
    let found = Command::new(script).arg("any").output().unwrap();
    let said = String::from_utf8_lossy(&found.stderr);
    assert!(found.status.success(), "PostgreSQL cannot be had: {said}");
    let text = String::from_utf8(found.stdout).unwrap();
    PathBuf::from(text.lines().last().unwrap_or_default().trim())
}

/// A folder of this name, which servers may enter.
pub(crate) fn subfolder(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(&path).unwrap();
    open_to_all(&path);
    path
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}
