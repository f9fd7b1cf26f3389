//! Clients of the read Service: they connect through its ClusterIP, as kube-proxy leads them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio_postgres::{Client, Config, NoTls};

use crate::support::wait::until;

/// Somebody who connects again and again.
pub(crate) struct Clients {
    address: String,
    password: String,
    names: BTreeMap<IpAddr, String>,
}

impl Clients {
    /// Clients of the Service at `address`, whose servers are `names`.
    pub(crate) fn new(address: &str, password: &str, names: BTreeMap<IpAddr, String>) -> Self {
        Self {
            address: address.into(),
            password: password.into(),
            names,
        }
    }

    /// A new connection, and the name of the server that it reached.
    pub(crate) async fn connect(&self) -> Result<(String, Client), tokio_postgres::Error> {
        let mut config = Config::new();
        config
            .host(&self.address)
            .port(5432)
            .user("postgres")
            .password(&self.password)
            .dbname("postgres");
        config.connect_timeout(Duration::from_secs(2));
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        let server: IpAddr = client.query_one("select inet_server_addr()", &[]).await?.get(0);
        Ok((
            self.names.get(&server).cloned().unwrap_or_else(|| server.to_string()),
            client,
        ))
    }

    /// Where `count` new connections lead, each name with how many.
    pub(crate) async fn reach(&self, count: usize) -> BTreeMap<String, usize> {
        let mut reached = BTreeMap::new();
        for _ in 0..count {
            let name = match self.connect().await {
                Ok((name, _)) => name,
                Err(_) => "nobody".into(),
            };
            *reached.entry(name).or_default() += 1;
        }
        reached
    }

    /// Waits until kube-proxy leads nobody to `address` any more.
    pub(crate) async fn until_proxy_drops(&self, address: IpAddr) {
        until("kube-proxy leads nobody there", async || {
            !self.rules().await.contains(&format!("{address} . 5432"))
                && !self.rules().await.contains(&format!("dnat ip to {address}:5432"))
        })
        .await;
    }

    async fn rules(&self) -> String {
        let nft = Command::new("nft")
            .args(["list", "table", "ip", "kube-proxy"])
            .stdin(Stdio::null())
            .output()
            .await;
        String::from_utf8(nft.unwrap().stdout).unwrap()
    }
}
