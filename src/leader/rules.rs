//! The rules of the election, without I/O or clock: what to do next, and what an answer means.

use std::time::Duration;

use super::Leadership;
use crate::policy::moment::Moment;

/// How long everything takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timings {
    /// For how long a record is valid after it was last seen to change. Whole seconds.
    pub lease: Duration,
    /// For how long after sending a renewal the holder may write.
    pub renew_deadline: Duration,
    /// Between two attempts, to renew or to take over; up to a fifth longer.
    pub retry: Duration,
    /// For one call at the most.
    pub call: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(4),
            renew_deadline: Duration::from_secs(3),
            retry: Duration::from_millis(500),
            call: Duration::from_secs(1),
        }
    }
}

impl Timings {
    /// What is wrong with these timings, in words; absent when nothing is.
    pub fn mistake(&self) -> Option<String> {
        if self.lease.subsec_nanos() != 0 || self.lease.is_zero() {
            return Some(format!(
                "the lease of {:?} is not a whole number of seconds",
                self.lease
            ));
        }
        if self.renew_deadline >= self.lease {
            return Some(format!(
                "the renew deadline of {:?} is not below the lease of {:?}",
                self.renew_deadline, self.lease
            ));
        }
        if self.retry.mul_f64(1.2) >= self.renew_deadline {
            return Some(format!(
                "the retry of {:?} leaves no second attempt within {:?}",
                self.retry, self.renew_deadline
            ));
        }
        None
    }
}

/// A Lease as found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Its version: another one means that it was written since.
    pub version: String,
    /// Who holds it; absent when it was given back.
    pub holder: Option<String>,
    /// For how long, as its holder wrote.
    pub duration: Option<Duration>,
    /// How often it has changed hands.
    pub transitions: u64,
}

/// What to do next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing before this moment.
    Wait(Moment),
    /// Read the Lease.
    Get,
    /// Make it, held by us.
    Create,
    /// Write it, held by us, if it is still at this version.
    Put {
        /// The version that was seen.
        version: String,
        /// What to write as how often it has changed hands.
        transitions: u64,
    },
}

/// What came of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The Lease is this now.
    Is(Record),
    /// There is none.
    Absent,
    /// Somebody else wrote first.
    Conflict,
    /// Not known: no answer, or an error.
    Failed,
}

/// The machine.
#[derive(Clone, Debug)]
pub struct Rules {
    identity: String,
    timings: Timings,
    /// The record as last seen, and when it was first seen like this.
    seen: Option<(Record, Moment)>,
    /// When the last renewal that was stored was sent, while we hold the Lease.
    renewed: Option<Moment>,
    /// What is to be done without waiting: a call that follows from the last answer.
    at_once: Option<Action>,
    next: Moment,
}

impl Rules {
    /// A candidate that knows nothing yet.
    pub fn new(identity: String, timings: Timings) -> Self {
        Self {
            identity,
            timings,
            seen: None,
            renewed: None,
            at_once: Some(Action::Get),
            next: Moment::ORIGIN,
        }
    }

    /// What to do at `now`. `jitter`, within 0 and 1, spreads candidates.
    pub fn next(&mut self, now: Moment, jitter: f64) -> Action {
        if self.renewed.is_some_and(|at| now >= at + self.timings.renew_deadline) {
            // Too late to renew safely: we stand by, and look again.
            self.renewed = None;
            self.at_once = Some(Action::Get);
        }
        if let Some(action) = self.at_once.take() {
            self.next = now + self.timings.retry.mul_f64(1.0 + 0.2 * jitter.clamp(0.0, 1.0));
            return action;
        }
        if now < self.next {
            let deadline = self.renewed.map(|at| at + self.timings.renew_deadline);
            return Action::Wait(deadline.map_or(self.next, |deadline| self.next.min(deadline)));
        }
        self.next = now + self.timings.retry.mul_f64(1.0 + 0.2 * jitter.clamp(0.0, 1.0));
        match (&self.renewed, &self.seen) {
            (Some(_), Some((record, _))) => renewal(record),
            _ => Action::Get,
        }
    }

    /// For how long a call that is made at `now` may be waited for.
    pub fn call_within(&self, now: Moment) -> Duration {
        match self.renewed {
            Some(at) => self.timings.call.min((at + self.timings.renew_deadline).since(now)),
            None => self.timings.call,
        }
    }

    /// Takes the answer to `action` in, which was sent at `sent` and answered at `now`.
    pub fn hear(&mut self, action: &Action, sent: Moment, answer: Answer, now: Moment) {
        match (action, answer) {
            (Action::Get, Answer::Is(record)) => self.found(record, now),
            (Action::Get | Action::Put { .. }, Answer::Absent) => {
                self.seen = None;
                self.at_once = Some(Action::Create);
            }
            (Action::Create | Action::Put { .. }, Answer::Is(record)) => {
                self.seen = Some((record, now));
                self.renewed = Some(sent);
            }
            (Action::Create | Action::Put { .. }, Answer::Conflict) => self.at_once = Some(Action::Get),
            // Whether a write that failed was stored is not known: the next look tells, by our own name in it.
            (Action::Create | Action::Put { .. }, Answer::Failed) => self.seen = None,
            (Action::Create, Answer::Absent)
            | (Action::Get, Answer::Conflict | Answer::Failed)
            | (Action::Wait(_), _) => {}
        }
    }

    /// Whether we lead at `now`.
    pub fn leadership(&self, now: Moment) -> Leadership {
        let holder = self.seen.as_ref().and_then(|(record, _)| record.holder.clone());
        match self.renewed.map(|at| at + self.timings.renew_deadline) {
            Some(until) if now < until => Leadership::Leading {
                term: self.seen.as_ref().map_or(0, |(record, _)| record.transitions),
                until,
            },
            _ => Leadership::Standby { holder },
        }
    }

    /// The version and the count of a Lease that we hold at `now`, to give it back.
    pub fn held(&self, now: Moment) -> Option<(String, u64)> {
        let (record, _) = self.seen.as_ref().filter(|_| self.leadership(now).leads())?;
        Some((record.version.clone(), record.transitions))
    }

    fn found(&mut self, record: Record, now: Moment) {
        let since = match &self.seen {
            Some((known, since)) if known.version == record.version => *since,
            _ => now,
        };
        let ours = record.holder.as_deref() == Some(self.identity.as_str());
        let valid_for = record.duration.unwrap_or(self.timings.lease);
        let expired = now >= since + valid_for;
        self.at_once = match &record.holder {
            _ if ours => Some(renewal(&record)),
            None => Some(takeover(&record)),
            Some(_) if expired => Some(takeover(&record)),
            Some(_) => None,
        };
        if !ours {
            self.renewed = None;
        }
        self.seen = Some((record, since));
    }
}

fn renewal(record: &Record) -> Action {
    Action::Put {
        version: record.version.clone(),
        transitions: record.transitions,
    }
}

fn takeover(record: &Record) -> Action {
    Action::Put {
        version: record.version.clone(),
        transitions: record.transitions.saturating_add(1),
    }
}

#[cfg(test)]
mod tests;
