//! Servers that are dead, and servers that are cut off from us.

use super::*;

#[test]
fn a_dead_server_leaves_at_its_second_refusal() {
    for way in [Way::Refused, Way::NotAccepting] {
        let mut world = world();
        (world.server("c").way, world.server("c").alive) = (way, false);
        let left = until_out(&mut world, "c", 1000);
        assert!((100..=310).contains(&left), "{left} ms");
        world.expect(&["a", "b"], ServiceState::Degraded);
        assert_eq!(world.seat("c"), (MemberState::Lagging, Reason::Down));
    }
}

#[test]
fn one_refusal_is_none() {
    let mut world = world();
    world.server("c").way = Way::Refused;
    world.run(90);
    world.server("c").way = Way::Open;
    world.run(5000);
    world.expect(&ABC, ServiceState::Normal);
    assert_eq!(world.transitions, []);
}

/// "Too many connections" is neither silence nor death: it serves, we only lack news. Its lease decides.
#[test]
fn a_full_server_stays_as_long_as_its_lease() {
    let mut world = world();
    world.server("c").way = Way::Full;
    world.run(1500);
    assert_eq!(world.list(), ABC);
    world.run(600);
    world.expect(&["a", "b"], ServiceState::Degraded);
    assert_eq!(world.seat("c").1, Reason::Unreachable);
}

#[test]
fn the_only_replica_dies() {
    let mut world = world_of(&["c"], |s| {
        s.fallback = vec![Fallback::Primary];
        s.primary_max_share = 100;
    });
    (world.server("c").way, world.server("c").alive) = (Way::Refused, false);
    world.run(350);
    world.expect(&[PRIMARY], ServiceState::Fallback(Fallback::Primary));
}

#[test]
fn two_of_three_are_cut_off_from_us() {
    let mut world = World::new(settings(|_| {}), &ABC);
    world.views = false;
    world.run(5000);
    world.ways(&["a", "b"], Way::Cut);
    world.run(29_000);
    world.expect(&ABC, ServiceState::Frozen);
    world.run(4000);
    world.expect(&["c"], ServiceState::Degraded);
}

/// With the primary's view as the second witness, they are proven all the while.
#[test]
fn two_of_three_are_cut_off_from_us_and_the_primary_sees_them() {
    let mut world = world();
    world.ways(&["a", "b"], Way::Cut);
    world.run(120_000);
    assert_eq!(world.list(), ABC);
}

#[test]
fn one_alone_that_is_cut_off_leaves() {
    let mut world = world();
    world.server("c").way = Way::Cut;
    let left = until_out(&mut world, "c", 3000);
    assert!((1780..=2000).contains(&left), "{left} ms");
    world.expect(&["a", "b"], ServiceState::Degraded);
    assert_eq!(world.seat("c").1, Reason::Unreachable);
}

/// One that the primary has lost too is not kept by a freeze.
#[test]
fn a_freeze_does_not_keep_what_the_primary_has_lost() {
    let mut world = world();
    world.ways(&["a", "b"], Way::Cut);
    (world.server("b").alive, world.server("a").alive) = (false, true);
    world.run(3000);
    assert_eq!(world.list(), ["a", "c"]);
}

#[test]
fn replicas_that_refuse_us_alone_stay() {
    let mut world = world();
    world.ways(&ABC, Way::Refused);
    world.run(20_000);
    world.expect(&ABC, ServiceState::Degraded);
    for name in ABC {
        assert_eq!(world.seat(name), (MemberState::Serving, Reason::Unreachable));
    }
    world.server("a").alive = false;
    world.run(350);
    world.expect(&["b", "c"], ServiceState::Degraded);
    assert_eq!(world.seat("a").1, Reason::Down);
}

/// A server that says itself that it takes no connections is not overruled by anybody.
#[test]
fn replicas_that_say_that_they_refuse_leave() {
    let mut world = world_of(&ABC, |s| {
        s.fallback = vec![Fallback::Primary];
        s.primary_max_share = 100;
    });
    world.ways(&ABC, Way::NotAccepting);
    world.run(500);
    world.expect(&[PRIMARY], ServiceState::Fallback(Fallback::Primary));
}

#[test]
fn everything_is_cut_off_from_us() {
    for way in [Way::Cut, Way::Refused] {
        let mut world = world();
        world.ways(&[PRIMARY, "a", "b", "c"], way);
        world.run(600_000);
        world.expect(&ABC, ServiceState::ControllerIsolated);
        world.ways(&[PRIMARY, "a", "b", "c"], Way::Open);
        world.run(2000);
        world.expect(&ABC, ServiceState::Normal);
    }
}
