//! What is known of one member: who it is, what it showed, and how its silence is to be read.
//!
//! Nothing here knows a service or a limit. A member's own answers are evidence; the primary's view of it is a second
//! witness, kept apart because it is used only when most members do not answer us at once (see [`super::facts`]).

use std::net::IpAddr;
use std::sync::Arc;

use super::lease::{Lease, Lower};
use super::moment::Moment;
use super::motion::Motion;
use super::position::{History, Incarnation, Position};
use super::sighting::{Observation, Outcome, ProbeFailure, Receiver, Replay, Role, Sighting};
use super::timeline::Timeline;

/// A member's name: the pod's, or the one its host entry gives. Unique within the pool; ties are broken by it.
pub type MemberName = Arc<str>;

/// Whether a member may serve at all, as far as the outside world says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Nothing speaks against it.
    Eligible,
    /// Its pod is not running or not ready.
    PodNotReady,
    /// Its pod is being deleted.
    Terminating,
    /// A person took it out.
    Manual,
}

/// A member as the pool's source of members describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberInput {
    /// Its name.
    pub name: MemberName,
    /// What distinguishes it from an earlier member of the same name: the pod's uid, or the host entry's address.
    pub uid: Arc<str>,
    /// Where it is reached, to recognise it in the primary's view; absent while unknown.
    pub address: Option<IpAddr>,
    /// Whether it may serve at all.
    pub standing: Standing,
    /// Whether a label or the spec says that it is the primary.
    pub designated: bool,
}

/// The newest answer, without what was consumed from it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// What it said it is.
    pub role: Role,
    /// The history it is on.
    pub history: History,
    /// The run of its process.
    pub incarnation: Incarnation,
    /// What it has.
    pub position: Option<Position>,
    /// What it received.
    pub received: Option<Position>,
    /// Whether it applies.
    pub replay: Option<Replay>,
    /// Whether it receives.
    pub receiver: Option<Receiver>,
    /// When the question was sent.
    pub asked: Moment,
}

/// A run of failures since the last answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trouble {
    /// The newest failure.
    pub kind: ProbeFailure,
    /// When the run began.
    pub since: Moment,
    /// Refusals in a row.
    pub refusals: u32,
    /// When the question that was refused first in that row was sent.
    pub refused_since: Moment,
    /// Whether the server itself said that it takes no connections.
    pub by_server: bool,
}

/// What the primary shows of a member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Whether the primary's newest answer has it streaming.
    pub streaming: bool,
    /// When that answer was asked for.
    pub asked: Moment,
    /// What the member had reported as replayed.
    pub replayed: Option<Position>,
    /// What that proves.
    pub lease: Option<Lease>,
}

/// What is known of one member.
#[derive(Clone, Debug)]
pub struct Member {
    /// Who it is.
    pub input: MemberInput,
    /// When it became a member.
    pub joined: Moment,
    /// Its newest answer.
    pub seen: Option<Seen>,
    /// When that answer was known.
    pub answered: Option<Moment>,
    /// Its newest answer as a replica.
    held: Option<Seen>,
    /// Failures since.
    pub trouble: Option<Trouble>,
    /// What its own answers prove.
    pub lease: Option<Lease>,
    /// How far behind it certainly was at its newest answer.
    pub lower: Option<Lower>,
    /// How its proof moves.
    pub motion: Motion,
    /// What the primary shows of it.
    pub view: Option<View>,
    /// Whether its first judgement is in: it answered when the primary's position was known, or failed twice.
    pub judged: bool,
    attempts: u32,
}

impl Member {
    /// A member of which nothing is known yet.
    pub fn new(input: MemberInput, now: Moment) -> Self {
        Self {
            input,
            joined: now,
            seen: None,
            answered: None,
            held: None,
            trouble: None,
            lease: None,
            lower: None,
            motion: Motion::default(),
            view: None,
            judged: false,
            attempts: 0,
        }
    }

    /// Takes one observation in. `timeline` is the primary's, when known.
    pub fn observe(&mut self, observation: &Observation, timeline: Option<&Timeline>) {
        match &observation.outcome {
            Outcome::Failed(kind) => self.fail(*kind, observation),
            Outcome::Seen(sighting) => self.see(sighting, observation, timeline),
        }
    }

    /// Gives up every proof, and proves again what the newest answer still says on `timeline`.
    pub fn prove_again(&mut self, timeline: &Timeline) {
        self.lease = None;
        self.lower = None;
        self.view = None;
        self.motion = Motion::default();
        let replica = self.seen.clone().filter(|s| s.role == Role::Replica);
        if let Some((seen, answered)) = replica.zip(self.answered) {
            self.prove(&seen, answered, timeline);
        }
    }

    /// Notes what the primary's newest answer, asked for at `asked`, shows of this member; `replayed` is absent when the
    /// member has not reported, `streaming` false when the primary does not list it.
    pub fn shown(&mut self, streaming: bool, replayed: Option<&Position>, asked: Moment, timeline: &Timeline) {
        let before = self.view.take();
        // Reports of one connection never go back: a smaller one comes from another life of the member.
        let regressed = matches!(
            (before.as_ref().and_then(|v| v.replayed.as_ref()), replayed),
            (Some(old), Some(new)) if !new.contains(old)
        );
        if regressed {
            self.lease = None;
        }
        let kept = before.filter(|_| !regressed).and_then(|v| v.lease);
        let lease = replayed
            .filter(|_| streaming)
            .and_then(|p| Lease::on(timeline, p.clone()))
            .map(|lease| lease.or(kept.clone()))
            .or(kept);
        self.view = Some(View {
            streaming,
            asked,
            replayed: replayed.cloned(),
            lease,
        });
    }

