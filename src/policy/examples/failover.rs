//! Identity, roles and timelines.

use super::*;

#[test]
fn another_database_at_its_address_never_joins() {
    let mut world = world();
    world.server("c").history.cluster = ClusterId(2);
    world.run(200);
    world.expect(&["a", "b"], ServiceState::Degraded);
    assert_eq!(world.seat("c"), (MemberState::Excluded, Reason::ForeignServer));
}

/// The primary is gone, and another database's primary answers at its address.
#[test]
fn another_database_at_the_primarys_address_is_not_the_primary() {
    let mut world = world();
    world.write_every(None);
    world.server(PRIMARY).history.cluster = ClusterId(2);
    world.run(5000);
    world.expect(&ABC, ServiceState::Frozen);
    assert_eq!(world.pool.primary(), &Primary::NoneClaims);
}

#[test]
fn a_second_primary_freezes() {
    let mut world = world();
    let b = world.server("b");
    (b.role, b.history.timeline) = (Role::Primary, 2);
    world.run(1000);
    world.expect(&["a", "c"], ServiceState::Frozen);
    assert_eq!(world.pool.primary().as_str(), "SeveralPrimaries");
    assert_eq!(world.seat("b").1, Reason::RoleChanged);
    world.stop(&ABC);
    world.run(10_000);
    world.expect(&["a", "c"], ServiceState::Frozen);
}

/// The primary dies, b is promoted, c follows it a while later; then the old primary comes back.
#[test]
fn a_failover() {
    let mut world = world();
    world.ways(&[PRIMARY], Way::Refused);
    world.write_every(None);
    world.run(10_000);
    world.expect(&ABC, ServiceState::PrimarySilent);
    let b = world.server("b");
    (b.role, b.history.timeline) = (Role::Primary, 2);
    world.write_every(Some(Duration::from_millis(10)));
    for name in ["a", "c"] {
        let received = world.applied(name);
        world.server(name).cut_off = Some(received);
    }
    world.run(300);
    assert_eq!(world.pool.primary(), &Primary::Resolved("b".into()));
    assert!(!world.list().contains(&"b"), "the promoted one leaves at once");
    assert!(!world.list().is_empty(), "somebody serves: {:?}", world.list());
    assert_eq!(
        world.state(),
        ServiceState::Fallback(Fallback::LeastLagged),
        "no old proof makes anyone fresh"
    );
    world.follow(&["a", "c"], SHORT);
    for name in ["a", "c"] {
        world.server(name).history.timeline = 2;
    }
    world.run(3000);
    assert_eq!(world.list(), ["a", "c"]);
    world.ways(&[PRIMARY], Way::Open);
    world.run(1000);
    world.expect(&["a", "c"], ServiceState::Frozen);
}

/// A fenced old primary comes back while the present one is silent: its earlier timeline gives it away.
#[test]
fn an_earlier_timeline_is_not_followed() {
    let mut world = world();
    for name in [PRIMARY, "a", "b", "c"] {
        world.server(name).history.timeline = 5;
    }
    world.run(2000);
    world.ways(&[PRIMARY], Way::Cut);
    world.run(2000);
    let c = world.server("c");
    (c.role, c.history.timeline) = (Role::Primary, 4);
    world.run(2000);
    assert_eq!(world.pool.primary(), &Primary::NotLater("c".into()));
    world.expect(&["a", "b"], ServiceState::Frozen);
}

/// A replica that stayed on the old timeline, beyond the point where the new one began, has a larger position and lacks
/// everything new.
#[test]
fn a_diverged_replica_is_never_fresh() {
    let mut world = world();
    world.stop(&["b"]);
    world.run(500);
    world.ways(&[PRIMARY], Way::Refused);
    world.write_every(None);
    world.run(1000);
    let held = world.applied("b");
    let b = world.server("b");
    (b.role, b.history.timeline, b.stopped) = (Role::Primary, 2, None);
    world.server("a").cut_off = Some(held);
    world.server("c").cut_off = Some(u64::MAX);
    world.run(5000);
    let bound = world.pool.members["c"]
        .lease
        .as_ref()
        .map(|l| world.now.since(l.reference))
        .unwrap();
    assert!(bound > Duration::from_secs(5), "{bound:?}");
    assert_ne!(world.seat("c").0, MemberState::Serving);
}
