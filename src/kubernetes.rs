//! Clients of the API server, made our way.
//!
//! The library would repeat a refused call for minutes and wait for an answer without end. Here nothing is repeated behind
//! our back, a connection is given up after [`CONNECT_WITHIN`], and every caller bounds its own calls.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How long a connection may be silent: longer than any watch is without an event or its end.
const SILENT_FOR: Duration = Duration::from_secs(60);

/// A client by `kubeconfig`, or when none is named by what the environment says: `KUBECONFIG`, the home folder, or the pod
/// that we run in. Answers the namespace that it is in too.
pub async fn client(kubeconfig: Option<&Path>) -> anyhow::Result<(Client, String)> {
    let mut config = match kubeconfig {
        Some(path) => {
            let read = Kubeconfig::read_from(path).with_context(|| format!("read kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(read, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("use kubeconfig {}", path.display()))?
        }
        None => Config::infer()
            .await
            .context("find an API server: name a kubeconfig with --kubeconfig, or run in a pod")?,
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_WITHIN);
    config.read_timeout = Some(SILENT_FOR);
    let namespace = config.default_namespace.clone();
    Ok((
        Client::try_from(config).context("make a client of the API server")?,
        namespace,
    ))
}
