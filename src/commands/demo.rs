//! `lagwarden demo`: a real primary and two standbys, lag made and healed, and the table live.
//!
//! The story, in under a minute: all is well; one standby stops applying, leaves, and returns; both stop, the fallback
//! holds the freshest, and ends when they heal. Everything lies in a temporary folder and ends with the command.

use std::io::{self, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::table::table;
use crate::clock::Clock;
use crate::demo::postgres::{Binaries, Maker, Options, Server};
use crate::engine::postgresql::ROLE_SQL;
use crate::engine::{Address, Credentials, Engine, Password, Target, Tls};
use crate::policy::member::{MemberInput, Standing};
use crate::policy::report::ServiceReport;
use crate::policy::settings::{PoolSettings, ServiceSettings};
use crate::policy::state::{MemberState, ServiceState};
use crate::pool::{Access, Config, Handle, NOTICES, PoolMember, View};
use crate::telemetry::events::{Notice, PoolKey, Recorder};
use crate::telemetry::metrics::Metrics;

/// The demonstration's limit: small, so that nobody has to wait.
const LIMIT: Duration = Duration::from_secs(2);
/// How long any chapter may take.
const CHAPTER: Duration = Duration::from_secs(20);
/// The role that measures; the password is made up anew each time.
const ROLE: &str = "lagwarden";

/// Shows the product with the PostgreSQL in `binaries`, until the story is over or `shutdown` says true.
pub async fn demo(binaries: &Path, mut shutdown: watch::Receiver<bool>) -> anyhow::Result<()> {
    let folder = tempfolder()?;
    let told = tokio::select! {
        told = tell(binaries, folder.path()) => told,
        _ = shutdown.wait_for(|ending| *ending) => Err(anyhow::anyhow!("interrupted")),
    };
    drop(folder);
    told
}

async fn tell(binaries: &Path, folder: &Path) -> anyhow::Result<()> {
    let mut stage = Stage::set(binaries, folder).await?;
    stage.story().await?;
    stage.say("That was it. Everything is stopped and removed.")?;
    for server in [&mut stage.b, &mut stage.a, &mut stage.primary] {
        server.stop().await?;
    }
    Ok(())
}

/// The servers, the load, and the pool over them.
struct Stage {
    primary: Server,
    a: Server,
    b: Server,
    handle: Handle,
    notices: mpsc::Receiver<Notice>,
    clock: Clock,
    screen: Screen,
    load: tokio::task::JoinHandle<()>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.load.abort();
    }
}

impl Stage {
    async fn set(binaries: &Path, folder: &Path) -> anyhow::Result<Self> {
        let screen = Screen::new();
        write("Starting a PostgreSQL primary and two standbys ...\n")?;
        let maker = Maker::new(Binaries::locate(binaries)?, folder)?;
        let options = |name: &str| Ok::<_, anyhow::Error>(Options::new(name, LOOPBACK, free_port()?));
        let mut primary = maker.server(options("pg-0")?).await?;
        primary.start().await?;
        let mut a = maker.standby(options("pg-1")?, &primary).await?;
        let mut b = maker.standby(options("pg-2")?, &primary).await?;
        a.start().await?;
        b.start().await?;
        let password: String = std::iter::repeat_with(fastrand::alphanumeric).take(24).collect();
        primary
            .sql(&ROLE_SQL.replace(":'password'", &format!("'{password}'")))
            .await?;
        let client = primary
            .connect(crate::demo::postgres::SUPERUSER, primary.password())
            .await?;
        client
            .batch_execute("create table orders (id bigserial primary key, placed timestamptz default now())")
            .await?;
        let load = tokio::spawn(async move {
            // Ends when the primary does.
            while client.batch_execute("insert into orders default values").await.is_ok() {
                sleep(Duration::from_millis(10)).await;
            }
        });
        let clock = Clock::start();
        let (told, notices) = mpsc::channel(NOTICES);
        let (_, leads) = watch::channel(true);
        let key = PoolKey {
            namespace: "demo".into(),
            name: "orders".into(),
        };
        let recorder = Recorder::new(key, Metrics::new());
        let config = config(&[&primary, &a, &b], &password);
        let handle = Handle::start(config, Vec::new(), clock.clone(), recorder, leads, told);
        Ok(Self {
            primary,
            a,
            b,
            handle,
            notices,
            clock,
            screen,
            load,
        })
    }

