//! When all lag: floor, fallbacks and share.

use super::*;

#[test]
fn all_stop_applying_together() {
    let mut world = world();
    world.stop(&ABC);
    world.run(2100);
    assert_eq!(world.state(), ServiceState::Fallback(Fallback::LeastLagged));
    assert_eq!(world.list().len(), 1, "the freshest stays: {:?}", world.list());
    let held = world.list()[0].to_string();
    world.run(20_000);
    assert_eq!(world.list(), [held.as_str()], "and the same one");
    world.follow(&ABC, SHORT);
    world.run(150);
    assert!(!world.list().is_empty());
    world.run(3000);
    world.expect(&ABC, ServiceState::Normal);
}

#[test]
fn all_lag_beyond_the_hard_limit() {
    let mut world = world();
    world.stop(&ABC);
    world.run(59_000);
    assert_eq!(world.state(), ServiceState::Fallback(Fallback::LeastLagged));
    world.run(2000);
    world.expect(&[], ServiceState::Exhausted);
}

#[test]
fn the_primary_comes_with_a_replica_beside_it() {
    let mut world = world_of(&ABC, |s| s.fallback = vec![Fallback::Primary]);
    world.stop(&["a", "b"]);
    world.run(60_000);
    world.expect(&["c"], ServiceState::Degraded);
    world.stop(&["c"]);
    world.run(5000);
    world.expect(&["c", PRIMARY], ServiceState::Fallback(Fallback::Primary));
    world.run(60_000);
    world.expect(&[], ServiceState::Exhausted);
}

#[test]
fn the_primary_takes_all() {
    let mut world = world_of(&ABC, |s| {
        s.fallback = vec![Fallback::Primary];
        s.primary_max_share = 100;
    });
    world.stop(&ABC);
    world.run(2100);
    world.expect(&[PRIMARY], ServiceState::Fallback(Fallback::Primary));
    world.follow(&ABC, SHORT);
    world.run(5000);
    world.expect(&ABC, ServiceState::Normal);
}

#[test]
fn keep_last_keeps_the_last_set_that_was_fresh() {
    let mut world = world_of(&ABC, |s| s.fallback = vec![Fallback::KeepLast]);
    world.stop(&["a"]);
    world.run(3000);
    world.stop(&["b", "c"]);
    world.run(5000);
    world.expect(&["b", "c"], ServiceState::Fallback(Fallback::KeepLast));
}

#[test]
fn none_may_be_empty() {
    let mut world = world_of(&ABC, |s| s.fallback = vec![Fallback::None]);
    world.stop(&ABC);
    world.run(2500);
    world.expect(&[], ServiceState::Exhausted);
}

#[test]
fn a_higher_floor_is_filled_up() {
    let mut world = world_of(&ABC, |s| s.min_endpoints = 2);
    world.stop(&["a"]);
    world.run(4000);
    world.stop(&["b"]);
    world.run(4000);
    world.expect(&["b", "c"], ServiceState::Fallback(Fallback::LeastLagged));
    assert_eq!(world.seat("b").0, MemberState::Lagging);
}
