//! `make bench`: how late the product is, and what it costs, on the rig of the end-to-end tests.
//!
//! Prints a table. Rounds: `LAGWARDEN_ROUNDS`, 100 unless said.

#![allow(dead_code, reason = "it uses a part of the rig")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a bench ends by panicking")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "a JSON literal as an argument reads as what is declared"
)]
#![expect(clippy::print_stdout, reason = "its table is its result")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

mod clients;
mod controller;
mod history;
mod pods;
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod watching;
mod world;

#[path = "bench/cost.rs"]
mod cost;
#[path = "bench/latency.rs"]
mod latency;

use stage::Stage;
use world::{Company, World};

fn main() {
    support::namespace::enter();
    let world = World::start();
    let measured = world.run("bench", Company::Alone, |stage| Box::pin(measure(stage)));
    drop(world);
    if let Err(why) = measured {
        panic!("{why}");
    }
}

async fn measure(stage: &mut Stage) {
    println!("| what | n | median | p99 |\n| --- | --- | --- | --- |");
    latency::measure(stage).await;
    cost::idle(stage).await;
    cost::probes(stage).await;
}

/// A row of the table, of milliseconds.
fn row(what: &str, mut spans: Vec<f64>) {
    spans.sort_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "small counts"
        )]
        let index = ((spans.len() as f64 * share).ceil() as usize).clamp(1, spans.len()) - 1;
        spans[index]
    };
    println!("| {what} | {} | {:.1} ms | {:.1} ms |", spans.len(), at(0.5), at(0.99));
}
