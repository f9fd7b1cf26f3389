//! A primary that is silent.

use super::*;

#[test]
fn a_silent_primary_changes_nothing() {
    for way in [Way::Cut, Way::Refused] {
        let mut world = world();
        world.ways(&[PRIMARY], way);
        world.write_every(None);
        world.run(600_000);
        world.expect(&ABC, ServiceState::PrimarySilent);
        world.ways(&[PRIMARY], Way::Open);
        world.run(1000);
        world.expect(&ABC, ServiceState::Normal);
    }
}

/// The primary restarts: its standbys reconnect only seconds after it is back, and have missed nothing until then.
#[test]
fn the_end_of_a_silence_evicts_nobody_who_missed_nothing() {
    let mut world = world();
    world.ways(&[PRIMARY], Way::Refused);
    world.write_every(None);
    world.run(20_000);
    for name in ABC {
        let received = world.applied(name);
        world.server(name).cut_off = Some(received);
    }
    world.server(PRIMARY).incarnation = 2;
    world.ways(&[PRIMARY], Way::Open);
    world.write_every(Some(Duration::from_millis(10)));
    world.run(1500);
    assert_eq!(world.list(), ABC);
    world.follow(&ABC, SHORT);
    world.run(1000);
    world.expect(&ABC, ServiceState::Normal);
}

/// And if they do not reconnect, they leave when the limit has passed since it is back.
#[test]
fn the_end_of_a_silence_is_no_excuse_for_long() {
    let mut world = world_of(&ABC, |s| s.fallback = vec![Fallback::None]);
    world.ways(&[PRIMARY], Way::Refused);
    world.write_every(None);
    world.run(20_000);
    world.server(PRIMARY).incarnation = 2;
    world.stop(&ABC);
    world.ways(&[PRIMARY], Way::Open);
    world.write_every(Some(Duration::from_millis(10)));
    world.run(2300);
    world.expect(&[], ServiceState::Exhausted);
}

/// Only we lost the primary, and clients went on writing: one that stops while others move is found all the same.
#[test]
fn replicas_are_compared_while_the_primary_is_silent() {
    let mut world = world();
    world.ways(&[PRIMARY], Way::Cut);
    world.run(3000);
    world.expect(&ABC, ServiceState::PrimarySilent);
    assert!(
        world.pool.source.moves_unseen(),
        "movement proves that the primary lives"
    );
    world.stop(&["c"]);
    let left = until_out(&mut world, "c", 4000);
    assert!(
        (2000..=2300).contains(&left),
        "certainty comes after the limit: {left} ms"
    );
    world.run(10_000);
    world.expect(&["a", "b"], ServiceState::PrimarySilent);
}

#[test]
fn expire_lets_leases_end_in_silence() {
    let mut world = world_of(&ABC, |s| {
        s.on_primary_silent = OnPrimarySilent::Expire;
        s.fallback = vec![Fallback::None];
    });
    world.ways(&[PRIMARY], Way::Cut);
    world.run(2100);
    world.expect(&[], ServiceState::Exhausted);
}
