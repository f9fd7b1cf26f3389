//! Makes servers: a folder each, the cluster that all are copies of, and their settings.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Binaries, Options, SUPERUSER, Server};
use crate::demo::process::{command, give, run};

/// Makes servers in one folder.
#[derive(Clone, Debug)]
pub struct Maker {
    binaries: Binaries,
    folder: PathBuf,
    template: PathBuf,
    password: String,
    hba: Vec<String>,
}

impl Maker {
    /// Makes servers with `binaries` in `folder`, which must exist and be reachable for whoever they run as.
    pub fn new(binaries: Binaries, folder: &Path) -> anyhow::Result<Self> {
        give(folder)?;
        let password: String = std::iter::repeat_with(fastrand::alphanumeric).take(24).collect();
        let folder = folder.canonicalize()?;
        Ok(Self {
            binaries,
            template: folder.join("template"),
            folder,
            password,
            hba: [
                "host all all all scram-sha-256",
                "host replication all all scram-sha-256",
            ]
            .map(String::from)
            .into(),
        })
    }

    /// Makes servers of the same cluster in another folder.
    pub fn elsewhere(&self, folder: &Path) -> anyhow::Result<Self> {
        give(folder)?;
        Ok(Self {
            folder: folder.canonicalize()?,
            ..self.clone()
        })
    }

    /// Makes the cluster that all servers begin as, unless it is made already.
    pub async fn initialize(&self) -> anyhow::Result<()> {
        if self.template.exists() {
            return Ok(());
        }
        let secret = self.folder.join("password");
        fs::write(&secret, &self.password)?;
        give(&secret)?;
        let mut initdb = command(&[], self.binaries.folder.join("initdb"));
        initdb
            .arg("-D")
            .arg(&self.template)
            .args(["-U", SUPERUSER, "-A", "scram-sha-256"]);
        initdb
            .arg(format!("--pwfile={}", secret.display()))
            .args(["-N", "--no-locale", "-E", "UTF8"]);
        run(&mut initdb, "initdb").await?;
        fs::remove_file(&secret)?;
        let hba = self.template.join("pg_hba.conf");
        let usual = fs::read_to_string(&hba)?;
        fs::write(&hba, self.hba.join("\n") + "\n" + &usual)?;
        Ok(())
    }

    /// The superuser's password of every server that this makes.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Uses these lines of `pg_hba.conf` before the usual ones.
    pub fn with_hba(mut self, lines: &[&str]) -> Self {
        self.hba.splice(0..0, lines.iter().map(|l| (*l).to_owned()));
        self
    }

    /// Makes a server that is a primary until it is told to follow another. It is not started. All servers of one maker
    /// begin as the same cluster; another maker's are of another one.
    pub async fn server(&self, options: Options) -> anyhow::Result<Server> {
        self.initialize().await?;
        let folder = self.place(&options)?;
        let mut copy = command(&[], "cp");
        copy.arg("-a").arg(&self.template).arg(folder.join("data"));
        run(&mut copy, "copy of the cluster").await?;
        self.finish(options, folder)
    }

    /// Makes a standby of `primary`. It is not started.
    pub async fn standby(&self, options: Options, primary: &Server) -> anyhow::Result<Server> {
        let server = self.server(options).await?;
        server.follow(primary).await?;
        Ok(server)
    }

    fn place(&self, options: &Options) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(&options.name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir(&folder)?;
        give(&folder)?;
        Ok(folder)
    }

    fn finish(&self, options: Options, folder: PathBuf) -> anyhow::Result<Server> {
        let conf = folder.join("data/postgresql.conf");
        let mut text = fs::read_to_string(&conf)?;
        text.push_str(&settings(&options, &folder));
        fs::write(&conf, text)?;
        fs::write(folder.join("data/standby.conf"), "")?;
        give(&folder.join("data/standby.conf"))?;
        let log = folder.join("log");
        fs::write(&log, "")?;
        Ok(Server {
            binaries: self.binaries.clone(),
            options,
            folder,
            password: self.password.clone(),
            process: None,
        })
    }
}

fn settings(options: &Options, folder: &Path) -> String {
    let more = options.settings.join("\n");
    format!(
        "listen_addresses = '{}'\nport = {}\nunix_socket_directories = '{}'\ncluster_name = '{}'\n\
         shared_buffers = 16MB\nwal_level = replica\nmax_wal_senders = 10\nwal_keep_size = 64MB\n\
         hot_standby = on\nwal_retrieve_retry_interval = 500ms\nlog_min_messages = warning\nfsync = off\njit = off\n\
         {more}\ninclude_if_exists = 'standby.conf'\n",
        options.address,
        options.port,
        folder.display(),
        options.name,
    )
}
