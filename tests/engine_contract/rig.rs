//! The servers of one case: made in a folder of its own, ended when the case ends.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Context;
use lagwarden::demo::postgres::{Binaries, Maker, Options, Server};
use lagwarden::engine::postgresql::ROLE_SQL;
use lagwarden::engine::{Address, Credentials, Duty, Engine, EngineError, Password, Session, Target, Tls};
use lagwarden::policy::sighting::Sighting;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take to become true.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// What the tests' role is called and its password.
pub(crate) const ROLE: (&str, &str) = ("lagwarden", "swordfish");

/// One version's programs, and the cluster that its servers begin as.
pub(crate) struct Version {
    folder: TempDir,
    binaries: Binaries,
    maker: Maker,
}

impl Version {
    pub(crate) async fn get(version: &str) -> anyhow::Result<Self> {
        let binaries = Binaries::locate(Path::new(&folder_of(version)?))?;
        let folder = tempfile::Builder::new().prefix("lagwarden-contract-").tempdir()?;
        open_to_all(folder.path())?;
        let maker = Maker::new(binaries.clone(), folder.path())?;
        maker.initialize().await?;
        Ok(Self {
            folder,
            binaries,
            maker,
        })
    }
}

/// Makes servers of one version, in a folder of one case.
pub(crate) struct Rig {
    folder: TempDir,
    pub(crate) maker: Maker,
    binaries: Binaries,
}

impl Rig {
    pub(crate) fn new(version: &Version) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("case-")
            .tempdir_in(version.folder.path())?;
        open_to_all(folder.path())?;
        Ok(Self {
            maker: version.maker.elsewhere(&subfolder(folder.path(), "one")?)?,
            folder,
            binaries: version.binaries.clone(),
        })
    }

    /// Makes servers of another cluster.
    pub(crate) fn other_maker(&self) -> Maker {
        Maker::new(self.binaries.clone(), &subfolder(self.folder.path(), "other").unwrap()).unwrap()
    }

    /// A running primary with the documented role.
    pub(crate) async fn primary(&self) -> Server {
        self.primary_with(&[]).await
    }

    /// A running primary with these settings and the documented role.
    pub(crate) async fn primary_with(&self, settings: &[&str]) -> Server {
        let mut options = options("primary");
        options.settings = settings.iter().map(|s| (*s).to_owned()).collect();
        let mut server = self.maker.server(options).await.unwrap();
        server.start().await.unwrap();
        make_role(&server).await;
        server
    }

    /// A running standby of `primary` that has the role.
    pub(crate) async fn standby(&self, name: &str, primary: &Server) -> Server {
        let mut server = self.maker.standby(options(name), primary).await.unwrap();
        server.start().await.unwrap();
        until("the standby has the role", async || connect(&server).await.is_ok()).await;
        server
    }
}

/// Options for a server on a free port of loopback.
pub(crate) fn options(name: &str) -> Options {
    Options::new(name, IpAddr::V4(Ipv4Addr::LOCALHOST), free_port())
}

/// A port that was free a moment ago, and is given to nobody else in this process.
pub(crate) fn free_port() -> u16 {
    static TAKEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap();
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if !taken.contains(&port) {
            taken.push(port);
            return port;
        }
    }
}

/// Makes the documented role, by the documented statements.
pub(crate) async fn make_role(server: &Server) {
    let statements = ROLE_SQL.replace(":'password'", &format!("'{}'", ROLE.1));
    server.sql(&statements).await.unwrap();
}

pub(crate) fn target(server: &Server) -> Target {
    Target {
        address: Address::Ip(server.address()),
        port: server.port(),
        database: "postgres".into(),
    }
}

pub(crate) fn credentials() -> Credentials {
    account(ROLE.0, ROLE.1)
}

pub(crate) fn account(username: &str, password: &str) -> Credentials {
    Credentials {
        username: username.into(),
        password: Password::new(password.into()),
    }
}

/// A session of the documented role.
pub(crate) async fn connect(server: &Server) -> Result<Session, EngineError> {
    connect_as(server, &credentials()).await
}

pub(crate) async fn connect_as(server: &Server, credentials: &Credentials) -> Result<Session, EngineError> {
    within(Engine::Postgresql.connect(&target(server), credentials, &Tls::disabled())).await
}

/// What a server shows on a new session.
pub(crate) async fn show(server: &Server, duty: Duty) -> Sighting {
    let mut session = connect(server).await.unwrap();
    within(session.observe(duty)).await.unwrap()
}

/// Waits for `future`, which must end within the patience of the tests.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future)
        .await
        .expect("no answer within the patience of the tests")
}

/// Waits until `condition` holds.
#[expect(clippy::disallowed_methods, reason = "a deadline, not a decision")]
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}

fn folder_of(version: &str) -> anyhow::Result<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/get-postgresql");
    let found = Command::new(script)
        .arg(version)
        .output()
        .context("run scripts/get-postgresql")?;
    let said = String::from_utf8_lossy(&found.stderr);
    anyhow::ensure!(found.status.success(), "PostgreSQL {version} cannot be had: {said}");
    let folder = String::from_utf8(found.stdout)?;
    Ok(folder.lines().last().unwrap_or_default().trim().to_owned())
}

fn subfolder(folder: &Path, name: &str) -> anyhow::Result<std::path::PathBuf> {
    let path = folder.join(name);
    std::fs::create_dir_all(&path)?;
    open_to_all(&path)?;
    Ok(path)
}

/// The servers run as another user when the tests run as root.
fn open_to_all(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(
        folder,
        std::fs::Permissions::from_mode(0o755),
    )?)
}
