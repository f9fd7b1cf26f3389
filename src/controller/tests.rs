//! What people are told: one calm pool, and each trouble ([`troubles`]) as a change of it.

mod troubles;

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use self::troubles::{CALM, TROUBLES, Trouble};
use super::findings::{Situation, findings};
use super::status::status;
use crate::api::condition::ConditionType;
use crate::api::v1alpha1::{ReplicaPool, ReplicaPoolStatus};
use crate::policy::facts::{Contact, Reach};
use crate::policy::moment::Moment;
use crate::policy::position::ClusterId;
use crate::policy::primary::Primary;
use crate::policy::reason::Reason;
use crate::policy::report::{MemberReport, Report, SeatReport, ServiceReport};
use crate::policy::settings::Fallback;
use crate::policy::sighting::Role;
use crate::policy::state::{MemberState, ServiceState};
use crate::pool::View;
use crate::spec::PoolSpec;

fn member(name: &str, role: Role) -> MemberReport {
    MemberReport {
        name: name.into(),
        role: Some(role),
        cluster: Some(ClusterId(7)),
        contact: Contact::Answering,
        failure: None,
        answered: Some(Moment::ORIGIN),
        upper: None,
        lower: None,
        position: None,
        behind_bytes: None,
        unapplied_bytes: None,
        replay: None,
        phase: None,
        catches_up_in: None,
    }
}

fn seat(name: &str, state: MemberState, cause: Reason, listed: bool) -> SeatReport {
    let held = listed && state != MemberState::Serving;
    SeatReport {
        member: name.into(),
        state,
        reason: if held { Reason::Held } else { cause },
        cause,
        since: Moment::ORIGIN,
        listed,
    }
}

fn reads(name: &str, limit: Duration) -> ServiceReport {
    ServiceReport {
        name: name.into(),
        state: ServiceState::Normal,
        since: Moment::ORIGIN,
        max_staleness: limit,
        evict_above: limit,
        admit_within: limit / 2,
        min_endpoints: 1,
        fallback: vec![Fallback::LeastLagged],
        endpoints: vec!["a".into(), "b".into()],
        number: 1,
        decided: Moment::ORIGIN,
        seats: vec![
            seat("a", MemberState::Serving, Reason::CaughtUp, true),
            seat("b", MemberState::Serving, Reason::CaughtUp, true),
            seat("p", MemberState::Excluded, Reason::RoleChanged, false),
        ],
    }
}

/// A primary and two replicas, all well.
fn calm() -> Situation {
    let pool = include_str!("../../examples/pods.yaml").split("---\n").last().unwrap();
    let mut pool: ReplicaPool = serde_yaml::from_str(pool).unwrap();
    pool.metadata.namespace = Some("shop".into());
    let report = Report {
        at: Moment::ORIGIN,
        primary: Primary::Resolved("p".into()),
        cluster: Some(ClusterId(7)),
        history: None,
        position: None,
        primary_answered: Some(Moment::ORIGIN),
        primary_silent: false,
        moves_unseen: false,
        reach: Reach::Most,
        members: vec![
            member("a", Role::Replica),
            member("b", Role::Replica),
            member("p", Role::Primary),
        ],
        services: vec![reads("orders-fresh", Duration::from_secs(2))],
    };
    let view = View {
        generation: 1,
        report,
        contacts: std::collections::BTreeMap::new(),
        nudge_failure: None,
    };
    Situation {
        generation: 1,
        spec: Some(PoolSpec::try_new(&pool).unwrap()),
        view: Some(view),
        settled: true,
        addresses: [("b".into(), "10.0.0.2:5432".to_string())].into(),
        ..Situation::default()
    }
}

fn report(situation: &mut Situation) -> &mut Report {
    &mut situation.view.as_mut().unwrap().report
}

