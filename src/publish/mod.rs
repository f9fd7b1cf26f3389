//! Carrying a decision out: to EndpointSlices ([`slices`]) or to a file ([`mod@file`]). A publisher makes no choices.

pub mod file;
pub mod slices;
