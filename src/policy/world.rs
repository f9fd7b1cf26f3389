//! A small world for tests: a primary that commits, replicas that follow or do not, a network that carries or does not,
//! and the pool under test, in virtual time.
//!
//! The primary's position is the number of commits. A replica shows what the primary had `behind` ago, unless its applier
//! is stopped. Truth is known, so a test can hold every bound against it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use super::member::{MemberInput, MemberName, Standing};
use super::moment::Moment;
use super::pool::{Event, Pool};
use super::position::{ClusterId, History, Incarnation, Lsn, Position};
use super::reason::Reason;
use super::settings::PoolSettings;
use super::sighting::{Observation, Outcome, ProbeFailure, Receiver, Replay, Role, Sighting, StandbyView};
use super::state::{MemberState, ServiceState};
use super::transition::Transition;

/// How a server treats us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// Answers.
    Open,
    /// Nothing comes back.
    Cut,
    /// The port refuses.
    Refused,
    /// The server says that it takes no connections.
    NotAccepting,
    /// The server says that it has no connection left.
    Full,
}

/// One server.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) role: Role,
    pub(super) history: History,
    pub(super) incarnation: i64,
    pub(super) way: Way,
    /// How far behind it follows.
    pub(super) behind: Duration,
    /// What it had applied when it last changed its way of following: it never un-applies.
    pub(super) has: u64,
    /// What it has applied when its applier stopped.
    pub(super) stopped: Option<u64>,
    /// What it has received when its receiver stopped.
    pub(super) cut_off: Option<u64>,
    /// Whether its process lives, so that the primary sees it.
    pub(super) alive: bool,
    pub(super) replay: Replay,
}

/// The world.
pub(super) struct World {
    pub(super) pool: Pool,
    pub(super) now: Moment,
    pub(super) servers: BTreeMap<MemberName, Server>,
    pub(super) transitions: Vec<Transition>,
    pub(super) inputs: Vec<MemberInput>,
    /// Steps taken, to see that nothing spins.
    pub(super) steps: u64,
    pub(super) nudges: u32,
    /// When each commit was made.
    commits: Vec<Moment>,
    writes_every: Option<Duration>,
    next_write: Moment,
    next_ask: BTreeMap<MemberName, Moment>,
    pending: Vec<(Moment, MemberName, Observation)>,
    wake: Option<Moment>,
    round_trip: Duration,
    /// Whether the primary's view of its standbys can be read.
    pub(super) views: bool,
}

/// The primary's name.
pub(super) const PRIMARY: &str = "p";

impl World {
    /// A pool with these settings over primary `p` and `replicas`, under a steady load of a commit each 10 ms.
    pub(super) fn new(settings: PoolSettings, replicas: &[&str]) -> Self {
        let now = Moment::from_millis(1000);
        let mut world = Self {
            pool: Pool::new(settings, now),
            now,
            servers: BTreeMap::new(),
            transitions: Vec::new(),
            inputs: Vec::new(),
            steps: 0,
            nudges: 0,
            commits: vec![Moment::ORIGIN; 1000],
            writes_every: Some(Duration::from_millis(10)),
            next_write: now,
            next_ask: BTreeMap::new(),
            pending: Vec::new(),
            wake: None,
            round_trip: Duration::from_millis(2),
            views: true,
        };
        for (index, name) in [PRIMARY].iter().chain(replicas).enumerate() {
            let role = if *name == PRIMARY { Role::Primary } else { Role::Replica };
            world.add(name, role, u8::try_from(index).unwrap());
        }
        world.tell_members();
        world
    }

