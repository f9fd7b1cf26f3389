//! The troubles, and what is told of each.

use std::sync::Arc;

use super::report;
use crate::api::condition::ConditionType::{
    self, EndpointsPublished, FallbackActive, MeasurementHealthy, Paused, PrimaryResolved, Ready, Reconciling, Stalled,
};
use crate::api::condition::Truth::{self, False, True, Unknown};
use crate::controller::findings::Situation;
use crate::policy::facts::Contact;
use crate::policy::position::ClusterId;
use crate::policy::primary::Primary;
use crate::policy::settings::Fallback;
use crate::policy::sighting::ProbeFailure;
use crate::policy::state::ServiceState;
use crate::publish::slices::build::Refused;
use crate::spec::SpecError;
use crate::spec::resolve::{Problem, ProblemKind};

/// `b` fails like this, and says so.
fn fails(s: &mut Situation, failure: ProbeFailure, contact: Contact) {
    let b = &mut report(s).members[1];
    (b.failure, b.contact) = (Some(failure), contact);
    let said = crate::pool::Contact {
        failure: Some(Arc::from("its own words")),
        ..crate::pool::Contact::default()
    };
    s.view.as_mut().unwrap().contacts.insert("b".into(), said);
}

fn problem(kind: ProblemKind) -> Problem {
    let object = match kind {
        ProblemKind::SecretNotFound => "Secret shop/orders-lagwarden",
        _ => "Service shop/orders-fresh",
    };
    Problem::new(kind, object, "is not as it must be", "mend it")
}

