//! What the conditions of a pool say. Pure: a situation in, findings out.
//!
//! Ready and Stalled speak of configuration, so that a roll-out is not held up by a database that lags: Ready is true when
//! the spec is accepted and what is published follows it; Stalled says what only a person can repair. The others speak of
//! what runs.

use std::collections::BTreeMap;

use crate::api::condition::{ConditionType, Finding, Truth};
use crate::policy::facts::Contact;
use crate::policy::member::MemberName;
use crate::policy::primary::Primary;
use crate::policy::report::{MemberReport, Report};
use crate::policy::sighting::ProbeFailure;
use crate::policy::state::ServiceState;
use crate::pool::View;
use crate::publish::slices::build::Refused;
use crate::spec::resolve::{Problem, ProblemKind};
use crate::spec::{PoolSpec, SpecError};
use crate::telemetry::events::who_serves;
use crate::telemetry::words::why_unresolved;

/// Everything that a status is made of.
#[derive(Clone, Default, Debug)]
pub struct Situation {
    /// The generation that was looked at.
    pub generation: i64,
    /// What is wrong with the spec.
    pub mistakes: Vec<SpecError>,
    /// The spec in force: the newest valid one.
    pub spec: Option<PoolSpec>,
    /// What is wrong with what the spec refers to.
    pub problems: Vec<Problem>,
    /// What the loop knows; absent while none runs.
    pub view: Option<View>,
    /// Whether the loop follows this generation.
    pub settled: bool,
    /// Each member's address and port.
    pub addresses: BTreeMap<MemberName, String>,
    /// Addresses that were left out, by service.
    pub refused: Vec<(String, Refused)>,
    /// Slices of others, by service.
    pub foreign: Vec<(String, Vec<String>)>,
    /// What went wrong with the last write.
    pub failure: Option<String>,
}

/// What every condition says, in the order of the documentation.
pub fn findings(situation: &Situation) -> Vec<Finding> {
    ConditionType::ALL
        .into_iter()
        .map(|type_| {
            let (status, reason, message) = match type_ {
                ConditionType::Ready => ready(situation),
                ConditionType::Reconciling => reconciling(situation),
                ConditionType::Stalled => stalled(situation),
                ConditionType::PrimaryResolved => primary_resolved(situation),
                ConditionType::MeasurementHealthy => measurement_healthy(situation),
                ConditionType::EndpointsPublished => endpoints_published(situation),
                ConditionType::FallbackActive => fallback_active(situation),
                ConditionType::Paused => paused(situation),
            };
            Finding {
                type_,
                status,
                reason,
                message,
                generation: situation.generation,
            }
        })
        .collect()
}

