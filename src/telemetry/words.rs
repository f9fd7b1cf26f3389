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

/// An upper bound for people: never shown shorter than it is, since it is a promise.
pub fn at_most(span: Duration) -> String {
    seconds(up_to(span, shown_step(span)))
}

/// A lower bound for people: never shown longer than it is.
pub fn at_least(span: Duration) -> String {
    seconds(down_to(span, shown_step(span)))
}

/// The last digit that [`seconds`] shows.
fn shown_step(span: Duration) -> Duration {
    Duration::from_millis(if span < Duration::from_secs(10) { 10 } else { 1000 })
}

/// The smallest multiple of `step` that is not below `span`.
pub fn up_to(span: Duration, step: Duration) -> Duration {
    let below = down_to(span, step);
    if below == span {
        span
    } else {
        below.saturating_add(step)
    }
}

/// The largest multiple of `step` that is not above `span`.
pub fn down_to(span: Duration, step: Duration) -> Duration {
    let beyond = span.as_nanos().checked_rem(step.as_nanos()).unwrap_or(0);
    span.saturating_sub(Duration::from_nanos(u64::try_from(beyond).unwrap_or(u64::MAX)))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bound_is_shown_on_its_own_side() {
        let span = Duration::from_nanos;
        for (nanos, most, least) in [
            (0, "0.00 s", "0.00 s"),
            (1, "0.01 s", "0.00 s"),
            (2_000_000_000, "2.00 s", "2.00 s"),
            (2_000_000_001, "2.01 s", "2.00 s"),
            (9_999_000_000, "10 s", "9.99 s"),
            (10_000_000_001, "11 s", "10 s"),
        ] {
            assert_eq!(
                (at_most(span(nanos)).as_str(), at_least(span(nanos)).as_str()),
                (most, least),
                "{nanos}"
            );
        }
        assert_eq!(at_least(Duration::MAX), seconds(Duration::from_secs(u64::MAX)));
        assert!(!at_most(Duration::MAX).is_empty());
    }

    proptest! {
        #[test]
        fn steps_enclose_what_they_round(nanos in 0_u64.., step in 1_u64..10_000_000_000) {
            let (span, step) = (Duration::from_nanos(nanos), Duration::from_nanos(step));
            let (down, up) = (down_to(span, step), up_to(span, step));
            prop_assert!(down <= span && span <= up && up.saturating_sub(down) <= step);
        }
    }
}
