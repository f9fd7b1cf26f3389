//! PostgreSQL servers in a folder: one primary and standbys that stream from it.
//!
//! A standby begins as a copy of the cluster that was just made, before it ever ran: it has the same system identifier and
//! streams everything from there. That takes 0.1 s, against 2 s for a base backup.

mod maker;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::Child;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

pub use maker::Maker;

use super::process::{children, command, give, runs, signal};

/// The superuser of every server made here.
pub const SUPERUSER: &str = "postgres";
/// How long a server may take to answer after its start.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long a server may take to end.
const ENDED_WITHIN: Duration = Duration::from_secs(30);

/// The programs of one PostgreSQL version.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// The programs in `folder`, which must hold `initdb` and `postgres`.
    pub fn locate(folder: &Path) -> anyhow::Result<Self> {
        for program in ["initdb", "postgres"] {
            let path = folder.join(program);
            if !path.is_file() {
                bail!(
                    "{} does not exist: name the folder of PostgreSQL's programs",
                    path.display()
                );
            }
        }
        Ok(Self {
            folder: folder.canonicalize()?,
        })
    }

    /// The folder that they lie in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// How a server is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name: `cluster_name`, and `application_name` of its connection when it is a standby.
    pub name: String,
    /// Where it listens.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// What its programs are started by, such as `ip netns exec NAME`.
    pub launcher: Vec<String>,
    /// More lines of `postgresql.conf`.
    pub settings: Vec<String>,
}

impl Options {
    /// A server of this name at this address and port.
    pub fn new(name: &str, address: IpAddr, port: u16) -> Self {
        Self {
            name: name.into(),
            address,
            port,
            launcher: Vec::new(),
            settings: Vec::new(),
        }
    }
}

/// One server. Its process ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    binaries: Binaries,
    options: Options,
    folder: PathBuf,
    password: String,
    process: Option<Child>,
}

