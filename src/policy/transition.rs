//! What changed in a step, for logs, Events, metrics and records. Each carries the figures that decided it.

use std::time::Duration;

use super::facts::Contact;
use super::member::MemberName;
use super::moment::Moment;
use super::primary::Primary;
use super::reason::Reason;
use super::settings::ServiceName;
use super::state::{MemberState, ServiceState};

/// The list of one service, as decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The service.
    pub service: ServiceName,
    /// Who is in, by name.
    pub endpoints: Vec<MemberName>,
    /// Rises by one with each change of `endpoints`.
    pub number: u64,
    /// When `endpoints` last changed.
    pub decided: Moment,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transition {
    /// The primary was found, lost, or is another one.
    Primary {
        /// Before.
        from: Primary,
        /// Now.
        to: Primary,
    },
    /// A member's state in a service changed, or it was taken into or out of a list by floor or fallback.
    Member {
        /// The service.
        service: ServiceName,
        /// The member.
        member: MemberName,
        /// Before.
        from: MemberState,
        /// Now.
        to: MemberState,
        /// Why.
        reason: Reason,
        /// Its bound at that moment; absent without a proof.
        bound: Option<Duration>,
        /// The limit that it was held against: to leave or to return, whichever it did.
        limit: Duration,
    },
    /// Contact with a member was lost or found, or is lost for another reason.
    Contact {
        /// The member.
        member: MemberName,
        /// Before.
        from: Contact,
        /// Now.
        to: Contact,
        /// Why it gives no news; absent when it does.
        reason: Option<Reason>,
    },
    /// A service is decided in another way.
    Service {
        /// The service.
        service: ServiceName,
        /// Before.
        from: ServiceState,
        /// Now.
        to: ServiceState,
    },
    /// A list changed.
    List {
        /// Who was in before.
        before: Vec<MemberName>,
        /// The new list.
        decision: Decision,
    },
}
