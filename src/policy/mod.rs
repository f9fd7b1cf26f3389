//! The decision: pure, synchronous, infallible.
//!
//! Facts go in as events with the moment they are known; decisions, transitions and the next moment worth looking at come
//! out. Nothing here reads a clock, does I/O, logs, or knows Kubernetes or a database driver, so that every behaviour can
//! be shown by a test in microseconds and replayed from a record.
//!
//! Reading order: [`moment`], [`position`] and [`timeline`] (what is known), [`sighting`] (how it becomes known),
//! [`settings`] (what is asked for), [`state`] and [`reason`] (how it is told).

pub mod moment;
pub mod position;
pub mod reason;
pub mod settings;
pub mod sighting;
pub mod state;
pub mod timeline;