type Said = (Truth, &'static str, String);

fn said(status: Truth, reason: &'static str, message: impl Into<String>) -> Said {
    (status, reason, message.into())
}

fn ready(s: &Situation) -> Said {
    if let Some((reason, message)) = needs_a_person(s) {
        return said(Truth::False, reason, message);
    }
    if let Some(problem) = s.problems.first() {
        return said(Truth::False, problem.kind.as_str(), problem.to_string());
    }
    if let Some(failure) = &s.failure {
        return said(Truth::False, "WriteFailed", failure);
    }
    match &s.view {
        None => said(Truth::Unknown, "Initializing", "nothing is measured yet"),
        Some(_) if !s.settled => said(Truth::Unknown, "Initializing", "the new spec is being put into force"),
        Some(view) if is_cold(&view.report) => said(Truth::Unknown, "Initializing", "the first round is under way"),
        Some(_) => said(
            Truth::True,
            "Published",
            "the spec is in force, and what is published follows it",
        ),
    }
}

fn is_cold(report: &Report) -> bool {
    report.services.iter().any(|s| s.state == ServiceState::ColdStart)
}

fn reconciling(s: &Situation) -> Said {
    let begun = s.mistakes.is_empty() && s.view.as_ref().is_none_or(|v| !s.settled || is_cold(&v.report));
    if begun && needs_a_person(s).is_none() {
        said(Truth::True, "InProgress", "the spec is being put into force")
    } else {
        said(Truth::False, "Done", "nothing is under way")
    }
}

fn stalled(s: &Situation) -> Said {
    match needs_a_person(s) {
        Some((reason, message)) => said(Truth::True, reason, message),
        None => said(Truth::False, "NothingToRepair", "nothing needs a person"),
    }
}

/// What only a person can repair.
fn needs_a_person(s: &Situation) -> Option<(&'static str, String)> {
    if !s.mistakes.is_empty() {
        return Some(("SpecInvalid", join(s.mistakes.iter().map(ToString::to_string))));
    }
    let lasting: Vec<&Problem> = s.problems.iter().filter(|p| p.kind != ProblemKind::NoMembers).collect();
    if let Some(first) = lasting.first() {
        return Some((first.kind.as_str(), join(lasting.iter().map(ToString::to_string))));
    }
    let view = s.view.as_ref()?;
    let members = &view.report.members;
    let refuses = |m: &MemberReport| m.failure.filter(|_| m.role.is_none()).filter(|f| needs_repair(*f));
    let first = refuses(members.first()?)?;
    let all = members.iter().all(|m| refuses(m).is_some());
    all.then(|| (first.as_str(), troubles(s, view)))
}

/// Failures that time does not mend.
fn needs_repair(failure: ProbeFailure) -> bool {
    match failure {
        ProbeFailure::AuthFailed
        | ProbeFailure::PermissionDenied
        | ProbeFailure::DatabaseNotFound
        | ProbeFailure::TlsFailed
        | ProbeFailure::NameNotResolved => true,
        ProbeFailure::Timeout
        | ProbeFailure::Unreachable
        | ProbeFailure::Refused
        | ProbeFailure::NotAccepting
        | ProbeFailure::TooManyConnections
        | ProbeFailure::ConnectionLost
        | ProbeFailure::Interrupted
        | ProbeFailure::Protocol
        | ProbeFailure::QueryFailed => false,
    }
}

fn primary_resolved(s: &Situation) -> Said {
    let Some(view) = &s.view else {
        return said(Truth::Unknown, "NotYetMeasured", "nothing is measured yet");
    };
    let primary = &view.report.primary;
    match primary {
        Primary::Resolved(name) if view.report.primary_silent => {
            let alive = if view.report.moves_unseen {
                "; replicas still receive writes, so only we have lost it"
            } else {
                ""
            };
            said(
                Truth::True,
                "PrimarySilent",
                format!("{name} is the primary, and gives no sign{alive}"),
            )
        }
        Primary::Resolved(name) => said(Truth::True, "Resolved", format!("{name} is the primary")),
        Primary::NotYet => said(Truth::Unknown, primary.as_str(), why_unresolved(primary)),
        Primary::NoneClaims
        | Primary::Several(_)
        | Primary::NotLater(_)
        | Primary::NoneDesignated
        | Primary::SeveralDesignated(_)
        | Primary::DesignatedIsReplica(_)
        | Primary::DesignatedSilent(_) => said(Truth::False, primary.as_str(), why_unresolved(primary)),
    }
}

fn measurement_healthy(s: &Situation) -> Said {
    let Some(view) = &s.view else {
        let why = s
            .problems
            .first()
            .map_or("nothing is measured yet".into(), ToString::to_string);
        return said(Truth::Unknown, "NotYetMeasured", why);
    };
    let report = &view.report;
    // Which cluster is the pool's is not known before everyone was heard.
    if let Some(stray) = report
        .members
        .iter()
        .find(|m| is_foreign(report, m) && !is_cold(report))
    {
        return said(Truth::False, "ForeignServer", foreign_server(s, report, stray));
    }
    if let Some(first) = report.members.iter().find(|m| is_troubled(m)) {
        let reason = first.failure.map_or("Timeout", ProbeFailure::as_str);
        return said(Truth::False, reason, troubles(s, view));
    }
    if report.primary_silent {
        return said(Truth::False, "PrimarySilent", "the primary gives no sign");
    }
    if let Some(why) = &view.nudge_failure {
        return said(Truth::False, "FlushDelayed", why.as_ref());
    }
    said(
        Truth::True,
        "AllAnswer",
        format!("all {} members answer", report.members.len()),
    )
}

fn is_foreign(report: &Report, member: &MemberReport) -> bool {
    report
        .cluster
        .zip(member.cluster)
        .is_some_and(|(ours, its)| ours != its)
}

fn foreign_server(s: &Situation, report: &Report, member: &MemberReport) -> String {
    let shown = |cluster: Option<_>| {
        cluster.map_or("another".to_string(), |c: crate::policy::position::ClusterId| {
            c.to_string()
        })
    };
    format!(
        "{} belongs to database cluster {}, and the pool to {}: remove it from spec.members, or rebuild it from the pool's primary",
        place(s, &member.name),
        shown(member.cluster),
        shown(report.cluster),
    )
}

/// Whether a member gives no news, and has not for a while.
fn is_troubled(member: &MemberReport) -> bool {
    let never = member.role.is_none() && member.failure.is_some();
    never || member.contact != Contact::Answering
}

/// What is the matter with the first few members that give no news, and what to do about it.
fn troubles(s: &Situation, view: &View) -> String {
    let troubled: Vec<&MemberReport> = view.report.members.iter().filter(|m| is_troubled(m)).collect();
    let told = troubled.iter().take(3).map(|m| {
        let failure = m.failure.unwrap_or(ProbeFailure::Timeout);
        let text = view
            .contacts
            .get(&m.name)
            .and_then(|c| c.failure.as_deref())
            .unwrap_or("no answer");
        let remedy = remedy(s, failure);
        format!("{}: {text}; {remedy}", place(s, &m.name))
    });
    let all = view.report.members.len();
    format!("{} of {all} members give no position: {}", troubled.len(), join(told))
}

fn remedy(s: &Situation, failure: ProbeFailure) -> String {
    let secret = s
        .spec
        .as_ref()
        .map_or("", |spec| spec.connection.credentials.secret.as_str());
    match failure {
        ProbeFailure::AuthFailed => {
            format!("put the account's name and present password into Secret {secret}, which spec.credentials names")
        }
        ProbeFailure::PermissionDenied => "grant it to the account in spec.credentials".into(),
        ProbeFailure::DatabaseNotFound => "name one that exists in spec.database".into(),
        ProbeFailure::TlsFailed => {
            "see spec.tls: mode, caSecretName and serverName must suit the server's certificate".into()
        }
        ProbeFailure::NameNotResolved => "see the host in spec.members.hosts".into(),
        ProbeFailure::TooManyConnections => "raise max_connections, or close idle connections".into(),
        ProbeFailure::NotAccepting => "wait until the server is up, or see its log".into(),
        ProbeFailure::Refused => "see that the server runs and its port is the one in spec.members".into(),
        ProbeFailure::Timeout | ProbeFailure::Unreachable => {
            "see that network policies let this process reach it, and that it runs".into()
        }
        ProbeFailure::Interrupted => {
            "the standby ends what its applier runs into: see the long queries and locks that its log names, or raise max_standby_streaming_delay".into()
        }
        ProbeFailure::ConnectionLost | ProbeFailure::Protocol | ProbeFailure::QueryFailed => {
            "see the server's log".into()
        }
    }
}

fn place(s: &Situation, member: &MemberName) -> String {
    match s.addresses.get(member) {
        Some(address) => format!("{member} ({address})"),
        None => member.to_string(),
    }
}

fn endpoints_published(s: &Situation) -> Said {
    if let Some((service, slices)) = s.foreign.first() {
        let message = format!(
            "Service {service} has endpoints of others too, in {}: clients reach them unmeasured; remove those EndpointSlices, or what writes them",
            slices.join(", ")
        );
        return said(Truth::False, "ForeignEndpointSlices", message);
    }
    if let Some((service, refused)) = s.refused.first() {
        let address = refused.address.map_or("no address".to_string(), |a| a.to_string());
        let message = format!(
            "{} ({address}) cannot be published in {service}: {}",
            refused.member, refused.why
        );
        return said(Truth::False, "AddressNotPublishable", message);
    }
    if let Some(failure) = &s.failure {
        return said(Truth::False, "WriteFailed", failure);
    }
    if let Some(problem) = s.problems.iter().find(|p| p.object.starts_with("Service ")) {
        return said(Truth::False, problem.kind.as_str(), problem.to_string());
    }
    match &s.view {
        None => said(
            Truth::Unknown,
            "NotYetDecided",
            "nothing is decided yet; what is published stays",
        ),
        Some(view) if is_cold(&view.report) => said(
            Truth::Unknown,
            "ColdStart",
            "the first round is under way; what is published stays",
        ),
        Some(view) => {
            let lists = view.report.services.iter().map(|service| {
                let names: Vec<&str> = service.endpoints.iter().map(AsRef::as_ref).collect();
                format!(
                    "{} lists {}",
                    service.name,
                    if names.is_empty() {
                        "nobody".into()
                    } else {
                        names.join(", ")
                    }
                )
            });
            said(Truth::True, "InSync", join(lists))
        }
    }
}

fn fallback_active(s: &Situation) -> Said {
    let services = s.view.iter().flat_map(|v| &v.report.services);
    let active: Vec<_> = services
        .filter_map(|service| match service.state {
            ServiceState::Fallback(policy) => {
                Some((policy.as_str(), format!("{}: {}", service.name, who_serves(policy))))
            }
            ServiceState::Exhausted => Some(("Exhausted", format!("{}: no fallback gives an endpoint", service.name))),
            _ => None,
        })
        .collect();
    match active.first() {
        Some((reason, _)) => said(Truth::True, reason, join(active.iter().map(|(_, told)| told.clone()))),
        None => said(Truth::False, "NotNeeded", "enough replicas are fresh"),
    }
}

fn paused(s: &Situation) -> Said {
    if s.spec.as_ref().is_some_and(|spec| spec.settings.paused) {
        said(
            Truth::True,
            "Paused",
            "spec.paused is true: what is published stays as it is",
        )
    } else {
        said(Truth::False, "NotPaused", "decisions are carried out")
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("; ")
}
