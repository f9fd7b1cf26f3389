//! A pool as a table for people.

use std::time::Duration;

use crate::policy::report::{MemberReport, SeatReport, ServiceReport};
use crate::policy::sighting::Role;
use crate::policy::state::MemberState;
use crate::pool::View;
use crate::telemetry::words::{at_least, at_most, seconds, why, why_unresolved};

/// The pool's members as its first service sees them, a line each, under a line about the service.
pub(super) fn table(view: &View) -> String {
    let Some(service) = view.report.services.first() else {
        return String::new();
    };
    let head = format!(
        "  {:<10} {:<8} {:<11} {:<19} {:<4} NOTE",
        "MEMBER", "ROLE", "STATE", "STALENESS", "IN"
    );
    let mut lines = vec![headline(view, service), head];
    for member in &view.report.members {
        let seat = service.seats.iter().find(|s| s.member == member.name);
        lines.push(format!("  {}", row(member, seat)));
    }
    lines.join("\n") + "\n"
}

/// What a service does, in one line.
pub(super) fn headline(view: &View, service: &ServiceReport) -> String {
    let state = match service.state.fallback() {
        Some(policy) => format!("{} ({})", service.state.as_str(), policy.as_str()),
        None => service.state.as_str().to_owned(),
    };
    let names: Vec<&str> = service.endpoints.iter().map(AsRef::as_ref).collect();
    let list = if names.is_empty() {
        "nobody".to_owned()
    } else {
        names.join(", ")
    };
    let primary = match view.report.primary.name() {
        Some(name) if view.report.primary_silent => format!("primary {name} is silent"),
        Some(name) => format!("primary {name}"),
        None => why_unresolved(&view.report.primary),
    };
    let limit = seconds(service.max_staleness);
    format!("{}: {state}, lists {list}   (limit {limit}, {primary})", service.name)
}

fn row(member: &MemberReport, seat: Option<&SeatReport>) -> String {
    let role = match member.role {
        Some(Role::Primary) => "primary",
        Some(Role::Replica) => "replica",
        None => "unknown",
    };
    let is_primary = member.role == Some(Role::Primary);
    let state = seat.filter(|_| !is_primary).map_or("-", |s| s.state.as_str());
    let listed = match seat.map(|s| s.listed) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    };
    let note = match seat {
        Some(seat) if seat.state == MemberState::Recovering => {
            format!("fresh again, waits out its dwell (was {})", seat.cause.as_str())
        }
        Some(seat) if !is_primary => format!("{}: {}", seat.reason.as_str(), why(seat.cause)),
        _ => String::new(),
    };
    format!(
        "{:<10} {role:<8} {state:<11} {:<19} {listed:<4} {note}",
        member.name,
        staleness(member)
    )
}

/// What is proven, as an interval.
fn staleness(member: &MemberReport) -> String {
    match (member.role, member.upper) {
        (Some(Role::Primary), _) => "-".into(),
        (_, None) => "nothing proven".into(),
        (_, Some(upper)) => {
            let lower = member.lower.unwrap_or(Duration::ZERO);
            format!("{} .. {}", at_least(lower), at_most(upper))
        }
    }
}
