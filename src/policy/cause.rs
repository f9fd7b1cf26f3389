//! Why a replica is behind, from what was last seen of it.
//!
//! | seen | cause |
//! | --- | --- |
//! | its port refuses twice | Down |
//! | no answer for some time | Unreachable, AuthFailed, PermissionDenied, TlsFailed, ProbeFailed |
//! | never any answer | NeverMeasured |
//! | on a history before the primary's, or none that is related | EpochChanged |
//! | replay paused; or more received than applied, and nothing applied for a renewal window | Stalled |
//! | applied all that it received | DeliveryLag |
//! | most of the delay is between receiving and applying | ApplyLag, else DeliveryLag |

use super::facts::Fact;
use super::member::{Member, Seen};
use super::moment::Moment;
use super::position::Position;
use super::reason::Reason;
use super::settings::PoolSettings;
use super::sighting::Replay;
use super::source::Source;
use super::timeline::Timeline;

/// The cause, as far as it is known at `now`.
pub fn of(member: &Member, fact: &Fact, source: &Source, settings: &PoolSettings, now: Moment) -> Reason {
    if fact.is_down() {
        return Reason::Down;
    }
    if let (Some(trouble), true) = (fact.trouble, quiet(member, fact, settings, now)) {
        return trouble;
    }
    let Some(seen) = &member.seen else {
        return fact.trouble.unwrap_or(Reason::NeverMeasured);
    };
    let Some(timeline) = source.timeline() else {
        return Reason::LeaseExpired;
    };
    let Some(position) = &seen.position else {
        return Reason::NeverMeasured;
    };
    if timeline.history() != seen.history {
        return Reason::EpochChanged;
    }
    if seen.replay == Some(Replay::Paused) {
        return Reason::Stalled;
    }
    of_replica(member, seen, position, timeline, settings, now)
}

fn of_replica(
    member: &Member,
    seen: &Seen,
    position: &Position,
    timeline: &Timeline,
    settings: &PoolSettings,
    now: Moment,
) -> Reason {
    let Some(received) = seen.received.as_ref().filter(|received| !position.contains(received)) else {
        return Reason::DeliveryLag;
    };
    if member.motion.still_for(now) >= settings.renewal() {
        return Reason::Stalled;
    }
    let sent = |p: &Position| timeline.floor(p).and_then(|s| s.sent).unwrap_or_default();
    let newest = timeline.newest().and_then(|s| s.sent).unwrap_or_default();
    let (received, applied) = (sent(received), sent(position));
    if received.since(applied) >= newest.since(received) {
        Reason::ApplyLag
    } else {
        Reason::DeliveryLag
    }
}

/// Whether its silence is the cause, and not one lost answer.
fn quiet(member: &Member, fact: &Fact, settings: &PoolSettings, now: Moment) -> bool {
    fact.is_blind() || now >= member.quiet_since() + settings.renewal()
}
