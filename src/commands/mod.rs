//! Commands that are more than a call: each is one file.

pub mod demo;
pub mod run;
mod table;
