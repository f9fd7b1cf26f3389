//! Publishing to EndpointSlices: one per service and address family.
//!
//! [`build`] says what should be there, [`plan`] compares it with what is, and [`apply`] does what the plan says. The first
//! two are pure, so a test can print them; the third could be replaced by a script.
//!
//! A replica that is out is *absent*: consumers disagree about `ready: false` (Cilium and Envoy Gateway still send traffic
//! there, Istio ambient ignores it), and agree about absence.

pub mod apply;
pub mod build;
pub mod plan;

#[cfg(test)]
mod tests;
