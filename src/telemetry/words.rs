//! What people read about causes and figures: one clause each, the same in log, Event, status and HTTP API.

use std::time::Duration;

use crate::policy::member::MemberName;
use crate::policy::primary::Primary;
use crate::policy::reason::Reason;

/// Why the primary is not known, and what to do about it, in one clause.
pub fn why_unresolved(primary: &Primary) -> String {
    match primary {
        Primary::Resolved(name) => format!("{name} is the primary"),
        Primary::NotYet => "no member has answered yet".into(),
        Primary::NoneClaims => {
            "every member that answers is a replica; promote one, or add the primary to the members".into()
        }
        Primary::Several(names) => format!("{} all accept writes; fence all but one", names_of(names)),
        Primary::NotLater(name) => {
            format!(
                "{name} accepts writes on a timeline that is not later than the silent primary's; fence it, or remove the silent one"
            )
        }
        Primary::NoneDesignated => "no member is designated; label one, or name one in primary.host".into(),
        Primary::SeveralDesignated(names) => format!("{} are all designated; leave one", names_of(names)),
        Primary::DesignatedIsReplica(name) => {
            format!("{name} is designated and is in recovery; promote it, or designate another")
        }
        Primary::DesignatedSilent(name) => format!("{name} is designated and does not answer"),
    }
}

/// What a reason means, in one clause.
pub fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::CaughtUp => "it is caught up",
        Reason::LeaseExpired => "its last proof is too old",
        Reason::Down => "its server refuses connections",
        Reason::Stalled => "it receives changes and applies none",
        Reason::DeliveryLag => "changes reach it late",
        Reason::ApplyLag => "it applies late what it has received",
        Reason::Unreachable => "it does not answer",
        Reason::ProbeFailed => "it answers, but not with a position",
        Reason::AuthFailed => "it refuses the account or the password",
        Reason::PermissionDenied => "the account lacks a privilege",
        Reason::TlsFailed => "no TLS session as the pool asks for",
        Reason::RoleChanged => "it is the primary",
        Reason::EpochChanged => "it has not followed the primary's present timeline",
        Reason::ForeignServer => "another database answers at its address",
        Reason::PodNotReady => "its pod is not running or not ready",
        Reason::Terminating => "its pod is being deleted",
        Reason::Manual => "a person took it out",
        Reason::NeverMeasured => "nothing was measured yet",
        Reason::Held => "it is held by the floor or the fallback",
    }
}

/// A span for people: three digits are enough.
pub fn seconds(span: Duration) -> String {
    let s = span.as_secs_f64();
    if s < 10.0 {
        format!("{s:.2} s")
    } else {
        format!("{s:.0} s")
    }
}

pub(super) fn names(names: &[MemberName]) -> String {
    if names.is_empty() {
        "nobody".into()
    } else {
        names_of(names)
    }
}

pub(super) fn names_of(names: &[MemberName]) -> String {
    names.join(", ")
}
