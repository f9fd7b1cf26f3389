//! Where the parts are put together. No logic: which parts there are, and that the process ends when one is lost.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::info;

use crate::clock::Clock;
use crate::controller::{self, Parts, Scope};
use crate::http::{self, Check, Site};
use crate::kubernetes;
use crate::leader::{self, Election, Leadership};
use crate::policy::moment::Moment;
use crate::pool::registry::Registry;
use crate::telemetry::metrics::Metrics;

/// For how long the API server may be silent before the process is not ready.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// How a controller is run.
#[derive(Clone, Debug)]
pub struct ControllerOptions {
    /// Where the API server is; what the environment says when absent.
    pub kubeconfig: Option<PathBuf>,
    /// The namespaces that are looked after; all when empty.
    pub namespaces: Vec<String>,
    /// Where HTTP is served.
    pub http: SocketAddr,
    /// Namespace of the Lease; the one that we are in when absent.
    pub lease_namespace: Option<String>,
    /// Name of the Lease.
    pub lease: String,
    /// Our name, in the Lease and in Events.
    pub name: String,
}

/// Runs a controller until `shutdown` says true.
pub async fn controller(
    options: ControllerOptions,
    clock: Clock,
    shutdown: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let (client, own_namespace) = kubernetes::client(options.kubeconfig.as_deref()).await?;
    let metrics = Metrics::new();
    let registry = Registry::default();
    let namespace = options.lease_namespace.unwrap_or(own_namespace);
    let election = Election::new(&namespace, &options.lease, &options.name);
    let instance = election.identity.clone();
    let elected = leader::start(client.clone(), election, clock.clone(), shutdown.clone());
    let (synced, is_synced) = watch::channel(false);
    let ready = vec![
        ("watches", synced_check(is_synced)),
        ("api-server", contact_check(elected.contact.clone(), clock.clone())),
    ];
    let (listener, bound) = http::listen(options.http).await?;
    info!(version = env!("CARGO_PKG_VERSION"), http = %bound, %instance, "lagwarden controller");
    let site = Site {
        registry: registry.clone(),
        metrics: metrics.clone(),
        ready,
    };
    let parts = Parts {
        client,
        scope: if options.namespaces.is_empty() {
            Scope::Cluster
        } else {
            Scope::Namespaces(options.namespaces)
        },
        clock: clock.clone(),
        metrics: metrics.clone(),
        registry,
        leadership: elected.leadership.clone(),
        instance,
    };
    let leads = note_leadership(elected.leadership, metrics);
    let mut ending = shutdown.clone();
    let mut election = elected.task;
    tokio::select! {
        done = controller::run(parts, synced, shutdown.clone()) => done.context("look after pools")?,
        done = http::serve(listener, site, shutdown.clone()) => done?,
        () = leads => {}
        _ = ending.wait_for(|ending| *ending) => {}
        done = &mut election => {
            done.context("the election's task failed")?;
            if !*shutdown.borrow() {
                bail!("the election's task ended, which it never does by itself");
            }
        }
    }
    if !election.is_finished() {
        // The Lease is given back before we go.
        election.await.context("give the Lease back")?;
    }
    info!("lagwarden controller has ended");
    Ok(())
}

fn synced_check(synced: watch::Receiver<bool>) -> Check {
    Arc::new(move || {
        if *synced.borrow() {
            Ok(())
        } else {
            Err("the API server has not shown everything yet".into())
        }
    })
}

fn contact_check(contact: watch::Receiver<Option<Moment>>, clock: Clock) -> Check {
    Arc::new(move || match *contact.borrow() {
        None => Err("the API server has not answered yet".into()),
        Some(at) if clock.now().since(at) > SILENT_FOR => Err(format!(
            "the API server has not answered for {} s; what is published stays",
            clock.now().since(at).as_secs()
        )),
        Some(_) => Ok(()),
    })
}

async fn note_leadership(mut leadership: watch::Receiver<Leadership>, metrics: Metrics) {
    loop {
        metrics.leads(leadership.borrow_and_update().leads());
        if leadership.changed().await.is_err() {
            return;
        }
    }
}

/// Says true when the process is told to end.
pub fn shutdown_signal() -> anyhow::Result<watch::Receiver<bool>> {
    let (tell, shutdown) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("told to end");
        tell.send_replace(true);
        // Kept, so that those who wait see true rather than a lost sender.
        std::future::pending::<()>().await;
    });
    Ok(shutdown)
}
