//! The command line: arguments in, one function called.
//!
//! A command is one variant and one arm; what it does lives elsewhere. Standard output carries results only, standard error
//! the log.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Parser, Subcommand, ValueEnum};
use tracing_subscriber::EnvFilter;

use crate::api::crd;
use crate::app::{self, ControllerOptions};
use crate::clock::Clock;
use crate::commands;

/// Keeps the endpoints of a database's read Service true.
#[derive(Debug, Parser)]
#[command(name = "lagwarden", version, about, max_term_width = 100)]
pub struct Cli {
    /// How the log on standard error is written.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "LAGWARDEN_LOG_FORMAT")]
    log_format: LogFormat,
    /// What is logged, such as info, or debug,kube=info.
    #[arg(
        long,
        global = true,
        default_value = "info,kube_runtime=error",
        env = "LAGWARDEN_LOG",
        value_name = "FILTER"
    )]
    log: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Looks after every ReplicaPool of a cluster, or of some namespaces.
    Controller(Controller),
    /// Looks after the pools of a file, without a cluster: prints what is decided and writes it to a file.
    Run(Run),
    /// Shows the product on a real PostgreSQL primary and two standbys in a temporary folder, in under a minute.
    Demo(Demo),
    /// Prints the custom resource definition, for kubectl apply -f -.
    Crd,
}

#[derive(Debug, Args)]
struct Controller {
    /// Kubeconfig of the API server. Default: KUBECONFIG, the home folder, or the pod that this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A namespace to look after; may be given several times. Default: all.
    #[arg(
        long = "namespace",
        short = 'n',
        value_name = "NAME",
        env = "LAGWARDEN_NAMESPACES",
        value_delimiter = ','
    )]
    namespaces: Vec<String>,
    /// Where health, metrics and the API are served.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    http: SocketAddr,
    /// Namespace of the Lease that decides which process publishes. Default: the one that this runs in.
    #[arg(long, value_name = "NAME", env = "POD_NAMESPACE")]
    lease_namespace: Option<String>,
    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "lagwarden")]
    lease: String,
    /// Name of this process, in the Lease and in Events.
    #[arg(long, value_name = "NAME", env = "POD_NAME", default_value = "lagwarden")]
    name: String,
}

#[derive(Debug, Args)]
struct Run {
    /// File with one or several pools of hosts, and the Secrets that they name.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Writes what is decided to this file, as JSON, replaced as a whole at each change.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where health, metrics and the API are served. Default: nowhere.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
}

#[derive(Debug, Args)]
struct Demo {
    /// Folder of PostgreSQL's programs: initdb and postgres.
    #[arg(long, value_name = "FOLDER", env = "PGBIN")]
    pg_bin: PathBuf,
}

impl Cli {
    /// Runs the command. An error is for the person at the terminal, causes included.
    pub fn run(self) -> anyhow::Result<()> {
        self.start_log()?;
        match self.command {
            Command::Crd => print(&crd::yaml()),
            Command::Controller(arguments) => block_on(async {
                let shutdown = app::shutdown_signal()?;
                app::controller(arguments.into(), Clock::start(), shutdown).await
            }),
            Command::Run(arguments) => block_on(async {
                let shutdown = app::shutdown_signal()?;
                let Run { file, output, http } = arguments;
                commands::run::run(commands::run::Options { file, output, http }, shutdown).await
            }),
            Command::Demo(arguments) => block_on(async {
                let shutdown = app::shutdown_signal()?;
                commands::demo::demo(&arguments.pg_bin, shutdown).await
            }),
        }
    }

    fn start_log(&self) -> anyhow::Result<()> {
        let filter = EnvFilter::try_new(&self.log).with_context(|| format!("read the log filter {:?}", self.log))?;
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(io::stderr);
        match self.log_format {
            LogFormat::Text => log.with_ansi(io::stderr().is_terminal()).init(),
            LogFormat::Json => log.json().flatten_event(true).init(),
        }
        Ok(())
    }
}

impl From<Controller> for ControllerOptions {
    fn from(arguments: Controller) -> Self {
        Self {
            kubeconfig: arguments.kubeconfig,
            namespaces: arguments.namespaces,
            http: arguments.http,
            lease_namespace: arguments.lease_namespace,
            lease: arguments.lease,
            name: arguments.name,
        }
    }
}

fn block_on(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("start the runtime")?.block_on(command)
}

fn print(text: &str) -> anyhow::Result<()> {
    let written = io::stdout().lock().write_all(text.as_bytes());
    written.context("write to standard output")
}