    async fn story(&mut self) -> anyhow::Result<()> {
        self.until(
            "Both standbys follow the primary, which commits a hundred times a second.",
            |s| s.endpoints.len() == 2,
        )
        .await?;
        self.watch(Duration::from_secs(2)).await?;
        self.b.pause_replay().await?;
        self.until(
            "pg-2 stops applying. It leaves when its staleness cannot be proven to be within two seconds.",
            |s| s.endpoints.len() == 1,
        )
        .await?;
        self.watch(Duration::from_secs(2)).await?;
        self.b.resume_replay().await?;
        self.until(
            "pg-2 applies again. It returns when it has been fresh for a second.",
            |s| s.endpoints.len() == 2,
        )
        .await?;
        self.watch(Duration::from_secs(1)).await?;
        self.a.pause_replay().await?;
        self.b.pause_replay().await?;
        self.until(
            "Both stop applying. The fallback holds the freshest, so that reads go on.",
            |s| matches!(s.state, ServiceState::Fallback(_)) && s.endpoints.len() == 1,
        )
        .await?;
        self.watch(Duration::from_secs(3)).await?;
        self.a.resume_replay().await?;
        self.b.resume_replay().await?;
        self.until(
            "Both apply again. The fallback ends at once, and the second one follows.",
            |s| s.seats.iter().filter(|seat| seat.state == MemberState::Serving).count() == 2,
        )
        .await?;
        self.watch(Duration::from_secs(2)).await
    }

    /// Opens a chapter, and shows the table until `done`.
    async fn until(&mut self, chapter: &str, done: impl Fn(&ServiceReport) -> bool) -> anyhow::Result<()> {
        self.say(chapter)?;
        let told = async {
            loop {
                let view = self.show(Duration::from_millis(200)).await?;
                if view.report.services.first().is_some_and(&done) {
                    return Ok(());
                }
            }
        };
        match timeout(CHAPTER, told).await {
            Ok(told) => told,
            Err(_) => bail!(
                "this did not come about within {} seconds: {chapter}",
                CHAPTER.as_secs()
            ),
        }
    }

    /// Shows the table for `span`.
    async fn watch(&mut self, span: Duration) -> anyhow::Result<()> {
        let end = self.clock.now() + span;
        while self.clock.now() < end {
            self.show(Duration::from_millis(200)).await?;
        }
        Ok(())
    }

    /// Shows what was told since, and the table after `pause`.
    async fn show(&mut self, pause: Duration) -> anyhow::Result<View> {
        let mut pause = interval(pause);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pause.tick().await;
        pause.tick().await;
        while let Ok(notice) = self.notices.try_recv() {
            self.screen.notice(&notice)?;
        }
        let view = self
            .handle
            .asker()
            .report()
            .await
            .context("the pool's loop does not answer")?;
        self.screen.table(&table(&view), self.clock.now())?;
        Ok(view)
    }

    fn say(&mut self, text: &str) -> anyhow::Result<()> {
        self.screen.clear()?;
        write(&format!("\n{text}\n"))
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn config(servers: &[&Server], password: &str) -> Config {
    let members = servers.iter().map(|server| PoolMember {
        input: MemberInput {
            name: server.name().into(),
            uid: server.port().to_string().into(),
            address: Some(server.address()),
            standing: Standing::Eligible,
            designated: false,
        },
        target: Target {
            address: Address::Ip(server.address()),
            port: server.port(),
            database: "postgres".into(),
        },
    });
    Config {
        generation: 1,
        settings: PoolSettings::new(vec![ServiceSettings::new("orders-read", LIMIT)]),
        members: members.collect(),
        access: Access {
            engine: Engine::Postgresql,
            credentials: Credentials {
                username: ROLE.into(),
                password: Password::new(password.into()),
            },
            tls: Tls::disabled(),
        },
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((LOOPBACK, 0)).context("find a free port")?;
    Ok(listener.local_addr()?.port())
}

/// A folder that goes with the command, and that the servers' user may enter when we are root.
fn tempfolder() -> anyhow::Result<tempfile::TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("lagwarden-demo-")
        .tempdir()
        .context("make a temporary folder")?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// Where things are shown: a table that is redrawn on a terminal, plain lines once a second elsewhere.
struct Screen {
    redraws: bool,
    drawn: usize,
    last: Option<crate::policy::moment::Moment>,
}

impl Screen {
    fn new() -> Self {
        Self {
            redraws: io::stdout().is_terminal(),
            drawn: 0,
            last: None,
        }
    }

    fn notice(&mut self, notice: &Notice) -> anyhow::Result<()> {
        self.clear()?;
        write(&format!("  * {} {}\n", notice.reason, notice.note))
    }

    fn table(&mut self, table: &str, now: crate::policy::moment::Moment) -> anyhow::Result<()> {
        let due = self.last.is_none_or(|last| now.since(last) >= Duration::from_secs(1));
        if !self.redraws && !due {
            return Ok(());
        }
        self.last = Some(now);
        self.clear()?;
        write(table)?;
        self.drawn = if self.redraws { table.lines().count() } else { 0 };
        Ok(())
    }

    /// Takes the table that was drawn last away.
    fn clear(&mut self) -> anyhow::Result<()> {
        let drawn = std::mem::take(&mut self.drawn);
        if drawn > 0 {
            write(&format!("\x1b[{drawn}A\x1b[J"))
        } else {
            Ok(())
        }
    }
}

fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("write to standard output")
}
