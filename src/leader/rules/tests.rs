//! The rules on both sides of each boundary; [`nights`] sets three candidates against each other.

mod nights;

use super::*;

const TIMINGS: Timings = Timings {
    lease: Duration::from_secs(4),
    renew_deadline: Duration::from_secs(3),
    retry: Duration::from_millis(500),
    call: Duration::from_secs(1),
};

fn ms(n: u64) -> Moment {
    Moment::from_millis(n)
}

fn record(version: &str, holder: Option<&str>) -> Record {
    Record {
        version: version.into(),
        holder: holder.map(str::to_owned),
        duration: Some(TIMINGS.lease),
        transitions: 3,
    }
}

fn candidate() -> Rules {
    Rules::new("me".into(), TIMINGS)
}

/// Asks for the next action at `at` and answers it at once.
#[track_caller]
fn turn(rules: &mut Rules, at: u64, wanted: &Action, answer: Answer) {
    let action = rules.next(ms(at), 0.0);
    assert_eq!(action, *wanted, "at {at} ms");
    rules.hear(&action, ms(at), answer, ms(at));
}

fn put(version: &str, transitions: u64) -> Action {
    Action::Put {
        version: version.into(),
        transitions,
    }
}

fn leading() -> Rules {
    let mut rules = candidate();
    turn(&mut rules, 0, &Action::Get, Answer::Absent);
    turn(&mut rules, 0, &Action::Create, Answer::Is(record("1", Some("me"))));
    rules
}

#[test]
fn an_absent_lease_is_made() {
    let rules = leading();
    assert_eq!(
        rules.leadership(ms(0)),
        Leadership::Leading {
            term: 3,
            until: ms(3000)
        }
    );
    assert!(rules.leadership(ms(2999)).may_write(ms(2999)));
    assert!(!rules.leadership(ms(3000)).may_write(ms(3000)));
    assert!(
        !rules.leadership(ms(0)).may_write(ms(3000)),
        "what was told once ends by itself"
    );
}

#[test]
fn a_lease_that_was_given_back_is_taken() {
    let mut rules = candidate();
    turn(&mut rules, 0, &Action::Get, Answer::Is(record("5", None)));
    turn(&mut rules, 0, &put("5", 4), Answer::Is(record("6", Some("me"))));
    assert!(rules.leadership(ms(0)).leads());
}

#[test]
fn another_holders_lease_is_waited_for() {
    let mut rules = candidate();
    turn(&mut rules, 0, &Action::Get, Answer::Is(record("5", Some("other"))));
    assert_eq!(rules.next(ms(499), 0.0), Action::Wait(ms(500)));
    for at in (500..4000).step_by(500) {
        turn(&mut rules, at, &Action::Get, Answer::Is(record("5", Some("other"))));
        assert!(!rules.leadership(ms(at)).leads());
    }
    // Unchanged for as long as its holder said, counted from when we first saw it so.
    turn(&mut rules, 4000, &Action::Get, Answer::Is(record("5", Some("other"))));
    turn(&mut rules, 4000, &put("5", 4), Answer::Is(record("6", Some("me"))));
    assert!(rules.leadership(ms(4000)).leads());
}

#[test]
fn a_record_that_changes_at_the_last_moment_is_valid_anew() {
    let mut rules = candidate();
    turn(&mut rules, 0, &Action::Get, Answer::Is(record("5", Some("other"))));
    turn(&mut rules, 3999, &Action::Get, Answer::Is(record("6", Some("other"))));
    turn(&mut rules, 7998, &Action::Get, Answer::Is(record("6", Some("other"))));
    assert_eq!(rules.next(ms(7998), 0.0), Action::Wait(ms(8498)));
}

#[test]
fn the_holders_own_duration_counts() {
    let mut rules = candidate();
    let mut long = record("5", Some("other"));
    long.duration = Some(Duration::from_secs(15));
    turn(&mut rules, 0, &Action::Get, Answer::Is(long.clone()));
    turn(&mut rules, 14_999, &Action::Get, Answer::Is(long.clone()));
    turn(&mut rules, 15_499, &Action::Get, Answer::Is(long));
    assert_eq!(rules.next(ms(15_499), 0.0), put("5", 4));
}

