//! The status of a pool. Pure: a situation and what was said before in, what is to be said out.
//!
//! Moments of transitions are kept from what was said before, because only their order matters to us and only people read
//! them. So an equal situation gives an equal status, and nothing is written.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{Timestamp, Unit};

use super::findings::{Situation, findings};
use crate::api::condition::{ConditionType, merge};
use crate::api::duration::DurationString;
use crate::api::v1alpha1::{MemberStatus, PrimaryStatus, ReplicaPoolStatus, ServiceStatus};
use crate::policy::reason::Reason;
use crate::policy::report::{MemberReport, Report, SeatReport, ServiceReport};
use crate::policy::sighting::Role;
use crate::policy::state::{MemberState, ServiceState};

/// The status that `situation` deserves at `now`, where `before` is what was said last.
pub fn status(situation: &Situation, before: &ReplicaPoolStatus, now: Timestamp) -> ReplicaPoolStatus {
    let now = Time(now.round(Unit::Second).unwrap_or(now));
    let mut status = ReplicaPoolStatus {
        observed_generation: Some(situation.generation),
        conditions: before.conditions.clone(),
        ..ReplicaPoolStatus::default()
    };
    for finding in findings(situation) {
        merge(&mut status.conditions, &finding, now.0);
    }
    status.staleness = situation.spec.as_ref().map(|spec| {
        let mut limits: Vec<Duration> = spec.settings.services.iter().map(|s| s.max_staleness).collect();
        limits.sort();
        limits.dedup();
        let shown: Vec<String> = limits
            .into_iter()
            .map(|l| DurationString::from(l).to_string())
            .collect();
        shown.join(",")
    });
    if let Some(view) = &situation.view {
        let report = &view.report;
        status.primary = report.primary.name().map(|name| primary(situation, before, name, &now));
        status.services = report.services.iter().map(|s| service(s, before, &now)).collect();
        if let Some(strictest) = strictest(report) {
            status.summary = Some(summary(strictest));
            status.members = report
                .members
                .iter()
                .map(|m| member(situation, m, strictest, before, &now))
                .collect();
        }
        let fallback = by_limit(report).into_iter().find_map(|s| s.state.fallback());
        status.fallback = Some(fallback.map_or("-", crate::policy::settings::Fallback::as_str).into());
    }
    status.reason = Some(headline(&status, situation));
    status
}

fn by_limit(report: &Report) -> Vec<&ServiceReport> {
    let mut services: Vec<&ServiceReport> = report.services.iter().collect();
    services.sort_by_key(|s| s.max_staleness);
    services
}

fn strictest(report: &Report) -> Option<&ServiceReport> {
    by_limit(report).into_iter().next()
}

/// Replicas that are in by freshness, of all replicas.
fn counts(service: &ServiceReport) -> (usize, usize) {
    let replica = |s: &&SeatReport| !(s.state == MemberState::Excluded && s.cause == Reason::RoleChanged);
    let fresh = service
        .seats
        .iter()
        .filter(|s| s.listed && s.state == MemberState::Serving)
        .count();
    (fresh, service.seats.iter().filter(replica).count())
}

fn summary(service: &ServiceReport) -> String {
    let (fresh, total) = counts(service);
    format!("{fresh}/{total}")
}

fn primary(situation: &Situation, before: &ReplicaPoolStatus, name: &str, now: &Time) -> PrimaryStatus {
    let address = situation.addresses.get(name).cloned().unwrap_or_default();
    let same = before.primary.as_ref().filter(|p| p.name == name);
    PrimaryStatus {
        name: name.to_owned(),
        address,
        since: same.and_then(|p| p.since.clone()).or_else(|| Some(now.clone())),
    }
}

fn member(
    situation: &Situation,
    member: &MemberReport,
    service: &ServiceReport,
    before: &ReplicaPoolStatus,
    now: &Time,
) -> MemberStatus {
    let role = match member.role {
        Some(Role::Primary) => "Primary",
        Some(Role::Replica) => "Replica",
        None => "Unknown",
    };
    let view = situation.view.as_ref();
    let is_primary = view.is_some_and(|v| v.report.primary.name() == Some(&member.name));
    let seat = service
        .seats
        .iter()
        .find(|s| s.member == member.name)
        .filter(|_| !is_primary);
    let state = seat.map(|s| s.state.as_str().to_owned());
    let reason = seat.map(|s| s.reason.as_str().to_owned());
    let known = before.members.iter().find(|m| *m.name == *member.name);
    let same = known.filter(|m| m.state == state && m.role == role);
    MemberStatus {
        name: member.name.to_string(),
        address: situation.addresses.get(&member.name).cloned(),
        role: role.into(),
        state,
        reason,
        since: same.and_then(|m| m.since.clone()).or_else(|| Some(now.clone())),
    }
}

fn service(service: &ServiceReport, before: &ReplicaPoolStatus, now: &Time) -> ServiceStatus {
    let state = service.state.as_str().to_owned();
    let reason = service.state.fallback().map(|policy| policy.as_str().to_owned());
    let known = before.services.iter().find(|s| *s.name == *service.name);
    let same = known.filter(|s| s.state == state && s.reason == reason);
    let (ready, total) = counts(service);
    ServiceStatus {
        name: service.name.to_string(),
        state,
        reason,
        endpoints: service.endpoints.iter().map(ToString::to_string).collect(),
        ready: i32::try_from(ready).unwrap_or(i32::MAX),
        total: i32::try_from(total).unwrap_or(i32::MAX),
        since: same.and_then(|s| s.since.clone()).or_else(|| Some(now.clone())),
    }
}

/// The one word that people see first.
fn headline(status: &ReplicaPoolStatus, situation: &Situation) -> String {
    let condition = |type_: ConditionType| status.conditions.iter().find(|c| c.type_ == type_.as_str());
    if let Some(stalled) = condition(ConditionType::Stalled).filter(|c| c.status == "True") {
        return stalled.reason.clone();
    }
    if let Some(ready) = condition(ConditionType::Ready).filter(|c| c.status != "True") {
        return ready.reason.clone();
    }
    let services = situation.view.iter().flat_map(|v| &v.report.services);
    let worst = services.map(|s| s.state).min();
    match worst {
        Some(ServiceState::Frozen) => match condition(ConditionType::PrimaryResolved).filter(|c| c.status == "False") {
            Some(unresolved) => unresolved.reason.clone(),
            None => ServiceState::Frozen.as_str().into(),
        },
        Some(state) => state.as_str().into(),
        None => "Published".into(),
    }
}
