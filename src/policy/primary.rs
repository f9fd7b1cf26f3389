//! Which member is the primary.
//!
//! A member *claims* to be primary when its newest answer said so, and the claim is *current* while the member answers.
//!
//! | current claims | incumbent | verdict |
//! | --- | --- | --- |
//! | one, the incumbent | any | it stays |
//! | one, another, on a later timeline (or there is no incumbent) | silent, or gone | it is the primary now |
//! | one, another, on the same or an earlier timeline | silent | unresolved: a fenced primary may have come back |
//! | one, another | answers as a replica | it is the primary now |
//! | two or more | any | unresolved |
//! | none | silent | it stays, and is silent |
//! | none | answers as a replica, or none known | unresolved |
//!
//! With a designation (label or name) the designated member must be the one that claims. Another cluster's server never
//! counts: the cluster is the one that most members last showed.

use std::collections::BTreeMap;

use super::member::{Member, MemberName, Seen};
use super::position::ClusterId;
use super::settings::Detection;

/// The pool's members by name.
pub type Members = BTreeMap<MemberName, Member>;

/// Whether the primary is known, and why not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Primary {
    /// This member.
    Resolved(MemberName),
    /// No member has claimed to be, and not all have been heard.
    NotYet,
    /// Every member that answers is a replica, and none was known as primary before.
    NoneClaims,
    /// More than one member claims to be.
    Several(Vec<MemberName>),
    /// This member claims to be, on a history that is not later than the one of the silent primary.
    NotLater(MemberName),
    /// Nobody is designated.
    NoneDesignated,
    /// More than one member is designated.
    SeveralDesignated(Vec<MemberName>),
    /// This member is designated, and answers as a replica.
    DesignatedIsReplica(MemberName),
    /// This member is designated, and does not answer.
    DesignatedSilent(MemberName),
}

impl Primary {
    /// The primary's name, when it is known.
    pub fn name(&self) -> Option<&MemberName> {
        match self {
            Self::Resolved(name) => Some(name),
            Self::NotYet
            | Self::NoneClaims
            | Self::Several(_)
            | Self::NotLater(_)
            | Self::NoneDesignated
            | Self::SeveralDesignated(_)
            | Self::DesignatedIsReplica(_)
            | Self::DesignatedSilent(_) => None,
        }
    }

    /// The word used as the condition's reason.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Resolved(_) => "Resolved",
            Self::NotYet => "NotYetMeasured",
            Self::NoneClaims => "NoPrimary",
            Self::Several(_) => "SeveralPrimaries",
            Self::NotLater(_) => "NotALaterTimeline",
            Self::NoneDesignated => "NoneDesignated",
            Self::SeveralDesignated(_) => "SeveralDesignated",
            Self::DesignatedIsReplica(_) => "DesignatedIsReplica",
            Self::DesignatedSilent(_) => "DesignatedSilent",
        }
    }
}

/// The cluster that most members last showed; of several with as many members the `known` one, else the one with a
/// claimant. Absent while nobody has answered.
pub fn cluster(members: &Members, known: Option<ClusterId>) -> Option<ClusterId> {
    let seen = || members.values().filter_map(|m| m.seen.as_ref());
    let votes = |id: ClusterId| seen().filter(|s| s.history.cluster == id).count();
    let claimed = |id: ClusterId| {
        members
            .values()
            .any(|m| m.claims_primary() && m.seen.as_ref().is_some_and(|s| s.history.cluster == id))
    };
    seen()
        .map(|s| s.history.cluster)
        .max_by_key(|id| (votes(*id), Some(*id) == known, claimed(*id), std::cmp::Reverse(*id)))
}

/// Who the primary is, given who it was.
pub fn resolve(
    members: &Members,
    detection: &Detection,
    cluster: Option<ClusterId>,
    incumbent: Option<&MemberName>,
) -> Primary {
    let Some(cluster) = cluster else {
        return Primary::NotYet;
    };
    let current: Vec<&Member> = members
        .values()
        .filter(|m| m.claims_primary() && m.answers() && belongs(m, cluster))
        .collect();
    if current.len() > 1 {
        return Primary::Several(current.iter().map(|m| m.input.name.clone()).collect());
    }
    let incumbent = incumbent.and_then(|name| members.get(name));
    let claimed = by_claim(members, current.first().copied(), incumbent, cluster);
    match detection {
        Detection::Auto => claimed,
        Detection::Designated => by_designation(members, claimed),
    }
}

fn by_claim(members: &Members, claimant: Option<&Member>, incumbent: Option<&Member>, cluster: ClusterId) -> Primary {
    match (claimant, incumbent) {
        (Some(claimant), Some(incumbent)) if claimant.input.name != incumbent.input.name => {
            let later = match (&claimant.seen, &incumbent.seen) {
                (Some(new), Some(old)) => replaces(new, old),
                (_, None) | (None, _) => true,
            };
            let name = claimant.input.name.clone();
            if later {
                Primary::Resolved(name)
            } else {
                Primary::NotLater(name)
            }
        }
        (Some(claimant), _) => Primary::Resolved(claimant.input.name.clone()),
        (None, Some(incumbent)) if incumbent.claims_primary() && belongs(incumbent, cluster) => {
            Primary::Resolved(incumbent.input.name.clone())
        }
        // Somebody who has not been heard yet may be it.
        (None, None) if members.values().any(|m| !m.heard()) => Primary::NotYet,
        (None, _) => Primary::NoneClaims,
    }
}

fn belongs(member: &Member, cluster: ClusterId) -> bool {
    member.seen.as_ref().is_some_and(|s| s.history.cluster == cluster)
}

/// Whether a claim replaces what the incumbent last said: the incumbent says itself that it is a replica now, or the
/// claim is on a later history.
fn replaces(claim: &Seen, incumbent: &Seen) -> bool {
    incumbent.role == super::sighting::Role::Replica
        || claim.history.cluster != incumbent.history.cluster
        || claim.history.timeline > incumbent.history.timeline
}

fn by_designation(members: &Members, claimed: Primary) -> Primary {
    let designated: Vec<&Member> = members.values().filter(|m| m.input.designated).collect();
    let [only] = designated.as_slice() else {
        let names: Vec<MemberName> = designated.iter().map(|m| m.input.name.clone()).collect();
        return if names.is_empty() {
            Primary::NoneDesignated
        } else {
            Primary::SeveralDesignated(names)
        };
    };
    let name = &only.input.name;
    match claimed {
        Primary::Resolved(claimant) if claimant == *name => Primary::Resolved(claimant),
        Primary::NotLater(other) if other != *name => Primary::NotLater(other),
        // An operator's word for a member outweighs a silent predecessor on an equal history.
        Primary::NotLater(claimant) => Primary::Resolved(claimant),
        _ if only.answers() => Primary::DesignatedIsReplica(name.clone()),
        _ => Primary::DesignatedSilent(name.clone()),
    }
}
