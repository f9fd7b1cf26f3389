//! The decision: pure, synchronous, infallible.
//!
//! Facts go in as events with the moment they are known; decisions, transitions and the next moment worth looking at come
//! out. Nothing here reads a clock, does I/O, logs, or knows Kubernetes or a database driver, so that every behaviour can
//! be shown by a test in microseconds and replayed from a record.
//!
//! Reading order: [`pool`] (the machine), [`service`] (one service's decision), [`facts`] (how silence is read),
//! [`source`] and [`primary`] (who is true, and until when), [`member`] and [`lease`] (what an answer proves), [`timeline`]
//! and [`position`] (in terms of what), [`selection`] and [`damping`] (who else, and how soon), [`settings`] (what is asked
//! for), [`state`], [`reason`], [`cause`], [`transition`] and [`report`] (how it is told).

pub mod agenda;
pub mod cause;
pub mod damping;
pub mod facts;
pub mod lease;
pub mod member;
pub mod moment;
pub mod motion;
pub mod pool;
pub mod position;
pub mod primary;
pub mod reason;
pub mod report;
pub mod seat;
pub mod selection;
pub mod service;
pub mod settings;
pub mod sighting;
pub mod source;
pub mod state;
pub mod timeline;
pub mod transition;
mod turn;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod world;
