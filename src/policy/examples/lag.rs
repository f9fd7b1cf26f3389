//! Replicas that lag, leave and return.

use super::*;

#[test]
fn all_follow_closely() {
    let mut world = world();
    world.run(60_000);
    world.expect(&ABC, ServiceState::Normal);
    assert_eq!(world.transitions, [], "a quiet pool says nothing");
}

#[test]
fn one_stops_applying() {
    let mut world = world();
    world.stop(&["c"]);
    let left = until_out(&mut world, "c", 3000);
    // The bound counts from the sample before the stop: at most two periods and round trips early, never late.
    assert!((1780..=2000).contains(&left), "{left} ms");
    world.expect(&["a", "b"], ServiceState::Degraded);
    assert_eq!(world.seat("c"), (MemberState::Lagging, Reason::Stalled));
}

#[test]
fn it_leaves_without_waiting_for_a_probe() {
    let mut world = world();
    world.stop(&["c"]);
    world.run(1000);
    world.server("c").way = Way::Cut;
    let left = until_out(&mut world, "c", 2000);
    assert!((780..=1000).contains(&left), "{left} ms");
    let steps = world.steps;
    world.run(1);
    assert!(world.steps - steps <= 1, "nothing spins");
}

#[test]
fn it_returns_below_the_admission_mark_after_its_dwell() {
    let mut world = world();
    world.stop(&["c"]);
    until_out(&mut world, "c", 3000);
    world.follow(&["c"], Duration::from_millis(1500));
    world.run(3000);
    world.expect(&["a", "b"], ServiceState::Degraded);
    assert_eq!(world.seat("c").0, MemberState::Lagging);
    world.follow(&["c"], Duration::from_millis(900));
    world.run(150);
    assert_eq!(world.seat("c").0, MemberState::Recovering);
    world.run(800);
    world.expect(&["a", "b"], ServiceState::Degraded);
    world.run(200);
    world.expect(&ABC, ServiceState::Normal);
    assert_eq!(world.seat("c"), (MemberState::Serving, Reason::CaughtUp));
}
