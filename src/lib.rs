//! Lagwarden keeps the endpoint list of a database's read Service true: only replicas that are proven to be caught up are
//! in it, and when none is, a declared fallback decides.

pub mod api;
pub mod app;
pub mod cli;
pub mod clock;
pub mod commands;
pub mod controller;
pub mod demo;
pub mod engine;
pub mod http;
pub mod kubernetes;
pub mod leader;
pub mod policy;
pub mod pool;
pub mod publish;
pub mod spec;
pub mod telemetry;
