//! Pods, pauses, changes of the spec, restarts, and the rest.

use super::*;

#[test]
fn pods_that_are_not_ready_or_go_leave_at_once() {
    for (standing, reason) in [
        (Standing::PodNotReady, Reason::PodNotReady),
        (Standing::Terminating, Reason::Terminating),
        (Standing::Manual, Reason::Manual),
    ] {
        let mut world = world();
        world.input("c", |i| i.standing = standing);
        world.expect(&["a", "b"], ServiceState::Degraded);
        assert_eq!(world.seat("c"), (MemberState::Excluded, reason));
        world.input("c", |i| i.standing = Standing::Eligible);
        world.run(1500);
        world.expect(&ABC, ServiceState::Normal);
    }
}

/// K-21: a pod that is created again under its name is another member, and must prove itself.
#[test]
fn a_recreated_pod_starts_anew() {
    let mut world = world();
    world.server("c").way = Way::Cut;
    world.input("c", |i| i.uid = "2".into());
    world.expect(&["a", "b"], ServiceState::Degraded);
    assert_eq!(world.seat("c"), (MemberState::Pending, Reason::NeverMeasured));
}

#[test]
fn pausing_freezes_and_resuming_decides() {
    let mut world = world();
    let mut paused = settings(|_| {});
    paused.paused = true;
    world.step(Event::Settings(paused));
    world.stop(&["c"]);
    world.run(60_000);
    world.expect(&ABC, ServiceState::Paused);
    world.step(Event::Settings(settings(|_| {})));
    world.expect(&["a", "b"], ServiceState::Degraded);
}

#[test]
fn a_new_limit_decides_at_once() {
    let mut world = world();
    world.follow(&["c"], Duration::from_millis(1500));
    world.run(1000);
    world.expect(&ABC, ServiceState::Normal);
    world.step(Event::Settings(settings(|s| s.max_staleness = Duration::from_secs(1))));
    world.expect(&["a", "b"], ServiceState::Degraded);
}

fn restarted(world: &mut World, published: &[&str]) {
    let settings = world.pool.settings.clone();
    world.pool = super::super::pool::Pool::new(settings, world.now);
    world.transitions.clear();
    world.step(Event::Adopted {
        service: "orders-fresh".into(),
        endpoints: published.iter().map(|n| (*n).into()).collect(),
    });
    world.tell_members();
}

#[test]
fn a_restart_keeps_what_is_published_until_everyone_was_judged() {
    let mut world = world();
    world.stop(&["c"]);
    (world.server("b").way, world.server("b").alive) = (Way::Cut, false);
    world.run(5000);
    restarted(&mut world, &["a", "b", "c"]);
    world.run(900);
    world.expect(&ABC, ServiceState::ColdStart);
    // Two attempts of at most a second each, and b is known to be down. That c holds nothing newer than this process is
    // no proof that it is stale, before the limit has passed.
    world.run(1200);
    world.expect(&ABC, ServiceState::ColdStart);
    world.run(1000);
    world.expect(&["a"], ServiceState::Degraded);
    let lists: Vec<_> = world
        .transitions
        .iter()
        .filter(|t| matches!(t, Transition::List { .. }))
        .collect();
    assert_eq!(lists.len(), 1, "{lists:?}");
}

/// A process that has just started can prove nothing of those that are behind, and throws out nobody for that.
#[test]
fn a_restart_while_all_lag_keeps_the_one_that_is_held() {
    let mut world = world();
    world.stop(&ABC);
    (world.server("b").way, world.server("b").alive) = (Way::Refused, false);
    world.run(5000);
    world.expect(&["a"], ServiceState::Fallback(Fallback::LeastLagged));
    restarted(&mut world, &["a"]);
    world.transitions.clear();
    world.run(55_000);
    world.expect(&["a"], ServiceState::Fallback(Fallback::LeastLagged));
    let lists = |world: &World| {
        let lists = world.transitions.iter();
        lists.filter(|t| matches!(t, Transition::List { .. })).count()
    };
    assert_eq!(lists(&world), 0);
    // Another of which something is proven, however bad, is the better one.
    world.follow(&["c"], Duration::from_secs(20));
    world.run(1500);
    world.expect(&["c"], ServiceState::Fallback(Fallback::LeastLagged));
    // What was found published counts for as long as the hard limit, and not twice.
    world.stop(&["c"]);
    world.run(60_000);
    world.expect(&[], ServiceState::Exhausted);
}

