//! The loop: takes messages, lets the policy decide, tells what changed.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep_until;

use super::pace::Pace;
use super::prober::{Message, Orders, Prober, Via, Whose};
use super::{Command, Config, Contact, PoolMember, Published, View};
use crate::clock::Clock;
use crate::engine::Target;
use crate::policy::member::{MemberInput, MemberName};
use crate::policy::moment::Moment;
use crate::policy::pool::{Event, Pool, Step};
use crate::policy::sighting::{Observation, Outcome};
use crate::telemetry::events::{Notice, Recorder};

/// A member's prober; it ends when this is dropped.
struct Probing {
    uid: Arc<str>,
    target: Target,
    task: JoinHandle<()>,
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The state of one pool.
pub(super) struct Worker {
    pool: Pool,
    config: Config,
    clock: Clock,
    recorder: Recorder,
    leads: watch::Receiver<bool>,
    notices: mpsc::Sender<Notice>,
    orders: watch::Sender<Orders>,
    answers: mpsc::Receiver<(Whose, Message)>,
    answer: mpsc::Sender<(Whose, Message)>,
    probing: BTreeMap<MemberName, Probing>,
    contacts: BTreeMap<MemberName, Contact>,
    nudge_failure: Option<Arc<str>>,
    decided: watch::Sender<Arc<View>>,
    wake: Option<Moment>,
}

impl Worker {
    pub(super) fn new(
        config: Config,
        published: Vec<Published>,
        clock: Clock,
        recorder: Recorder,
        leads: watch::Receiver<bool>,
        notices: mpsc::Sender<Notice>,
    ) -> (Self, watch::Receiver<Arc<View>>) {
        let now = clock.now();
        let pool = Pool::new(config.settings.clone(), now);
        let (orders, _) = watch::channel(Orders {
            access: Arc::new(config.access.clone()),
            pace: Pace::new(now, config.settings.periods),
            flush_within: config.settings.nudge_spacing(),
            nudges: 0,
        });
        let (answer, answers) = mpsc::channel(super::ANSWERS);
        let view = View {
            generation: config.generation,
            report: pool.report(now),
            contacts: BTreeMap::new(),
            nudge_failure: None,
        };
        let (decided, watcher) = watch::channel(Arc::new(view));
        let mut worker = Self {
            pool,
            config,
            clock,
            recorder,
            leads,
            notices,
            orders,
            answers,
            answer,
            probing: BTreeMap::new(),
            contacts: BTreeMap::new(),
            nudge_failure: None,
            decided,
            wake: None,
        };
        worker.adopt(published);
        (worker, watcher)
    }

    /// Runs until its handle is dropped.
    pub(super) async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        self.enroll();
        loop {
            let wake = self.wake;
            let clock = self.clock.clone();
            let timer = async move {
                match wake {
                    Some(at) => sleep_until(clock.instant(at)).await,
                    None => pending().await,
                }
            };
            // Biased: after a pause of this process, answers that wait are heard before anything ends a lease. They come at
            // the pool's own pace, so commands and the timer have their turn.
            tokio::select! {
                biased;
                Some((whose, message)) = self.answers.recv() => self.hear(&whose, message),
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                () = timer => self.wake_up(wake),
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Configure(config) => self.configure(*config),
            Command::Adopt(published) => self.adopt(published),
            Command::Report(answer) => {
                // Figures and decision are of one moment: what is due by now is decided first.
                let now = self.clock.now();
                self.step_at(Event::Tick, now);
                // Whoever asked may have stopped waiting.
                drop(answer.send(self.view(now)));
            }
        }
    }

    fn configure(&mut self, config: Config) {
        let settings = config.settings != self.config.settings;
        let members = config.members != self.config.members;
        let access = Arc::new(config.access.clone());
        self.orders.send_if_modified(|orders| {
            let changed = *orders.access != *access;
            if changed {
                orders.access = access;
            }
            let paced = orders.pace.periods != config.settings.periods;
            orders.pace.periods = config.settings.periods;
            orders.flush_within = config.settings.nudge_spacing();
            changed || paced
        });
        self.config = config;
        if settings {
            self.step(Event::Settings(self.config.settings.clone()));
        }
        if members {
            self.enroll();
        }
        // Readers learn which configuration is followed even when nothing changed by it.
        self.decided.send_replace(Arc::new(self.view(self.clock.now())));
    }

