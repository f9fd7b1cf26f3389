//! The worked examples of the policy, each a test: a limit of 2 s, Balanced, admission at 1.2 s, periods of 100 ms, floor 1,
//! fallback `[LeastLagged]` unless said.

use std::time::Duration;

use super::member::Standing;
use super::moment::Moment;
use super::pool::Event;
use super::position::ClusterId;
use super::primary::Primary;
use super::reason::Reason;
use super::settings::{Detection, Fallback, OnPrimarySilent, PoolSettings, ServiceSettings};
use super::sighting::{Replay, Role};
use super::state::{MemberState, ServiceState};
use super::transition::Transition;
use super::world::{PRIMARY, Way, World};

const ABC: [&str; 3] = ["a", "b", "c"];
const SHORT: Duration = Duration::from_millis(3);

fn settings(change: impl FnOnce(&mut ServiceSettings)) -> PoolSettings {
    let mut service = ServiceSettings::new("orders-fresh", Duration::from_secs(2));
    change(&mut service);
    PoolSettings::new(vec![service])
}

fn world_of(replicas: &[&str], change: impl FnOnce(&mut ServiceSettings)) -> World {
    let mut world = World::new(settings(change), replicas);
    world.run(5000);
    world.expect(replicas, ServiceState::Normal);
    world.transitions.clear();
    world
}

fn world() -> World {
    world_of(&ABC, |_| {})
}

/// Runs until `name` is no longer in the list, and returns after how many milliseconds it left.
fn until_out(world: &mut World, name: &str, most: u64) -> u64 {
    let start = world.now;
    for _ in 0..most {
        if !world.list().contains(&name) {
            break;
        }
        world.run(1);
    }
    assert!(!world.list().contains(&name), "{name} is still in after {most} ms");
    u64::try_from(world.now.since(start).as_millis()).unwrap()
}

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
    world.pool = super::pool::Pool::new(settings, world.now);
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
    // Two attempts of at most a second each, and the first round is over.
    world.run(1200);
    world.expect(&["a"], ServiceState::Degraded);
    let lists: Vec<_> = world
        .transitions
        .iter()
        .filter(|t| matches!(t, Transition::List { .. }))
        .collect();
    assert_eq!(lists.len(), 1, "{lists:?}");
}

#[test]
fn a_restart_in_quiet_times_changes_nothing() {
    let mut world = world();
    restarted(&mut world, &ABC);
    world.run(400);
    world.expect(&ABC, ServiceState::Normal);
    assert!(!world.transitions.iter().any(|t| matches!(t, Transition::List { .. })));
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
