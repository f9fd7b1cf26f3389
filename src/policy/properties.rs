//! The invariants of the decision, over generated nights: stops, delays, cuts, refusals, deaths, promotions, restarts and
//! changes of settings, in any order and at any moment.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::member::MemberName;
use super::moment::Moment;
use super::pool::Event;
use super::reason::Reason;
use super::settings::{Fallback, Mode, PoolSettings, ServiceSettings};
use super::state::{MemberState, ServiceState};
use super::transition::Transition;
use super::world::{PRIMARY, Way, World};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// One thing that happens.
#[derive(Clone, Debug)]
enum Fault {
    Stop(usize),
    Follow(usize, u64),
    Way(usize, Way),
    Die(usize),
    Restart(usize),
    Writes(bool),
    Limit(u64),
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        4 => Just(Way::Open),
        2 => Just(Way::Cut),
        1 => Just(Way::Refused),
        1 => Just(Way::NotAccepting),
        1 => Just(Way::Full),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        (0..3_usize).prop_map(Fault::Stop),
        (0..3_usize, 0..5000_u64).prop_map(|(n, behind)| Fault::Follow(n, behind)),
        (0..4_usize, way()).prop_map(|(n, way)| Fault::Way(n, way)),
        (0..3_usize).prop_map(Fault::Die),
        (0..4_usize).prop_map(Fault::Restart),
        any::<bool>().prop_map(Fault::Writes),
        prop_oneof![Just(1000_u64), Just(2000), Just(5000)].prop_map(Fault::Limit),
    ]
}

fn night() -> impl Strategy<Value = Vec<(Fault, u64)>> {
    vec((fault(), 10..6000_u64), 1..16)
}

fn services() -> impl Strategy<Value = Vec<ServiceSettings>> {
    let fallback = prop_oneof![
        Just(vec![Fallback::LeastLagged]),
        Just(vec![Fallback::Primary]),
        Just(vec![Fallback::KeepLast, Fallback::Primary]),
        Just(vec![Fallback::Primary, Fallback::LeastLagged]),
        Just(vec![Fallback::None]),
    ];
    let one = (
        fallback,
        1..4_usize,
        prop_oneof![Just(100_u32), Just(50), Just(34)],
        any::<bool>(),
    );
    one.prop_map(|(fallback, floor, share, strict)| {
        let mut s = ServiceSettings::new("s", Duration::from_secs(2));
        (s.fallback, s.min_endpoints, s.primary_max_share) = (fallback, floor, share);
        if strict {
            s.mode = Mode::Strict(Duration::from_millis(300));
        }
        vec![s]
    })
}

fn server(index: usize) -> &'static str {
    NAMES.get(index).copied().unwrap_or(PRIMARY)
}

fn happen(world: &mut World, fault: &Fault) {
    match fault {
        Fault::Stop(n) => world.stop(&[NAMES[*n]]),
        Fault::Follow(n, behind) => world.follow(&[NAMES[*n]], Duration::from_millis(*behind)),
        Fault::Way(n, way) => {
            world.server(server(*n)).alive = *way != Way::NotAccepting;
            world.ways(&[server(*n)], *way);
        }
        Fault::Die(n) => {
            let server = world.server(NAMES[*n]);
            (server.way, server.alive) = (Way::Refused, false);
        }
        Fault::Restart(n) => world.server(server(*n)).incarnation += 1,
        Fault::Writes(on) => world.write_every(on.then_some(Duration::from_millis(10))),
        Fault::Limit(ms) => {
            let mut settings = world.pool.settings.clone();
            settings.services[0].max_staleness = Duration::from_millis(*ms);
            settings.services[0].hard_max_staleness = Duration::from_millis(30 * ms);
            world.step(Event::Settings(settings));
        }
    }
}

/// Lives through a night, looking at the world after each step.
fn live(world: &mut World, night: &[(Fault, u64)], mut look: impl FnMut(&World)) {
    world.run(3000);
    for (fault, millis) in night {
        happen(world, fault);
        let end = world.now + Duration::from_millis(*millis);
        world.run_until(end, &mut look);
    }
}

fn listed(world: &World, name: &str) -> bool {
    world.list().contains(&name)
}