impl Server {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Where it listens.
    pub fn address(&self) -> IpAddr {
        self.options.address
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.options.port
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts it and waits until it answers.
    pub async fn start(&mut self) -> anyhow::Result<()> {
        self.spawn()?;
        self.ready().await
    }

    /// Starts it without waiting.
    pub fn spawn(&mut self) -> anyhow::Result<()> {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))?;
        let mut postgres = command(&self.options.launcher, self.binaries.folder.join("postgres"));
        postgres.arg("-D").arg(self.data()).stderr(log).kill_on_drop(true);
        let process = postgres
            .spawn()
            .with_context(|| format!("start server {}", self.name()))?;
        self.process = Some(process);
        Ok(())
    }

    /// Waits until it answers a query.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        let answered = async {
            loop {
                if self.sql("select 1").await.is_ok() {
                    return Ok(());
                }
                if let Some(ended) = self.process.as_mut().and_then(|p| p.try_wait().ok().flatten()) {
                    bail!(
                        "server {} ended ({ended}); the end of its log: {}",
                        self.name(),
                        self.log_tail()
                    );
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        match timeout(READY_WITHIN, answered).await {
            Ok(done) => done,
            Err(_) => bail!(
                "server {} does not answer; the end of its log: {}",
                self.name(),
                self.log_tail()
            ),
        }
    }

    /// Ends it as `pg_ctl stop -m fast` does, and waits until it has ended.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        self.end("INT").await
    }

    /// Ends it as a crash of its host would.
    pub async fn kill(&mut self) -> anyhow::Result<()> {
        // A postmaster that sees a child die starts others; one that is stopped sees nothing.
        let postmaster = self.pid()?;
        signal("STOP", postmaster).await?;
        let children = children(postmaster, "")?;
        for child in &children {
            drop(signal("KILL", *child).await);
        }
        self.end("KILL").await?;
        // Until the last has let go of its memory, the server cannot be started again.
        let gone = async {
            while children.iter().any(|child| runs(*child)) {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let gone = timeout(ENDED_WITHIN, gone).await;
        gone.with_context(|| format!("a part of server {} does not end", self.name()))
    }

    /// Stops the process that applies, the one that receives, or the one that accepts connections and all others; [`Self::resume`]
    /// lets them go on.
    pub async fn freeze(&self, part: Part) -> anyhow::Result<()> {
        self.signal_part(part, "STOP").await
    }

    /// Lets a part go on that was stopped.
    pub async fn resume(&self, part: Part) -> anyhow::Result<()> {
        self.signal_part(part, "CONT").await
    }

    /// Makes it a primary, and waits until it is one.
    pub async fn promote(&self) -> anyhow::Result<()> {
        self.sql("select pg_promote(true, 30)").await.map(drop)
    }

    /// Makes it a standby of `primary` from its next start on, or from now on when it is one already.
    pub async fn follow(&self, primary: &Server) -> anyhow::Result<()> {
        let conninfo = primary.conninfo(self.name());
        fs::write(
            self.data().join("standby.conf"),
            format!("primary_conninfo = '{conninfo}'\n"),
        )?;
        fs::write(self.data().join("standby.signal"), "")?;
        give(&self.data().join("standby.conf"))?;
        give(&self.data().join("standby.signal"))?;
        match &self.process {
            Some(process) => match process.id() {
                Some(pid) => signal("HUP", pid).await,
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// The process's id, while it runs.
    pub fn pid(&self) -> anyhow::Result<u32> {
        let process = self.process.as_ref().and_then(Child::id);
        process.with_context(|| format!("server {} does not run", self.name()))
    }

    /// Runs statements as the superuser on a connection of their own; the values of the last one's rows.
    pub async fn sql(&self, statements: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
        let client = self.connect(SUPERUSER, &self.password).await?;
        rows(&client, statements).await
    }

    /// Stops applying, on a standby.
    pub async fn pause_replay(&self) -> anyhow::Result<()> {
        self.sql("select pg_wal_replay_pause()").await.map(drop)
    }

    /// Applies again. A standby that was long behind interrupts whatever is in its applier's way, even who asks this; so
    /// it is asked until it is heard.
    pub async fn resume_replay(&self) -> anyhow::Result<()> {
        const ATTEMPTS: usize = 20;
        let mut heard = Ok(());
        for _ in 0..ATTEMPTS {
            heard = self.sql("select pg_wal_replay_resume()").await.map(drop);
            if !heard.as_ref().is_err_and(interrupted) {
                break;
            }
        }
        heard
    }

    /// A connection of this user.
    pub async fn connect(&self, user: &str, password: &str) -> anyhow::Result<Client> {
        let mut config = Config::new();
        config.host(self.options.address.to_string()).port(self.options.port);
        config.user(user).password(password).dbname("postgres");
        config.connect_timeout(Duration::from_secs(5));
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    /// The superuser's password.
    pub fn password(&self) -> &str {
        &self.password
    }

    fn conninfo(&self, standby: &str) -> String {
        format!(
            "host={} port={} user={SUPERUSER} password={} application_name={standby}",
            self.options.address, self.options.port, self.password
        )
    }

    async fn signal_part(&self, part: Part, name: &str) -> anyhow::Result<()> {
        let postmaster = self.pid()?;
        let pids = match part {
            Part::Whole => {
                let mut all = children(postmaster, "")?;
                all.push(postmaster);
                all
            }
            Part::Receiver => children(postmaster, "walreceiver")?,
            Part::Applier => children(postmaster, "startup")?,
        };
        if pids.is_empty() {
            bail!("server {} has no such process now", self.name());
        }
        for pid in pids {
            signal(name, pid).await?;
        }
        Ok(())
    }

    async fn end(&mut self, name: &str) -> anyhow::Result<()> {
        let pid = self.pid()?;
        // A server that is stopped hears nothing else.
        if name != "KILL" {
            drop(self.resume(Part::Whole).await);
        }
        signal(name, pid).await?;
        let Some(mut process) = self.process.take() else {
            return Ok(());
        };
        let ended = timeout(ENDED_WITHIN, process.wait()).await;
        ended.with_context(|| format!("server {} does not end", self.options.name))??;
        Ok(())
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines
            .get(lines.len().saturating_sub(5)..)
            .unwrap_or_default()
            .join(" | ")
    }
}

/// A part of a server that can be stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Everything: it accepts connections and never answers.
    Whole,
    /// The WAL receiver: the link stalls and still looks connected.
    Receiver,
    /// The startup process, which applies.
    Applier,
}

/// Runs statements on `client`; the values of the last one's rows.
pub async fn rows(client: &Client, statements: &str) -> anyhow::Result<Vec<Vec<Option<String>>>> {
    let mut rows = Vec::new();
    for message in client.simple_query(statements).await? {
        match message {
            SimpleQueryMessage::Row(row) => {
                rows.push((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect());
            }
            SimpleQueryMessage::RowDescription(_) => rows.clear(),
            _ => {}
        }
    }
    Ok(rows)
}

/// Whether a server interrupted the question: class 40 of its error codes.
fn interrupted(error: &anyhow::Error) -> bool {
    let code = error.downcast_ref::<tokio_postgres::Error>().and_then(|e| e.code());
    code.is_some_and(|code| code.code().starts_with("40"))
}