    /// What it was last seen to hold on `timeline` before the answer `promoted` said that it is the primary of a later
    /// history; absent when it was not seen, or restarted in between and may have forgotten.
    pub fn held_before_promotion(&self, timeline: &Timeline, promoted: &Sighting) -> Option<Position> {
        let held = self.held.as_ref().filter(|h| h.incarnation == promoted.incarnation)?;
        let later =
            held.history.cluster == promoted.history.cluster && held.history.timeline < promoted.history.timeline;
        timeline
            .translate(held.history, held.position.as_ref()?)
            .filter(|_| later)
    }

    /// Whether it said at its newest answer that it is the primary.
    pub fn claims_primary(&self) -> bool {
        self.seen.as_ref().is_some_and(|s| s.role == Role::Primary)
    }

    /// Whether it has answered, or failed to more than once.
    pub fn heard(&self) -> bool {
        self.seen.is_some() || self.judged
    }

    /// Whether its newest attempt was answered.
    pub fn answers(&self) -> bool {
        self.answered.is_some() && self.trouble.is_none()
    }

    /// Refusals in a row.
    pub fn refusals(&self) -> u32 {
        self.trouble.map_or(0, |t| t.refusals)
    }

    /// Since when nothing was heard of it.
    pub fn quiet_since(&self) -> Moment {
        self.answered.unwrap_or(self.joined)
    }

    fn fail(&mut self, kind: ProbeFailure, observation: &Observation) {
        let trouble = self.trouble.get_or_insert(Trouble {
            kind,
            since: observation.answered,
            refusals: 0,
            refused_since: observation.asked,
            by_server: false,
        });
        trouble.kind = kind;
        match kind {
            ProbeFailure::Refused | ProbeFailure::NotAccepting => {
                if trouble.refusals == 0 {
                    trouble.refused_since = observation.asked;
                }
                trouble.refusals = trouble.refusals.saturating_add(1);
                trouble.by_server = kind == ProbeFailure::NotAccepting;
            }
            // The end of an old connection is no answer to a new one.
            ProbeFailure::ConnectionLost => {}
            ProbeFailure::Timeout
            | ProbeFailure::Unreachable
            | ProbeFailure::NameNotResolved
            | ProbeFailure::TooManyConnections
            | ProbeFailure::Interrupted
            | ProbeFailure::AuthFailed
            | ProbeFailure::PermissionDenied
            | ProbeFailure::DatabaseNotFound
            | ProbeFailure::TlsFailed
            | ProbeFailure::Protocol
            | ProbeFailure::QueryFailed => trouble.refusals = 0,
        }
        self.attempts = self.attempts.saturating_add(1);
        if self.attempts >= 2 {
            self.judged = true;
        }
    }

    fn see(&mut self, sighting: &Sighting, observation: &Observation, timeline: Option<&Timeline>) {
        let seen = Seen {
            role: sighting.role,
            history: sighting.history,
            incarnation: sighting.incarnation,
            position: sighting.position.clone(),
            received: sighting.received.clone(),
            replay: sighting.replay,
            receiver: sighting.receiver,
            asked: observation.asked,
        };
        if self.seen.as_ref().is_some_and(|old| forgets(old, &seen)) {
            self.lease = None;
            self.view = None;
            self.motion = Motion::default();
        }
        self.trouble = None;
        self.answered = Some(observation.answered);
        self.lower = None;
        if seen.role == Role::Primary {
            self.judged = true;
            self.lease = None;
            self.seen = Some(seen);
            return;
        }
        if let Some(timeline) = timeline.filter(|t| !t.is_empty()) {
            self.prove(&seen, observation.answered, timeline);
        }
        self.held = Some(seen.clone());
        self.seen = Some(seen);
    }

    fn prove(&mut self, seen: &Seen, answered: Moment, timeline: &Timeline) {
        // An answer to a question asked before the first sample is no judgement: the next one is.
        self.judged |= timeline.begun().is_some_and(|begun| begun <= seen.asked);
        let Some(shown) = seen.position.as_ref().and_then(|p| timeline.translate(seen.history, p)) else {
            return;
        };
        let stopped = seen.replay == Some(Replay::Paused)
            || (seen.receiver == Some(Receiver::Absent)
                && seen.received.as_ref().is_none_or(|received| shown.contains(received)));
        self.lower = Lower::on(timeline, &shown, seen.asked, stopped);
        if let Some(lease) = Lease::on(timeline, shown.clone()) {
            self.lease = Some(lease.or(self.lease.take()));
        }
        self.motion
            .note(answered, self.lease.as_ref().map(|l| l.reference), &shown);
    }
}

/// Whether what `old` proved says nothing about `new`: another run of the process, another history than one that follows,
/// or a position that went back.
fn forgets(old: &Seen, new: &Seen) -> bool {
    let follows = new.history.cluster == old.history.cluster && new.history.timeline >= old.history.timeline;
    let went_back = match (&old.position, &new.position) {
        (Some(old), Some(new)) => !new.contains(old),
        (Some(_), None) => true,
        (None, _) => false,
    };
    new.incarnation != old.incarnation || !follows || went_back
}
