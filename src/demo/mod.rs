//! Real servers in a temporary folder, for `lagwarden demo` and for tests.
//!
//! [`postgres`] starts and troubles PostgreSQL servers; nothing here knows pools or decisions.

pub mod postgres;
mod process;
