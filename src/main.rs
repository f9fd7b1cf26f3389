//! The `lagwarden` command.

use clap::Parser;
use lagwarden::cli::Cli;

fn main() -> anyhow::Result<()> {
    Cli::parse().run()
}
