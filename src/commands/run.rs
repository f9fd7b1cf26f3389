//! `lagwarden run`: pools of hosts, without a cluster. The same loop as the controller's; what it decides is printed and
//! written to a file.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use futures::future::select_all;
use k8s_openapi::api::core::v1::Secret;
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tracing::info;

use crate::clock::Clock;
use crate::http::{self, Check, Site};
use crate::pool::assemble::assemble;
use crate::pool::registry::Registry;
use crate::pool::{Handle, NOTICES, View};
use crate::publish::file::FilePublisher;
use crate::spec::file::{PoolFile, read};
use crate::spec::resolve::{Member, account, authority, members};
use crate::spec::{MemberSource, PoolSpec};
use crate::telemetry::events::{Notice, PoolKey, Recorder};
use crate::telemetry::metrics::Metrics;

/// How pools are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file with the pools.
    pub file: PathBuf,
    /// Where decisions are written.
    pub output: Option<PathBuf>,
    /// Where HTTP is served.
    pub http: Option<SocketAddr>,
}

/// Runs the pools of a file until `shutdown` says true.
pub async fn run(options: Options, mut shutdown: watch::Receiver<bool>) -> anyhow::Result<()> {
    let pools = load(&options.file)?;
    let (clock, metrics, registry) = (Clock::start(), Metrics::new(), Registry::default());
    let (tell, mut told) = mpsc::channel(NOTICES);
    let (_alone, leads) = watch::channel(true);
    let mut running = Vec::new();
    for (spec, members, config) in pools {
        let key = PoolKey {
            namespace: Arc::from(spec.namespace.as_str()),
            name: Arc::from(spec.name.as_str()),
        };
        let recorder = Recorder::new(key.clone(), metrics.clone());
        let (notices, named) = (tell.clone(), key.clone());
        let (inner, mut outer) = mpsc::channel(NOTICES);
        tokio::spawn(async move {
            while let Some(notice) = outer.recv().await {
                if notices.send((named.clone(), notice)).await.is_err() {
                    return;
                }
            }
        });
        let handle = Handle::start(config, Vec::new(), clock.clone(), recorder, leads.clone(), inner);
        registry.add(&key, &handle.asker());
        running.push(Pool { key, members, handle });
    }
    let serving = serve(options.http, registry, metrics, shutdown.clone()).await?;
    let mut file = options.output.map(FilePublisher::new);
    let mut decided: Vec<_> = running.iter().map(|p| p.handle.decided()).collect();
    let mut serving = Box::pin(serving);
    loop {
        if let Some(file) = &mut file {
            write(file, &running)?;
        }
        if let Some(pool) = running.iter().find(|p| p.handle.ended()) {
            bail!("the loop of pool {} ended, which it never does by itself", pool.key);
        }
        let changed = select_all(decided.iter_mut().map(|d| Box::pin(d.changed())));
        tokio::select! {
            (done, _, _) = changed => done.context("a pool's loop is gone")?,
            Some((key, notice)) = told.recv() => print(&clock, &key, &notice)?,
            done = &mut serving => return done,
            _ = shutdown.wait_for(|ending| *ending) => return Ok(()),
        }
    }
}

struct Pool {
    key: PoolKey,
    members: Vec<Member>,
    handle: Handle,
}

/// Reads the pools of a file, with what they refer to in it.
fn load(path: &Path) -> anyhow::Result<Vec<(PoolSpec, Vec<Member>, crate::pool::Config)>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let file = read(&text).map_err(|errors| told(path, &errors))?;
    let mut pools = Vec::new();
    for document in &file.pools {
        let spec = document.spec().map_err(|errors| told(path, &errors))?;
        if let MemberSource::Pods { .. } = spec.members {
            bail!(
                "pool {} selects pods, and there is no cluster here: give its servers as spec.members.hosts",
                spec.name
            );
        }
        let members = members(&spec, []).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        let account = account(&spec, secret(&file, &spec, &spec.connection.credentials.secret));
        let account = account.map_err(|problems| told(path, &problems))?;
        let ca = spec.connection.tls.ca().and_then(|ca| secret(&file, &spec, &ca.secret));
        let authority = authority(&spec, ca).map_err(|problem| anyhow::anyhow!("{problem}"))?;
        let config = assemble(&spec, &members, &account, authority.as_ref(), 1).context("use spec.tls")?;
        pools.push((spec, members, config));
    }
    Ok(pools)
}