    fn add(&mut self, name: &str, role: Role, index: u8) {
        let name: MemberName = Arc::from(name);
        self.inputs.push(MemberInput {
            name: name.clone(),
            uid: Arc::from("1"),
            address: Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, index + 1))),
            standing: Standing::Eligible,
            designated: role == Role::Primary,
        });
        // Probes of different members fall on different moments.
        self.next_ask
            .insert(name.clone(), self.now + Duration::from_millis(7 * u64::from(index)));
        let server = Server {
            role,
            history: History {
                cluster: ClusterId(1),
                timeline: 1,
            },
            incarnation: 1,
            way: Way::Open,
            behind: Duration::from_millis(3),
            has: 0,
            stopped: None,
            cut_off: None,
            alive: true,
            replay: Replay::Running,
        };
        self.servers.insert(name, server);
    }

    /// Tells the pool who belongs to it.
    pub(super) fn tell_members(&mut self) {
        self.step(Event::Members(self.inputs.clone()));
    }

    /// Changes the input of one member and tells the pool.
    pub(super) fn input(&mut self, name: &str, change: impl FnOnce(&mut MemberInput)) {
        change(self.inputs.iter_mut().find(|i| *i.name == *name).unwrap());
        self.tell_members();
    }

    /// The server `name`, to change it.
    pub(super) fn server(&mut self, name: &str) -> &mut Server {
        self.servers.get_mut(name).unwrap()
    }

    /// Stops the appliers of `names`: they go on receiving.
    pub(super) fn stop(&mut self, names: &[&str]) {
        for name in names {
            let applied = self.applied(name);
            self.server(name).stopped = Some(applied);
        }
    }

    /// Starts the appliers of `names`, which then follow `behind`.
    pub(super) fn follow(&mut self, names: &[&str], behind: Duration) {
        for name in names {
            let has = self.applied(name);
            let server = self.server(name);
            server.has = has;
            (server.stopped, server.cut_off, server.behind) = (None, None, behind);
        }
    }

    /// Treats every server's traffic with us in this way.
    pub(super) fn ways(&mut self, names: &[&str], way: Way) {
        for name in names {
            self.server(name).way = way;
        }
    }

    /// Commits each `period`, or no more.
    pub(super) fn write_every(&mut self, period: Option<Duration>) {
        self.writes_every = period;
        self.next_write = self.now;
    }

    /// Lets `millis` pass.
    pub(super) fn run(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        self.run_until(end, |_| {});
    }

    /// Lets `millis` pass in which the deciding process does nothing, and the world goes on.
    pub(super) fn sleep(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
        while let Some(every) = self.writes_every.filter(|_| self.next_write <= self.now) {
            self.commits.push(self.next_write);
            self.next_write = self.next_write + every;
        }
        self.step(Event::Tick);
    }

    /// Lets time pass up to `end`, looking at the world after each step.
    pub(super) fn run_until(&mut self, end: Moment, mut look: impl FnMut(&Self)) {
        loop {
            let write = self.writes_every.map(|_| self.next_write);
            let ask = self.next_ask.values().min().copied();
            let answer = self.pending.iter().map(|(at, ..)| *at).min();
            let next = [write, ask, answer, self.wake].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            if write == Some(next) {
                self.commits.push(self.now);
                self.next_write = self.now + self.writes_every.unwrap();
            } else if answer == Some(next) {
                let index = self.pending.iter().position(|(at, ..)| *at == next).unwrap();
                let (_, member, observation) = self.pending.remove(index);
                let uid = self.inputs.iter().find(|i| i.name == member).map(|i| i.uid.clone());
                self.step(Event::Observed {
                    member,
                    uid: uid.unwrap(),
                    observation,
                });
                look(self);
            } else if ask == Some(next) {
                let name = self.next_ask.iter().find(|(_, at)| **at == next).unwrap().0.clone();
                self.ask(&name);
            } else {
                self.step(Event::Tick);
                look(self);
            }
        }
        self.now = self.now.max(end);
    }

    /// Hands the pool one event.
    pub(super) fn step(&mut self, event: Event) {
        let step = self.pool.step(event, self.now);
        self.steps += 1;
        self.nudges += u32::from(step.nudge);
        self.transitions.extend(step.transitions);
        assert!(step.wake.is_none_or(|wake| wake > self.now), "a wake-up lies ahead");
        self.wake = step.wake;
    }

    fn ask(&mut self, name: &MemberName) {
        let settings = self.pool.settings.clone();
        let is_primary = self.servers[name].role == Role::Primary;
        let period = if is_primary {
            settings.periods.sample
        } else {
            settings.periods.probe
        };
        let fast = self.now + self.round_trip;
        let (at, outcome) = match self.servers[name].way {
            Way::Open => (fast, Outcome::Seen(self.sighting(name))),
            Way::Cut => (
                self.now + settings.periods.timeout,
                Outcome::Failed(ProbeFailure::Timeout),
            ),
            Way::Refused => (fast, Outcome::Failed(ProbeFailure::Refused)),
            Way::NotAccepting => (fast, Outcome::Failed(ProbeFailure::NotAccepting)),
            Way::Full => (fast, Outcome::Failed(ProbeFailure::TooManyConnections)),
        };
        let observation = Observation {
            asked: self.now,
            answered: at,
            outcome,
        };
        self.pending.push((at, name.clone(), observation));
        // One question at a time.
        self.next_ask.insert(name.clone(), (self.now + period).max(at));
    }

    fn sighting(&self, name: &str) -> Sighting {
        let server = &self.servers[name];
        let primary = server.role == Role::Primary;
        let position = Position::Lsn(Lsn(self.applied(name)));
        Sighting {
            role: server.role,
            history: server.history,
            incarnation: Incarnation(server.incarnation),
            flushed: primary.then(|| position.clone()),
            received: (!primary).then(|| Position::Lsn(Lsn(self.received(name)))),
            replay: (!primary).then_some(server.replay),
            receiver: (!primary).then_some(if server.cut_off.is_some() {
                Receiver::Absent
            } else {
                Receiver::Streaming
            }),
            standbys: if primary && self.views {
                self.standbys()
            } else {
                Vec::new()
            },
            position: Some(position),
        }
    }

    fn standbys(&self) -> Vec<StandbyView> {
        let attached = self
            .servers
            .iter()
            .filter(|(_, s)| s.role == Role::Replica && s.alive && s.cut_off.is_none());
        let view = |(name, _): (&MemberName, &Server)| StandbyView {
            address: self.inputs.iter().find(|i| i.name == *name).and_then(|i| i.address),
            name: name.clone(),
            streaming: true,
            replayed: Some(Position::Lsn(Lsn(self.applied(name)))),
        };
        attached.map(view).collect()
    }

    /// How many commits `name` has.
    pub(super) fn applied(&self, name: &str) -> u64 {
        let server = &self.servers[name];
        if server.role == Role::Primary {
            return self.committed(self.now);
        }
        let followed = self.committed(self.now.before(server.behind));
        let follows = followed
            .min(server.stopped.unwrap_or(u64::MAX))
            .min(server.cut_off.unwrap_or(u64::MAX));
        follows.max(server.has)
    }

    fn received(&self, name: &str) -> u64 {
        self.committed(self.now)
            .min(self.servers[name].cut_off.unwrap_or(u64::MAX))
    }

    fn committed(&self, at: Moment) -> u64 {
        u64::try_from(self.commits.partition_point(|c| *c <= at)).unwrap()
    }

    /// The true staleness of `name`: the age of the oldest commit that it lacks.
    pub(super) fn staleness(&self, name: &str) -> Duration {
        let missing = usize::try_from(self.applied(name)).unwrap();
        self.commits.get(missing).map_or(Duration::ZERO, |c| self.now.since(*c))
    }

    /// Who is in the first service.
    pub(super) fn list(&self) -> Vec<&str> {
        self.pool.services[0]
            .decision
            .endpoints
            .iter()
            .map(AsRef::as_ref)
            .collect()
    }

    /// How the first service is decided.
    pub(super) fn state(&self) -> ServiceState {
        self.pool.services[0].state
    }

    /// Where `name` stands in the first service, and why.
    pub(super) fn seat(&self, name: &str) -> (MemberState, Reason) {
        let seat = &self.pool.services[0].seats[name];
        (seat.state, seat.reason)
    }

    /// Asserts who is in the first service and how it is decided.
    #[track_caller]
    pub(super) fn expect(&self, list: &[&str], state: ServiceState) {
        let seats: Vec<_> = self.servers.keys().map(|n| (n, self.seat(n))).collect();
        assert_eq!(
            (self.list().as_slice(), self.state()),
            (list, state),
            "at {:?}: {seats:?}",
            self.now
        );
    }
}