/// A bound that is absolute: the primary is heard, and was not just lost.
fn absolute_bound(world: &World, name: &str) -> Option<Duration> {
    let member = &world.pool.members[name];
    member.lease.as_ref().map(|lease| world.now.since(lease.reference))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// 1: the upper bound is never below the true staleness, whatever happens on the way.
    #[test]
    fn honesty(night in night(), services in services()) {
        let mut world = World::new(PoolSettings::new(services), &NAMES);
        live(&mut world, &night, |world| {
            for name in NAMES {
                // A restarted server may have forgotten; what it forgot is known with its next answer.
                if let Some(bound) = absolute_bound(world, name).filter(|_| world.servers[name].incarnation == 1) {
                    assert!(bound >= world.staleness(name), "{name}: {bound:?} < {:?}", world.staleness(name));
                }
            }
        });
    }

    /// 2 and 6: without fallback, freeze or silence, who is in is within the limit; Balanced and Strict alike, since the
    /// data plane's delay is no part of this world. What the primary shows counts as an answer.
    #[test]
    fn strictness(night in night(), services in services()) {
        let mut world = World::new(PoolSettings::new(services), &NAMES);
        live(&mut world, &night, |world| {
            let limit = world.pool.services[0].settings.evict_above();
            if !matches!(world.state(), ServiceState::Normal | ServiceState::Degraded) {
                return;
            }
            for name in NAMES.iter().filter(|n| listed(world, n)) {
                let seat = &world.pool.services[0].seats[*name];
                if world.servers[*name].incarnation == 1 && world.servers[PRIMARY].incarnation == 1 && !seat.held {
                    let judged_by_silence = world.pool.source.answered().is_none_or(|at| world.now.since(at) > Duration::from_millis(200));
                    let stale = world.staleness(name) > limit;
                    assert!(!stale || judged_by_silence || just_heard(world), "{name}: {:?}", world.staleness(name));
                }
            }
        });
    }

    /// 7: the list is empty only when `None` was reached or nobody is left that a fallback may take.
    #[test]
    fn never_empty_without_need(night in night()) {
        let mut s = ServiceSettings::new("s", Duration::from_secs(2));
        s.fallback = vec![Fallback::LeastLagged, Fallback::Primary];
        s.primary_max_share = 100;
        let mut world = World::new(PoolSettings::new(vec![s]), &NAMES);
        live(&mut world, &night, |world| {
            if world.list().is_empty() {
                let pool = &world.pool;
                let hard = pool.services[0].settings.hard_max_staleness;
                let usable = |name: &str| {
                    let seat = &pool.services[0].seats[name];
                    let refused = seat.reason == Reason::Down || pool.members[name].refusals() >= 2;
                    !refused && absolute_bound(world, name).is_some_and(|b| b <= hard)
                };
                assert!(!NAMES.iter().any(|n| usable(n)), "at {:?} {:?}", world.now, world.transitions.last());
            }
        });
    }

    /// 8: the primary's share stays within its limit, and it is listed by its fallback only.
    #[test]
    fn the_primarys_share(night in night(), services in services()) {
        let mut world = World::new(PoolSettings::new(services), &NAMES);
        live(&mut world, &night, |world| {
            if listed(world, PRIMARY) && matches!(world.state(), ServiceState::Fallback(_)) {
                let settings = &world.pool.services[0].settings;
                assert!(settings.fallback.contains(&Fallback::Primary));
                let share = 100 / world.list().len();
                assert!(share <= settings.primary_max_share as usize, "{:?}", world.list());
            }
            let normal = matches!(world.state(), ServiceState::Normal | ServiceState::Degraded | ServiceState::PrimarySilent);
            assert!(!normal || !listed(world, PRIMARY));
        });
    }

    /// 3 and 9: every admission happens within the admission mark, and two of one member at least a dwell apart unless the
    /// floor waived it.
    #[test]
    fn admissions(night in night()) {
        let mut s = ServiceSettings::new("s", Duration::from_secs(2));
        s.min_endpoints = 1;
        let mut world = World::new(PoolSettings::new(vec![s]), &NAMES);
        live(&mut world, &night, |_| {});
        for t in &world.transitions {
            if let Transition::Member { from, to: MemberState::Serving, bound, limit, .. } = t
                && *from != MemberState::Serving
            {
                prop_assert!(bound.is_some_and(|b| b <= *limit), "{t:?}");
            }
        }
    }

    /// 10: the same night twice is the same, and names decide nothing but ties.
    #[test]
    fn determinism(night in night(), services in services()) {
        let lived = || {
            let mut world = World::new(PoolSettings::new(services.clone()), &NAMES);
            live(&mut world, &night, |_| {});
            world.transitions
        };
        prop_assert_eq!(lived(), lived());
    }

}

proptest! {
    // Each case lives through its night twice, once a millisecond at a time.
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The next wake-up is never missed: looking each millisecond decides nothing else, or at another time.
    #[test]
    fn wake_ups_suffice(night in night(), services in services()) {
        let lived = |eager: bool| {
            let mut world = World::new(PoolSettings::new(services.clone()), &NAMES);
            world.run(3000);
            for (fault, millis) in &night {
                happen(&mut world, fault);
                for _ in 0..*millis {
                    world.run(1);
                    if eager {
                        world.step(Event::Tick);
                    }
                }
            }
            lists(&world.transitions)
        };
        let (lazy, eager) = (lived(false), lived(true));
        prop_assert_eq!(lazy, eager);
    }

    /// Any night ends: when everything works again, everyone serves again, and then nothing is said any more.
    #[test]
    fn convergence(night in night(), services in services()) {
        let mut world = World::new(PoolSettings::new(services), &NAMES);
        live(&mut world, &night, |_| {});
        for name in NAMES.iter().chain([&PRIMARY]) {
            world.server(name).alive = true;
            world.ways(&[name], Way::Open);
        }
        world.follow(&NAMES, Duration::from_millis(3));
        world.write_every(Some(Duration::from_millis(10)));
        world.run(90_000);
        world.expect(&NAMES, ServiceState::Normal);
        world.transitions.clear();
        world.run(10_000);
        prop_assert_eq!(&world.transitions, &vec![]);
    }
}

/// Lists with the moments at which they were decided.
fn lists(transitions: &[Transition]) -> Vec<(Moment, Vec<MemberName>)> {
    let list = |t: &Transition| match t {
        Transition::List { decision, .. } => Some((decision.decided, decision.endpoints.clone())),
        _ => None,
    };
    transitions.iter().filter_map(list).collect()
}

/// Whether the primary was silent within the last limit, so that members are judged by its last confirmed position.
fn just_heard(world: &World) -> bool {
    world.servers[PRIMARY].way != Way::Open || world.pool.source.is_recent_gap(world.now)
}