/// What a condition says, and words that its message has.
pub(super) type Expected = (ConditionType, Truth, &'static str, &'static [&'static str]);

/// A change of the calm situation, the word that people see first, and every condition that is not as in calm.
pub(super) struct Trouble {
    pub(super) what: &'static str,
    pub(super) change: fn(&mut Situation),
    pub(super) headline: &'static str,
    pub(super) told: &'static [Expected],
}

/// What is told when all is well.
pub(super) const CALM: [(ConditionType, Truth, &str); 8] = [
    (Ready, True, "Published"),
    (Reconciling, False, "Done"),
    (Stalled, False, "NothingToRepair"),
    (PrimaryResolved, True, "Resolved"),
    (MeasurementHealthy, True, "AllAnswer"),
    (EndpointsPublished, True, "InSync"),
    (FallbackActive, False, "NotNeeded"),
    (Paused, False, "NotPaused"),
];

pub(super) const TROUBLES: &[Trouble] = &[
    Trouble {
        what: "nothing",
        change: |_| {},
        headline: "Normal",
        told: &[],
    },
    Trouble {
        what: "nothing is measured yet",
        change: |s| s.view = None,
        headline: "Initializing",
        told: &[
            (Ready, Unknown, "Initializing", &["nothing is measured yet"]),
            (Reconciling, True, "InProgress", &[]),
            (PrimaryResolved, Unknown, "NotYetMeasured", &[]),
            (MeasurementHealthy, Unknown, "NotYetMeasured", &[]),
            (
                EndpointsPublished,
                Unknown,
                "NotYetDecided",
                &["what is published stays"],
            ),
        ],
    },
    Trouble {
        what: "a cold start",
        change: |s| report(s).services[0].state = ServiceState::ColdStart,
        headline: "Initializing",
        told: &[
            (Ready, Unknown, "Initializing", &["the first round"]),
            (Reconciling, True, "InProgress", &[]),
            (EndpointsPublished, Unknown, "ColdStart", &["what is published stays"]),
        ],
    },
    Trouble {
        what: "a spec that is not in force yet",
        change: |s| s.settled = false,
        headline: "Initializing",
        told: &[
            (Ready, Unknown, "Initializing", &["the new spec"]),
            (Reconciling, True, "InProgress", &[]),
        ],
    },
    Trouble {
        what: "a mistake in the spec",
        change: |s| {
            s.settled = false;
            s.mistakes = vec![SpecError {
                field: "spec.services[0].maxStaleness".into(),
                problem: "0s is too short".into(),
                remedy: "use at least 200ms".into(),
            }];
        },
        headline: "SpecInvalid",
        told: &[
            (
                Ready,
                False,
                "SpecInvalid",
                &["spec.services[0].maxStaleness", "0s", "use at least 200ms"],
            ),
            (Stalled, True, "SpecInvalid", &["spec.services[0].maxStaleness"]),
        ],
    },
    Trouble {
        what: "a Secret that is not there, before anything runs",
        change: |s| {
            s.view = None;
            s.problems = vec![problem(ProblemKind::SecretNotFound)];
        },
        headline: "SecretNotFound",
        told: &[
            (
                Ready,
                False,
                "SecretNotFound",
                &["Secret shop/orders-lagwarden", "mend it"],
            ),
            (Stalled, True, "SecretNotFound", &["mend it"]),
            (PrimaryResolved, Unknown, "NotYetMeasured", &[]),
            (
                MeasurementHealthy,
                Unknown,
                "NotYetMeasured",
                &["Secret shop/orders-lagwarden"],
            ),
            (EndpointsPublished, Unknown, "NotYetDecided", &[]),
        ],
    },
    Trouble {
        what: "a Service with a selector",
        change: |s| s.problems = vec![problem(ProblemKind::ServiceHasSelector)],
        headline: "ServiceHasSelector",
        told: &[
            (Ready, False, "ServiceHasSelector", &["mend it"]),
            (Stalled, True, "ServiceHasSelector", &["mend it"]),
            (EndpointsPublished, False, "ServiceHasSelector", &["mend it"]),
        ],
    },
    Trouble {
        what: "no pod: that mends itself",
        change: |s| {
            s.problems = vec![Problem::new(
                ProblemKind::NoMembers,
                "ReplicaPool shop/orders",
                "has none",
                "look",
            )];
        },
        headline: "NoMembers",
        told: &[(Ready, False, "NoMembers", &["has none", "look"])],
    },
    Trouble {
        what: "a write that failed",
        change: |s| s.failure = Some("apply EndpointSlice x: no answer within 2 s".into()),
        headline: "WriteFailed",
        told: &[
            (Ready, False, "WriteFailed", &["no answer"]),
            (EndpointsPublished, False, "WriteFailed", &["no answer"]),
        ],
    },
    Trouble {
        what: "a slice of somebody else",
        change: |s| s.foreign = vec![("orders-fresh".into(), vec!["by-hand".into()])],
        headline: "Normal",
        told: &[(
            EndpointsPublished,
            False,
            "ForeignEndpointSlices",
            &["by-hand", "remove"],
        )],
    },
    Trouble {
        what: "an address that cannot be published",
        change: |s| {
            s.refused = vec![(
                "orders-fresh".into(),
                Refused {
                    member: "b".into(),
                    address: Some("127.0.0.1".parse().unwrap()),
                    why: "it is loopback",
                },
            )];
        },
        headline: "Normal",
        told: &[(
            EndpointsPublished,
            False,
            "AddressNotPublishable",
            &["b (127.0.0.1)", "loopback"],
        )],
    },
    Trouble {
        what: "one failure between answers",
        change: |s| fails(s, ProbeFailure::Interrupted, Contact::Answering),
        headline: "Normal",
        told: &[],
    },
    Trouble {
        what: "a replica without an answer",
        change: |s| {
            fails(s, ProbeFailure::Timeout, Contact::Blind);
            report(s).services[0].state = ServiceState::Degraded;
            report(s).services[0].endpoints = vec!["a".into()];
        },
        headline: "Degraded",
        told: &[(
            MeasurementHealthy,
            False,
            "Timeout",
            &[
                "1 of 3 members",
                "b (10.0.0.2:5432)",
                "its own words",
                "network policies",
            ],
        )],
    },
    Trouble {
        what: "every member refuses the account, and always has",
        change: |s| {
            for m in &mut report(s).members {
                (m.role, m.failure, m.contact) = (None, Some(ProbeFailure::AuthFailed), Contact::Troubled);
            }
            report(s).primary = Primary::NotYet;
            report(s).services[0].state = ServiceState::Frozen;
        },
        headline: "AuthFailed",
        told: &[
            (
                Ready,
                False,
                "AuthFailed",
                &["3 of 3 members", "Secret orders-lagwarden"],
            ),
            (Stalled, True, "AuthFailed", &["spec.credentials"]),
            (PrimaryResolved, Unknown, "NotYetMeasured", &[]),
            (MeasurementHealthy, False, "AuthFailed", &["Secret orders-lagwarden"]),
        ],
    },
    Trouble {
        what: "a server of another cluster",
        change: |s| report(s).members[1].cluster = Some(ClusterId(8)),
        headline: "Normal",
        told: &[(
            MeasurementHealthy,
            False,
            "ForeignServer",
            &["b (10.0.0.2:5432)", "8", "7", "remove it"],
        )],
    },
    Trouble {
        what: "servers of two clusters, while not everyone was heard",
        change: |s| {
            report(s).members[1].cluster = Some(ClusterId(8));
            report(s).services[0].state = ServiceState::ColdStart;
        },
        headline: "Initializing",
        told: &[
            (Ready, Unknown, "Initializing", &[]),
            (Reconciling, True, "InProgress", &[]),
            (EndpointsPublished, Unknown, "ColdStart", &[]),
        ],
    },
    Trouble {
        what: "a silent primary",
        change: |s| {
            report(s).primary_silent = true;
            report(s).services[0].state = ServiceState::PrimarySilent;
        },
        headline: "PrimarySilent",
        told: &[
            (
                PrimaryResolved,
                True,
                "PrimarySilent",
                &["p is the primary, and gives no sign"],
            ),
            (MeasurementHealthy, False, "PrimarySilent", &[]),
        ],
    },
    Trouble {
        what: "a primary that only we have lost",
        change: |s| {
            report(s).primary_silent = true;
            report(s).moves_unseen = true;
        },
        headline: "Normal",
        told: &[
            (PrimaryResolved, True, "PrimarySilent", &["only we have lost it"]),
            (MeasurementHealthy, False, "PrimarySilent", &[]),
        ],
    },
    Trouble {
        what: "a primary that flushes late",
        change: |s| s.view.as_mut().unwrap().nudge_failure = Some(Arc::from("set wal_writer_delay")),
        headline: "Normal",
        told: &[(MeasurementHealthy, False, "FlushDelayed", &["set wal_writer_delay"])],
    },
    Trouble {
        what: "two primaries",
        change: |s| {
            report(s).primary = Primary::Several(vec!["a".into(), "p".into()]);
            report(s).services[0].state = ServiceState::Frozen;
        },
        headline: "SeveralPrimaries",
        told: &[(PrimaryResolved, False, "SeveralPrimaries", &["a", "p"])],
    },
    Trouble {
        what: "a fallback",
        change: |s| {
            let service = &mut report(s).services[0];
            service.state = ServiceState::Fallback(Fallback::LeastLagged);
            service.endpoints = vec!["a".into()];
        },
        headline: "Fallback",
        told: &[(FallbackActive, True, "LeastLagged", &["orders-fresh"])],
    },
    Trouble {
        what: "an empty list",
        change: |s| {
            let service = &mut report(s).services[0];
            (service.state, service.endpoints) = (ServiceState::Exhausted, Vec::new());
        },
        headline: "Exhausted",
        told: &[(FallbackActive, True, "Exhausted", &["no fallback gives an endpoint"])],
    },
    Trouble {
        what: "a pause",
        change: |s| {
            s.spec.as_mut().unwrap().settings.paused = true;
            report(s).services[0].state = ServiceState::Paused;
        },
        headline: "Paused",
        told: &[(Paused, True, "Paused", &["what is published stays as it is"])],
    },
];
