//! The worked examples of the policy, each a test: a limit of 2 s, Balanced, admission at 1.2 s, periods of 100 ms, floor 1,
//! fallback `[LeastLagged]` unless said.

mod failover;
mod fallback;
mod isolation;
mod lag;
mod operation;
mod silence;

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
