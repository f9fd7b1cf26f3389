//! The command line: arguments in, one function called.
//!
//! A command is one variant and one arm; what it does lives elsewhere. Standard output carries results only.

use std::io::{self, Write};

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::api::crd;

/// Keeps the endpoints of a database's read Service true.
#[derive(Debug, Parser)]
#[command(name = "lagwarden", version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints the custom resource definition, for kubectl apply -f -.
    Crd,
}

impl Cli {
    /// Runs the command. An error is for the person at the terminal, causes included.
    pub fn run(self) -> anyhow::Result<()> {
        match self.command {
            Command::Crd => print(&crd::yaml()),
        }
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    io::stdout()
        .lock()
        .write_all(text.as_bytes())
        .context("write to standard output")
}
