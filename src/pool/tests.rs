//! The whole loop in paused time: probers, policy, notices, over scripted servers.

mod connections;

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{advance, sleep};

use super::{Access, Config, Handle, PoolMember, Published};
use crate::clock::Clock;
use crate::engine::scripted::{Behaviour, Script};
use crate::engine::{Address, Credentials, Engine, Password, Target, Tls};
use crate::policy::member::{MemberInput, Standing};
use crate::policy::position::{ClusterId, History, Incarnation, Lsn, Position};
use crate::policy::reason::Reason;
use crate::policy::settings::{PoolSettings, ServiceSettings};
use crate::policy::sighting::{ProbeFailure, Receiver, Replay, Role, Sighting, StandbyView};
use crate::policy::state::ServiceState;
use crate::telemetry::events::{Notice, PoolKey, Recorder};
use crate::telemetry::metrics::Metrics;

const SERVERS: [&str; 3] = ["p", "a", "b"];

/// A pool over three scripted servers, whose primary commits each ten milliseconds.
struct Stage {
    script: Script,
    handle: Handle,
    notices: mpsc::Receiver<Notice>,
    metrics: Metrics,
    key: PoolKey,
    leads: watch::Sender<bool>,
    writer: tokio::task::JoinHandle<()>,
    generation: u64,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

fn sighting(role: Role, position: u64) -> Sighting {
    let replica = role == Role::Replica;
    let position = Position::Lsn(Lsn(position));
    Sighting {
        role,
        history: History {
            cluster: ClusterId(7),
            timeline: 1,
        },
        incarnation: Incarnation(1),
        flushed: (!replica).then(|| position.clone()),
        received: replica.then(|| position.clone()),
        position: Some(position),
        replay: replica.then_some(Replay::Running),
        receiver: replica.then_some(Receiver::Streaming),
        standbys: Vec::<StandbyView>::new(),
    }
}

fn access(script: &Script, password: &str) -> Access {
    Access {
        engine: Engine::Scripted(script.clone()),
        credentials: Credentials {
            username: "lagwarden".into(),
            password: Password::new(password.into()),
        },
        tls: Tls::disabled(),
    }
}

fn member(name: &str) -> PoolMember {
    PoolMember {
        input: MemberInput {
            name: name.into(),
            uid: format!("{name}-1").into(),
            address: None,
            standing: Standing::Eligible,
            designated: false,
        },
        target: Target {
            address: Address::Name(name.into()),
            port: 5432,
            database: "postgres".into(),
        },
    }
}

fn config(script: &Script, generation: u64) -> Config {
    Config {
        generation,
        settings: PoolSettings::new(vec![ServiceSettings::new("reads", Duration::from_secs(2))]),
        members: SERVERS.iter().map(|n| member(n)).collect(),
        access: access(script, "one"),
    }
}

impl Stage {
    async fn set(published: &[&str]) -> Self {
        Self::with_room_for(64, published).await
    }

    /// A stage on which this many notices may wait.
    async fn with_room_for(notices: usize, published: &[&str]) -> Self {
        let script = Script::default();
        let writing = script.clone();
        let all_show = move |position| {
            for name in SERVERS {
                let role = if name == "p" { Role::Primary } else { Role::Replica };
                writing.show(name, sighting(role, position));
            }
        };
        all_show(1);
        let writer = tokio::spawn(async move {
            for position in 2_u64.. {
                sleep(Duration::from_millis(10)).await;
                all_show(position);
            }
        });
        let clock = Clock::start();
        let metrics = Metrics::new();
        let key = PoolKey {
            namespace: "shop".into(),
            name: "orders".into(),
        };
        let (leads, leading) = watch::channel(true);
        let (told, notices) = mpsc::channel(notices);
        let published = vec![Published {
            service: "reads".into(),
            endpoints: published.iter().map(|n| (*n).into()).collect(),
        }];
        let recorder = Recorder::new(key.clone(), metrics.clone());
        let handle = Handle::start(config(&script, 1), published, clock, recorder, leading, told);
        let stage = Self {
            script,
            handle,
            notices,
            metrics,
            key,
            leads,
            writer,
            generation: 1,
        };
        sleep(Duration::from_millis(500)).await;
        stage
    }

