//! Conditions: what is true of a pool, since when, and why.
//!
//! A condition's time is that of its last change of *status*; a new reason or message leaves it alone, and an equal
//! condition changes nothing, so that a quiet pool costs no write. Their meaning is the controller's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Every condition a pool has, in the order of the documentation. All are present from the first status on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConditionType {
    /// The spec is accepted and what is published follows it. A runtime matter, such as every replica lagging, leaves
    /// it true, so that waiting for a roll-out does not wait for a database.
    Ready,
    /// A new generation is being put into force.
    Reconciling,
    /// Something that only a person can repair: the message says what.
    Stalled,
    /// Exactly one member is the primary.
    PrimaryResolved,
    /// The primary's position is read often enough to judge by.
    MeasurementHealthy,
    /// The slices hold what was decided.
    EndpointsPublished,
    /// Some service lives by its fallback.
    FallbackActive,
    /// A person froze what is published.
    Paused,
}

impl ConditionType {
    /// Every type, in the order of the documentation.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Reconciling,
        Self::Stalled,
        Self::PrimaryResolved,
        Self::MeasurementHealthy,
        Self::EndpointsPublished,
        Self::FallbackActive,
        Self::Paused,
    ];

    /// The word in the resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Reconciling => "Reconciling",
            Self::Stalled => "Stalled",
            Self::PrimaryResolved => "PrimaryResolved",
            Self::MeasurementHealthy => "MeasurementHealthy",
            Self::EndpointsPublished => "EndpointsPublished",
            Self::FallbackActive => "FallbackActive",
            Self::Paused => "Paused",
        }
    }
}

/// What a condition says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known yet, or no longer.
    Unknown,
}

impl Truth {
    /// The word in the resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Longest message that the schema admits; [`merge`] cuts longer ones.
pub const MAX_MESSAGE: usize = 4096;

/// A condition as it is seen now, before it is merged with what was said earlier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Which condition.
    pub type_: ConditionType,
    /// Whether it holds.
    pub status: Truth,
    /// Why, as one CamelCase word of a closed set.
    pub reason: &'static str,
    /// Why, as a full sentence for people, with figures as of the transition.
    pub message: String,
    /// The generation of the spec that was looked at.
    pub generation: i64,
}

/// Puts `finding` in its place in `conditions`, and says whether anything changed. The time stays unless the status
/// differs; conditions that we do not know stay where they are.
pub fn merge(conditions: &mut Vec<Condition>, finding: &Finding, now: Timestamp) -> bool {
    let place = conditions.iter().position(|c| c.type_ == finding.type_.as_str());
    let old = place.map(|i| &conditions[i]);
    let since = match old {
        Some(old) if old.status == finding.status.as_str() => old.last_transition_time.clone(),
        Some(_) | None => Time(now),
    };
    let new = Condition {
        type_: finding.type_.as_str().into(),
        status: finding.status.as_str().into(),
        reason: finding.reason.into(),
        message: cut(&finding.message).into(),
        observed_generation: Some(finding.generation),
        last_transition_time: since,
    };
    match place {
        Some(i) if conditions[i] == new => return false,
        Some(i) => conditions[i] = new,
        None => conditions.push(new),
    }
    true
}

/// The longest start of `message` that the schema admits, cut between characters.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(MAX_MESSAGE);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ready(status: Truth, message: &str) -> Finding {
        Finding {
            type_: ConditionType::Ready,
            status,
            reason: "Published",
            message: message.into(),
            generation: 1,
        }
    }

    #[test]
    fn the_first_one_is_added_with_its_time() {
        let mut conditions = Vec::new();
        assert!(merge(&mut conditions, &ready(Truth::True, "all well"), at(10)));
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].last_transition_time, Time(at(10)));
        assert_eq!(conditions[0].observed_generation, Some(1));
    }

    #[test]
    fn an_equal_one_changes_nothing() {
        let mut conditions = Vec::new();
        merge(&mut conditions, &ready(Truth::True, "all well"), at(10));
        let before = conditions.clone();
        assert!(!merge(&mut conditions, &ready(Truth::True, "all well"), at(20)));
        assert_eq!(conditions, before);
    }

    #[test]
    fn a_new_message_keeps_the_time_and_a_new_status_takes_a_new_one() {
        let mut conditions = Vec::new();
        merge(&mut conditions, &ready(Truth::True, "all well"), at(10));
        assert!(merge(&mut conditions, &ready(Truth::True, "still well"), at(20)));
        assert_eq!(conditions[0].last_transition_time, Time(at(10)));
        assert!(merge(&mut conditions, &ready(Truth::False, "no longer"), at(30)));
        assert_eq!(conditions[0].last_transition_time, Time(at(30)));
    }

    #[test]
    fn others_are_left_alone_and_the_order_is_kept() {
        let mut conditions = Vec::new();
        merge(&mut conditions, &ready(Truth::True, "all well"), at(10));
        let mut foreign = conditions[0].clone();
        foreign.type_ = "example.com/Checked".into();
        conditions.insert(0, foreign.clone());
        merge(&mut conditions, &ready(Truth::Unknown, "restarted"), at(20));
        assert_eq!(conditions[0], foreign);
        assert_eq!(conditions[1].status, "Unknown");
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        let mut conditions = Vec::new();
        let long = format!("{}é", "x".repeat(MAX_MESSAGE - 1));
        merge(&mut conditions, &ready(Truth::True, &long), at(10));
        assert_eq!(conditions[0].message.len(), MAX_MESSAGE - 1);
        assert!(!merge(&mut conditions, &ready(Truth::True, &long), at(20)));
    }
}
