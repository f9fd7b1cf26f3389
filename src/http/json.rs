//! What a pool knows, as JSON. The policy's own types stay free of it.
//!
//! Spans are in seconds. What is not known is not there; nothing unknown is zero.

use std::time::Duration;

use serde::Serialize;

use crate::policy::facts::{Contact, Reach};
use crate::policy::moment::Moment;
use crate::policy::report::{MemberReport, SeatReport, ServiceReport};
use crate::policy::sighting::{ProbeFailure, Replay, Role};
use crate::policy::state::Phase;
use crate::pool::View;
use crate::telemetry::events::PoolKey;
use crate::telemetry::words::{down_to, up_to, why, why_unresolved};

/// Every pool.
#[derive(Debug, Serialize)]
pub struct Pools {
    /// By namespace and name.
    pub pools: Vec<Pool>,
}

/// One pool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pool {
    namespace: String,
    name: String,
    primary: Primary,
    /// Whether most members answer.
    contact: &'static str,
    members: Vec<Member>,
    services: Vec<Service>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Primary {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// In one word, and in a sentence.
    state: &'static str,
    message: String,
    silent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_seconds_ago: Option<f64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Member {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    contact: &'static str,
    /// The kind of the newest failure, and what it said.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_seconds_ago: Option<f64>,
    /// What is proven of its staleness.
    #[serde(skip_serializing_if = "Option::is_none")]
    staleness_seconds: Option<Interval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unapplied_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    catches_up_in_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Interval {
    #[serde(skip_serializing_if = "Option::is_none")]
    lower: Option<f64>,
    upper: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    name: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<&'static str>,
    since_seconds_ago: f64,
    max_staleness_seconds: f64,
    evict_above_seconds: f64,
    admit_within_seconds: f64,
    min_endpoints: usize,
    endpoints: Vec<String>,
    changes: u64,
    members: Vec<Seat>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Seat {
    name: String,
    state: &'static str,
    reason: &'static str,
    message: &'static str,
    in_service: bool,
    since_seconds_ago: f64,
}

/// What `view` says of the pool `key`.
pub fn pool(key: &PoolKey, view: &View) -> Pool {
    let report = &view.report;
    Pool {
        namespace: key.namespace.to_string(),
        name: key.name.to_string(),
        primary: Primary {
            name: report.primary.name().map(ToString::to_string),
            state: report.primary.as_str(),
            message: why_unresolved(&report.primary),
            silent: report.primary_silent,
            timeline: report.history.map(|h| h.timeline),
            position: report.position.as_ref().map(ToString::to_string),
            answered_seconds_ago: report.primary_answered.map(|at| ago(report.at, at)),
        },
        contact: match report.reach {
            Reach::Most => "Most",
            Reach::Few => "Few",
            Reach::Frozen => "Frozen",
            Reach::Isolated => "Isolated",
        },
        members: report.members.iter().map(|m| member(view, m)).collect(),
        services: report.services.iter().map(|s| service(report.at, s)).collect(),
    }
}

fn member(view: &View, member: &MemberReport) -> Member {
    let contact = view.contacts.get(&member.name);
    Member {
        name: member.name.to_string(),
        address: contact.and_then(|c| c.peer).map(|a| a.to_string()),
        role: member.role.map(|role| match role {
            Role::Primary => "Primary",
            Role::Replica => "Replica",
        }),
        version: contact.and_then(|c| c.version.as_ref()).map(ToString::to_string),
        contact: match member.contact {
            Contact::Answering => "Answering",
            Contact::Troubled => "Troubled",
            Contact::Blind => "Blind",
            Contact::Kept => "Kept",
            Contact::Down => "Down",
        },
        failure: member.failure.map(ProbeFailure::as_str),
        failure_message: contact.and_then(|c| c.failure.as_ref()).map(ToString::to_string),
        answered_seconds_ago: member.answered.map(|at| ago(view.report.at, at)),
        staleness_seconds: member.upper.map(|upper| Interval {
            lower: member.lower.map(|lower| seconds(down_to(lower, STEP))),
            upper: seconds(up_to(upper, STEP)),
        }),
        position: member.position.as_ref().map(ToString::to_string),
        behind_bytes: member.behind_bytes,
        unapplied_bytes: member.unapplied_bytes,
        replay: member.replay.map(|replay| match replay {
            Replay::Running => "Running",
            Replay::PauseRequested => "PauseRequested",
            Replay::Paused => "Paused",
        }),
        phase: member.phase.map(Phase::as_str),
        catches_up_in_seconds: member.catches_up_in.map(seconds),
    }
}

fn service(at: Moment, service: &ServiceReport) -> Service {
    Service {
        name: service.name.to_string(),
        state: service.state.as_str(),
        fallback: service.state.fallback().map(crate::policy::settings::Fallback::as_str),
        since_seconds_ago: ago(at, service.since),
        max_staleness_seconds: seconds(service.max_staleness),
        evict_above_seconds: seconds(service.evict_above),
        admit_within_seconds: seconds(service.admit_within),
        min_endpoints: service.min_endpoints,
        endpoints: service.endpoints.iter().map(ToString::to_string).collect(),
        changes: service.number,
        members: service.seats.iter().map(|s| seat(at, s)).collect(),
    }
}

fn seat(at: Moment, seat: &SeatReport) -> Seat {
    Seat {
        name: seat.member.to_string(),
        state: seat.state.as_str(),
        reason: seat.reason.as_str(),
        message: why(seat.cause),
        in_service: seat.listed,
        since_seconds_ago: ago(at, seat.since),
    }
}

fn ago(now: Moment, then: Moment) -> f64 {
    seconds(now.since(then))
}

/// The step of what is shown of a bound: more would be noise, and less than its truth is not shown.
const STEP: Duration = Duration::from_millis(1);

/// To the millisecond.
fn seconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 1000.0).round() / 1000.0
}
