//! What the process tells of itself: one catalogue of events ([`events`]), in the words of
//! [`words`], and one of metrics ([`catalogue`]).
//!
//! Recording an event writes the log line, moves the counters, and returns what a Kubernetes Event should say, so that the
//! three never disagree. Figures that live and die with a pool are read from its report when somebody scrapes.

pub mod catalogue;
pub mod events;
pub mod metrics;
pub mod scrape;
pub mod words;

/// Every category that a failed pass over a pool's objects can have. Closed: it is a metric label.
pub const CATEGORIES: [&str; 6] = [
    "api_timeout",
    "api_refused",
    "api_conflict",
    "api_unreachable",
    "not_leader",
    "internal",
];