    async fn run(&self, millis: u64) {
        sleep(Duration::from_millis(millis)).await;
    }

    /// Makes a server behave like this, instead of following the primary.
    fn hold(&self, name: &str, behaviour: Behaviour) {
        self.script.hold(name, behaviour);
    }

    fn list(&self) -> Vec<String> {
        let view = self.handle.decided().borrow().clone();
        view.report.services[0]
            .endpoints
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    async fn seat(&self, name: &str) -> Reason {
        let view = self.handle.asker().report().await.unwrap();
        let seats = &view.report.services[0].seats;
        seats.iter().find(|s| &*s.member == name).unwrap().reason
    }

    fn told(&mut self) -> Vec<Notice> {
        std::iter::from_fn(|| self.notices.try_recv().ok()).collect()
    }

    async fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        self.generation += 1;
        let mut config = config(&self.script, self.generation);
        change(&mut config);
        self.handle.configure(config).await;
        self.run(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn replicas_that_follow_are_listed_and_quiet_says_nothing() {
    let mut stage = Stage::set(&[]).await;
    assert_eq!(stage.list(), ["a", "b"]);
    stage.told();
    stage.run(60_000).await;
    assert_eq!(stage.list(), ["a", "b"]);
    assert_eq!(stage.told(), []);
    assert_eq!(stage.script.connects("a"), 1, "one connection, kept");
}

/// PG-57, PG-96: a question that failed is no number, and a failure is no state of replication.
#[tokio::test(start_paused = true)]
async fn each_trouble_leaves_in_time_with_its_reason() {
    for (behaviour, most, reason) in [
        (
            Behaviour::Shows(Box::new(sighting(Role::Replica, 1))),
            2000,
            Reason::DeliveryLag,
        ),
        (Behaviour::Hangs, 2000, Reason::Unreachable),
        (Behaviour::Fails(ProbeFailure::Refused), 400, Reason::Down),
        (Behaviour::Fails(ProbeFailure::AuthFailed), 2100, Reason::AuthFailed),
        (
            Behaviour::Fails(ProbeFailure::PermissionDenied),
            2100,
            Reason::PermissionDenied,
        ),
        (Behaviour::Fails(ProbeFailure::TlsFailed), 2100, Reason::TlsFailed),
    ] {
        let mut stage = Stage::set(&[]).await;
        stage.told();
        stage.hold("b", behaviour.clone());
        stage.run(most).await;
        assert_eq!(stage.list(), ["a"], "{behaviour:?}");
        assert_eq!(stage.seat("b").await, reason, "{behaviour:?}");
        let told = stage.told();
        let withdrawn: Vec<_> = told.iter().filter(|n| n.action == "Withdraw").collect();
        assert_eq!(withdrawn.len(), 1, "{told:?}");
        assert_eq!(
            (withdrawn[0].reason, withdrawn[0].member.as_deref()),
            (reason.as_str(), Some("b"))
        );
        stage.script.release("b");
        stage.run(6000).await;
        assert_eq!(stage.list(), ["a", "b"], "it returns after {behaviour:?}");
    }
}

/// Whoever asks sees figures and a decision of one moment, also when they ask while a timer is due and was not served yet.
#[tokio::test(start_paused = true)]
async fn a_report_and_its_decision_are_of_one_moment() {
    for behaviour in [Behaviour::Shows(Box::new(sighting(Role::Replica, 1))), Behaviour::Hangs] {
        let stage = Stage::set(&[]).await;
        stage.hold("b", behaviour);
        let mut left = false;
        for _ in 0..2500 {
            let asker = stage.handle.asker();
            let (report, ()) = tokio::join!(biased; asker.report(), advance(Duration::from_millis(1)));
            let report = report.unwrap().report;
            let member = report.members.iter().find(|m| &*m.name == "b").unwrap();
            let seat = report.services[0].seats.iter().find(|s| &*s.member == "b").unwrap();
            let within = member.upper.is_some_and(|u| u <= Duration::from_secs(2));
            assert_eq!(seat.listed, within, "{:?} at {:?}", member.upper, report.at);
            left |= !seat.listed;
        }
        assert!(left);
    }
}

#[tokio::test(start_paused = true)]
async fn members_come_and_go() {
    let mut stage = Stage::set(&[]).await;
    stage.configure(|c| c.members.retain(|m| &*m.input.name != "b")).await;
    assert_eq!(stage.list(), ["a"]);
    stage.configure(|_| {}).await;
    stage.run(500).await;
    assert_eq!(stage.list(), ["a", "b"]);
    // A pod made again under its name is another member.
    stage.configure(|c| c.members[2].input.uid = "b-2".into()).await;
    assert_eq!(stage.list(), ["a"]);
    stage.run(500).await;
    assert_eq!(stage.list(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn only_a_leader_nudges() {
    for leads in [true, false] {
        let stage = Stage::set(&[]).await;
        stage.leads.send_replace(leads);
        let mut unflushed = sighting(Role::Primary, 1_000_000);
        unflushed.flushed = Some(Position::Lsn(Lsn(999_999)));
        stage.hold("p", Behaviour::Shows(Box::new(unflushed)));
        stage.run(3000).await;
        let nudges = stage.script.nudges("p");
        assert!(
            if leads { (4..=6).contains(&nudges) } else { nudges == 0 },
            "{leads}: {nudges}"
        );
        assert_eq!(stage.script.nudges("a"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_published_is_kept_at_the_start() {
    let stage = Stage::set(&["a", "b"]).await;
    stage.hold("b", Behaviour::Hangs);
    assert_eq!(stage.list(), ["a", "b"]);
    let view = stage.handle.decided().borrow().clone();
    assert_eq!(view.report.services[0].state, ServiceState::Normal);
    assert_eq!(view.report.services[0].number, 0, "nothing was decided anew");
}

/// PG-74: a figure lives as long as what it is about.
#[tokio::test(start_paused = true)]
async fn figures_can_be_scraped_and_forgotten() {
    let stage = Stage::set(&[]).await;
    stage.hold("b", Behaviour::Hangs);
    stage.run(5000).await;
    let view = stage.handle.asker().report().await.unwrap();
    let scrape =
        |pools: &[_]| String::from_utf8(crate::telemetry::scrape::text(&stage.metrics, pools).unwrap()).unwrap();
    let text = scrape(&[(stage.key.clone(), view.report.clone())]);
    for line in [
        r#"lagwarden_pool_serving{namespace="shop",pool="orders",service="reads"} 1"#,
        r#"lagwarden_replica_in_service{namespace="shop",pool="orders",replica="b",service="reads"} 0"#,
        r#"lagwarden_replica_state{namespace="shop",pool="orders",replica="b",service="reads",state="Lagging"} 1"#,
        r#"lagwarden_primary_info{namespace="shop",pool="orders",replica="p"} 1"#,
        r#"lagwarden_probe_failures_total{kind="Timeout",namespace="shop",pool="orders"}"#,
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    stage.metrics.forget(&stage.key, &["reads"]);
    let text = scrape(&[]);
    assert!(!text.contains("orders"), "{text}");
}

/// A loop that is busy loses no answer, and a reader that never reads costs only notices.
#[tokio::test(start_paused = true)]
async fn notices_that_nobody_takes_are_dropped_and_counted() {
    let stage = Stage::with_room_for(2, &[]).await;
    stage.hold("b", Behaviour::Fails(ProbeFailure::Refused));
    stage.run(1000).await;
    stage.script.release("b");
    stage.run(5000).await;
    assert_eq!(stage.list(), ["a", "b"], "the loop goes on");
    let text = crate::telemetry::scrape::text(&stage.metrics, &[]).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lost = text
        .lines()
        .find(|l| l.starts_with("lagwarden_worker_queue_overflows_total"))
        .unwrap();
    assert!(!lost.ends_with(" 0"), "{lost}");
}