    fn adopt(&mut self, published: Vec<Published>) {
        for Published { service, endpoints } in published {
            self.step(Event::Adopted { service, endpoints });
        }
    }

    /// Starts and ends probers so that each member has one, and tells the policy who belongs.
    fn enroll(&mut self) {
        let members = self.config.members.clone();
        let wanted = |name: &MemberName, probing: &Probing| {
            members
                .iter()
                .any(|m| m.input.name == *name && m.input.uid == probing.uid && m.target == probing.target)
        };
        self.probing.retain(|name, probing| wanted(name, probing));
        self.contacts
            .retain(|name, _| members.iter().any(|m| m.input.name == *name));
        for member in &members {
            if !self.probing.contains_key(&member.input.name) {
                self.probe(member);
            }
        }
        let inputs = members.iter().map(|m| self.input(m)).collect();
        self.step(Event::Members(inputs));
    }

    fn probe(&mut self, member: &PoolMember) {
        let whose = Whose {
            name: member.input.name.clone(),
            uid: member.input.uid.clone(),
        };
        let prober = Prober::new(
            whose,
            member.target.clone(),
            self.clock.clone(),
            self.orders.subscribe(),
            self.answer.clone(),
        );
        let probing = Probing {
            uid: member.input.uid.clone(),
            target: member.target.clone(),
            task: tokio::spawn(prober.run()),
        };
        self.contacts.insert(member.input.name.clone(), Contact::default());
        self.probing.insert(member.input.name.clone(), probing);
    }

    /// A member as the policy knows it: where the source of members gives a name, the address is the one connected to.
    fn input(&self, member: &PoolMember) -> MemberInput {
        let mut input = member.input.clone();
        let peer = self.contacts.get(&input.name).and_then(|c| c.peer);
        input.address = input.address.or(peer);
        input
    }

    fn hear(&mut self, whose: &Whose, message: Message) {
        let current = self.probing.get(&whose.name).is_some_and(|p| p.uid == whose.uid);
        match message {
            Message::Answer {
                observation,
                via,
                error,
            } if current => {
                self.recorder.observed(&whose.name, &observation);
                self.note(whose, &observation, via, error);
                self.step(Event::Observed {
                    member: whose.name.clone(),
                    uid: whose.uid.clone(),
                    observation,
                });
            }
            Message::Nudged(failed) if current => {
                self.recorder.nudged(failed.as_deref());
                self.nudge_failure = failed;
            }
            Message::Answer { .. } | Message::Nudged(_) => {}
        }
    }

    fn note(&mut self, whose: &Whose, observation: &Observation, via: Option<Via>, error: Option<Arc<str>>) {
        let Some(contact) = self.contacts.get_mut(&whose.name) else {
            return;
        };
        contact.failure = match observation.outcome {
            Outcome::Seen(_) => None,
            Outcome::Failed(_) => error,
        };
        let Some(via) = via else { return };
        let moved = contact.peer != Some(via.peer);
        contact.peer = Some(via.peer);
        if contact.version.as_ref() != Some(&via.version) {
            contact.version = Some(via.version);
        }
        if moved {
            let inputs = self.config.members.iter().map(|m| self.input(m)).collect();
            self.step(Event::Members(inputs));
            self.decided.send_replace(Arc::new(self.view(self.clock.now())));
        }
    }

    fn wake_up(&mut self, at: Option<Moment>) {
        if let Some(at) = at {
            self.recorder.woke_late(self.clock.now().since(at));
        }
        self.step(Event::Tick);
    }

    fn step(&mut self, event: Event) {
        self.step_at(event, self.clock.now());
    }

    fn step_at(&mut self, event: Event, now: Moment) {
        let Step {
            transitions,
            wake,
            nudge,
        } = self.pool.step(event, now);
        self.wake = wake;
        if nudge && *self.leads.borrow() {
            self.orders.send_modify(|orders| orders.nudges += 1);
        }
        if transitions.is_empty() {
            return;
        }
        for transition in &transitions {
            if let Some(notice) = self.recorder.changed(transition)
                && self.notices.try_send(notice).is_err()
            {
                self.recorder.overflowed();
            }
        }
        self.decided.send_replace(Arc::new(self.view(now)));
    }

    fn view(&self, now: Moment) -> View {
        View {
            generation: self.config.generation,
            report: self.pool.report(now),
            contacts: self.contacts.clone(),
            nudge_failure: self.nudge_failure.clone(),
        }
    }
}