#[test]
fn a_renewal_goes_straight_and_moves_the_deadline_from_when_it_was_sent() {
    let mut rules = leading();
    let action = rules.next(ms(500), 0.0);
    assert_eq!(action, put("1", 3));
    rules.hear(&action, ms(500), Answer::Is(record("2", Some("me"))), ms(900));
    assert_eq!(
        rules.leadership(ms(900)),
        Leadership::Leading {
            term: 3,
            until: ms(3500)
        }
    );
}

#[test]
fn a_conflict_is_looked_at() {
    let mut rules = leading();
    turn(&mut rules, 500, &put("1", 3), Answer::Conflict);
    turn(&mut rules, 500, &Action::Get, Answer::Is(record("9", Some("other"))));
    assert_eq!(
        rules.leadership(ms(500)),
        Leadership::Standby {
            holder: Some("other".into())
        }
    );
}

/// The renewal was stored and its answer lost: our own name is in it.
#[test]
fn a_lost_answer_is_recognised() {
    let mut rules = leading();
    turn(&mut rules, 500, &put("1", 3), Answer::Failed);
    assert!(rules.leadership(ms(1000)).leads(), "the last renewal still counts");
    turn(&mut rules, 1000, &Action::Get, Answer::Is(record("2", Some("me"))));
    turn(&mut rules, 1000, &put("2", 3), Answer::Is(record("3", Some("me"))));
    assert_eq!(
        rules.leadership(ms(1000)),
        Leadership::Leading {
            term: 3,
            until: ms(4000)
        }
    );
}

#[test]
fn a_holder_that_cannot_renew_stands_by_in_time() {
    let mut rules = leading();
    for at in [500, 1000, 1500, 2000, 2500] {
        let action = rules.next(ms(at), 0.0);
        rules.hear(&action, ms(at), Answer::Failed, ms(at));
        assert!(rules.leadership(ms(at)).leads());
    }
    assert_eq!(rules.next(ms(2999), 0.0), Action::Wait(ms(3000)));
    assert!(!rules.leadership(ms(3000)).leads());
    assert_eq!(rules.call_within(ms(2900)), Duration::from_millis(100));
}

#[test]
fn a_deleted_lease_is_made_again() {
    let mut rules = leading();
    turn(&mut rules, 500, &put("1", 3), Answer::Absent);
    turn(&mut rules, 500, &Action::Create, Answer::Is(record("7", Some("me"))));
    assert_eq!(
        rules.leadership(ms(500)),
        Leadership::Leading {
            term: 3,
            until: ms(3500)
        }
    );
}

#[test]
fn what_a_foreign_record_lacks_is_supposed() {
    let mut rules = candidate();
    let bare = Record {
        version: "1".into(),
        holder: Some("other".into()),
        duration: None,
        transitions: 0,
    };
    turn(&mut rules, 0, &Action::Get, Answer::Is(bare.clone()));
    turn(&mut rules, 3999, &Action::Get, Answer::Is(bare.clone()));
    turn(&mut rules, 4499, &Action::Get, Answer::Is(bare));
    assert_eq!(rules.next(ms(4499), 0.0), put("1", 1));
}

#[test]
fn only_a_held_lease_is_given_back() {
    assert_eq!(candidate().held(ms(0)), None);
    assert_eq!(leading().held(ms(2999)), Some(("1".into(), 3)));
    assert_eq!(leading().held(ms(3000)), None);
}

#[test]
fn timings_that_cannot_be_safe_are_refused() {
    assert_eq!(TIMINGS.mistake(), None);
    for (wrong, word) in [
        (
            Timings {
                renew_deadline: TIMINGS.lease,
                ..TIMINGS
            },
            "not below",
        ),
        (
            Timings {
                retry: Duration::from_millis(2500),
                ..TIMINGS
            },
            "second attempt",
        ),
        (
            Timings {
                lease: Duration::from_millis(4500),
                ..TIMINGS
            },
            "whole number",
        ),
    ] {
        assert!(wrong.mistake().is_some_and(|said| said.contains(word)), "{wrong:?}");
    }
}