fn secret<'a>(file: &'a PoolFile, spec: &PoolSpec, name: &str) -> Option<&'a Secret> {
    file.secrets.iter().find(|s| {
        let namespace = s.metadata.namespace.as_deref().unwrap_or("default");
        s.metadata.name.as_deref() == Some(name) && namespace == spec.namespace
    })
}

fn told(path: &Path, errors: &[impl ToString]) -> anyhow::Error {
    let lines: Vec<String> = errors
        .iter()
        .map(|e| format!("{}: {}", path.display(), e.to_string()))
        .collect();
    anyhow::anyhow!("{}", lines.join("\n"))
}

/// The decisions of all pools, as they are written: what changes is only who is in and why, so a quiet file stays.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Decisions {
    pools: Vec<PoolDecision>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolDecision {
    namespace: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary: Option<String>,
    services: Vec<ServiceDecision>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceDecision {
    name: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<&'static str>,
    endpoints: Vec<EndpointDecision>,
    /// Why each of the others is not in, by name.
    out: BTreeMap<String, &'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EndpointDecision {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    port: u16,
}

fn write(file: &mut FilePublisher, pools: &[Pool]) -> anyhow::Result<()> {
    let decisions = Decisions {
        pools: pools
            .iter()
            .map(|pool| decision(pool, &pool.handle.decided().borrow()))
            .collect(),
    };
    file.publish(&decisions).context("write the decisions").map(drop)
}

fn decision(pool: &Pool, view: &View) -> PoolDecision {
    let service = |s: &crate::policy::report::ServiceReport| ServiceDecision {
        name: s.name.to_string(),
        state: s.state.as_str(),
        fallback: s.state.fallback().map(crate::policy::settings::Fallback::as_str),
        endpoints: s
            .endpoints
            .iter()
            .filter_map(|name| endpoint(pool, view, name))
            .collect(),
        out: s
            .seats
            .iter()
            .filter(|s| !s.listed)
            .map(|s| (s.member.to_string(), s.reason.as_str()))
            .collect(),
    };
    PoolDecision {
        namespace: pool.key.namespace.to_string(),
        name: pool.key.name.to_string(),
        primary: view.report.primary.name().map(ToString::to_string),
        services: view.report.services.iter().map(service).collect(),
    }
}

fn endpoint(pool: &Pool, view: &View, name: &Arc<str>) -> Option<EndpointDecision> {
    let member = pool.members.iter().find(|m| *m.name == **name)?;
    let measured = view.contacts.get(name).and_then(|c| c.peer);
    Some(EndpointDecision {
        name: member.name.clone(),
        address: member.addresses.first().copied().or(measured),
        port: member.port,
    })
}

fn print(clock: &Clock, key: &PoolKey, notice: &Notice) -> anyhow::Result<()> {
    let at = clock.wall().strftime("%H:%M:%S%.3f").to_string();
    let line = format!("{at} {} {} {}\n", key.name, notice.reason, notice.note);
    io::stdout()
        .lock()
        .write_all(line.as_bytes())
        .context("write to standard output")
}

async fn serve(
    address: Option<SocketAddr>,
    registry: Registry,
    metrics: Metrics,
    shutdown: watch::Receiver<bool>,
) -> anyhow::Result<impl Future<Output = anyhow::Result<()>>> {
    let bound = match address {
        Some(address) => Some(http::listen(address).await?),
        None => None,
    };
    let check: Check = Arc::new(|| Ok(()));
    let site = Site {
        registry,
        metrics,
        ready: vec![("file", check)],
    };
    Ok(async move {
        match bound {
            Some((listener, address)) => {
                info!(http = %address, "serving");
                http::serve(listener, site, shutdown).await
            }
            None => std::future::pending().await,
        }
    })
}