#[test]
fn a_restart_in_quiet_times_changes_nothing() {
    // However far behind they follow within the limit: their first answers hold no sample of the new process.
    for behind in [0, 30, 300, 1000] {
        let mut world = world();
        world.follow(&["b", "c"], Duration::from_millis(behind));
        world.run(5000);
        restarted(&mut world, &ABC);
        world.run(400 + behind);
        world.expect(&ABC, ServiceState::Normal);
        assert!(
            !world.transitions.iter().any(|t| matches!(t, Transition::List { .. })),
            "{behind} ms behind"
        );
    }
}

#[test]
fn a_restart_while_nobody_answers_keeps_everything() {
    let mut world = world();
    world.ways(&[PRIMARY, "a", "b", "c"], Way::Cut);
    restarted(&mut world, &ABC);
    world.run(60_000);
    world.expect(&ABC, ServiceState::ControllerIsolated);
}

#[test]
fn a_restart_without_a_primary_keeps_everything() {
    let mut world = world();
    world.ways(&[PRIMARY], Way::Refused);
    world.run(200);
    restarted(&mut world, &ABC);
    world.run(60_000);
    world.expect(&ABC, ServiceState::Frozen);
}

/// PG-52: the label says primary, the server says that it is in recovery.
#[test]
fn a_designated_replica_is_not_the_primary() {
    let mut pool = settings(|_| {});
    pool.detection = Detection::Designated;
    let mut world = World::new(pool, &ABC);
    world.run(5000);
    world.expect(&ABC, ServiceState::Normal);
    world.inputs[0].designated = false;
    world.input("b", |i| i.designated = true);
    world.run(5000);
    assert_eq!(world.pool.primary(), &Primary::DesignatedIsReplica("b".into()));
    world.expect(&ABC, ServiceState::Frozen);
}

#[test]
fn causes_are_told_apart() {
    let mut world = world();
    let received = world.applied("a");
    world.server("a").cut_off = Some(received);
    world.follow(&["b"], Duration::from_secs(10));
    world.stop(&["c"]);
    world.server("c").replay = Replay::Paused;
    world.run(5000);
    for (name, reason) in [
        ("a", Reason::DeliveryLag),
        ("b", Reason::Stalled),
        ("c", Reason::Stalled),
    ] {
        assert_eq!(world.seat(name), (MemberState::Lagging, reason), "{name}");
    }
    world.run(10_000);
    assert_eq!(
        world.seat("b"),
        (MemberState::Lagging, Reason::ApplyLag),
        "it applies, late"
    );
}

/// PG-99, PG-101: a replica that hovers around the limit changes the list once, and then ever more rarely.
#[test]
fn hovering_around_the_limit_does_not_flap() {
    let mut world = world();
    for round in 0..600 {
        let behind = if round % 2 == 0 { 1700 } else { 2300 };
        world.follow(&["c"], Duration::from_millis(behind));
        world.run(1000);
    }
    let lists = world
        .transitions
        .iter()
        .filter(|t| matches!(t, Transition::List { .. }))
        .count();
    assert_eq!(lists, 1, "above the admission mark nobody returns");
}

#[test]
fn the_end_of_time_is_far() {
    let mut world = world();
    world.now = world.now + Duration::from_secs(3600 * 24 * 365);
    world.stop(&[]);
    world.step(Event::Tick);
    assert!(world.now > Moment::ORIGIN);
}

/// Our own process was stopped for a while: everything looks old at once, and nothing of it is news.
#[test]
fn a_pause_of_our_own_changes_nothing() {
    for millis in [900, 3000, 60_000] {
        let mut world = world();
        world.sleep(millis);
        world.run(5000);
        world.expect(&ABC, ServiceState::Normal);
        let lists = world
            .transitions
            .iter()
            .filter(|t| matches!(t, Transition::List { .. }))
            .count();
        assert_eq!(lists, 0, "{millis} ms: {:?}", world.transitions);
    }
}