#[test]
fn each_trouble_is_told_in_its_own_condition_and_in_no_other() {
    for Trouble {
        what,
        change,
        headline,
        told,
    } in TROUBLES
    {
        let mut situation = calm();
        change(&mut situation);
        let found = findings(&situation);
        for (finding, calm) in found.iter().zip(CALM) {
            let expected = told.iter().find(|(kind, ..)| *kind == finding.type_);
            let (_, truth, reason, words) = *expected.unwrap_or(&(calm.0, calm.1, calm.2, &[]));
            assert_eq!(
                (finding.type_, finding.status, finding.reason),
                (calm.0, truth, reason),
                "{what}: {}",
                finding.message
            );
            for word in words {
                assert!(
                    finding.message.contains(word),
                    "{what}: {word:?} is missing in: {}",
                    finding.message
                );
            }
            assert!(!finding.message.is_empty(), "{what}");
        }
        let told = status(&situation, &ReplicaPoolStatus::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(told.reason.as_deref(), Some(*headline), "{what}");
    }
    let names: BTreeSet<_> = TROUBLES.iter().map(|t| t.what).collect();
    assert_eq!(names.len(), TROUBLES.len());
}

#[test]
fn an_equal_situation_is_an_equal_status_whatever_the_time() {
    let epoch = Timestamp::UNIX_EPOCH;
    let later = epoch + SignedDuration::from_hours(1);
    for Trouble { what, change, .. } in TROUBLES {
        let mut situation = calm();
        change(&mut situation);
        let first = status(&situation, &ReplicaPoolStatus::default(), epoch);
        assert_eq!(status(&situation, &first, later), first, "{what}");
        assert_eq!(first.conditions.len(), ConditionType::ALL.len(), "{what}");
    }
}

#[test]
fn times_of_transitions_follow_states_and_not_words() {
    let epoch = Timestamp::UNIX_EPOCH;
    let later = epoch + SignedDuration::from_hours(1);
    let first = status(&calm(), &ReplicaPoolStatus::default(), epoch);
    let mut situation = calm();
    let service = &mut report(&mut situation).services[0];
    service.state = ServiceState::Degraded;
    service.endpoints = vec!["a".into()];
    service.seats[1] = seat("b", MemberState::Lagging, Reason::Stalled, false);
    let second = status(&situation, &first, later);
    let since = |status: &ReplicaPoolStatus, name: &str| {
        let found = status.members.iter().find(|m| m.name == name).unwrap();
        found.since.clone().unwrap().0
    };
    assert_eq!((since(&second, "a"), since(&second, "b")), (epoch, later));
    assert_eq!(second.services[0].since.clone().unwrap().0, later);
    assert_eq!(second.summary.as_deref(), Some("1/2"));
    report(&mut situation).services[0].seats[1] = seat("b", MemberState::Lagging, Reason::ApplyLag, false);
    let third = status(&situation, &second, later + SignedDuration::from_hours(1));
    assert_eq!(since(&third, "b"), later, "another reason is no other state");
    assert_eq!(third.members[1].reason.as_deref(), Some("ApplyLag"));
}

/// The strictest service speaks for the pool, in whatever order they are written.
#[test]
fn the_columns_are_those_of_the_strictest_service() {
    let mut situation = calm();
    let mut loose = reads("orders-report", Duration::from_secs(60));
    loose.seats[0] = seat("a", MemberState::Lagging, Reason::Stalled, true);
    report(&mut situation).services.insert(0, loose);
    let told = status(&situation, &ReplicaPoolStatus::default(), Timestamp::UNIX_EPOCH);
    assert_eq!(told.summary.as_deref(), Some("2/2"));
    let states: Vec<_> = told.members.iter().map(|m| m.state.as_deref()).collect();
    assert_eq!(
        states,
        [Some("Serving"), Some("Serving"), None],
        "a primary has a role, and no state"
    );
    // Held by the fallback: listed, and not counted as fresh.
    assert_eq!(
        told.services.iter().map(|s| (s.ready, s.total)).collect::<Vec<_>>(),
        [(1, 2), (2, 2)]
    );
}
