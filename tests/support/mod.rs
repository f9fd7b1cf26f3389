//! Real servers for the tests: a control plane, a network, databases. Everything ends when it is dropped.
//!
//! Not every test uses every part.

#![allow(dead_code, reason = "shared by several test programs, none of which uses all of it")]

pub(crate) mod cluster;
pub(crate) mod http;
pub(crate) mod namespace;
pub(crate) mod net;
pub(crate) mod signal;
pub(crate) mod tls;
pub(crate) mod wait;
