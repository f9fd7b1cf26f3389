//! The source of truth: what is known of the resolved primary, and how its silence is read.
//!
//! **Silence.** Nobody can get staler than a primary that is down, so while it is silent a member is judged by the last
//! position the primary confirmed: the bound becomes relative. The price is stated in the status, because if only *we*
//! lost the primary, clients may still write to it. Replicas are then compared with each other: what one of them shows
//! the primary had, so one that stops while another moves on is still found.
//!
//! **The end of silence.** With the first answer the absolute bound would count the whole silence against members that
//! missed nothing, and throw all of them out at the very moment the database is back. So a member that has not yet shown
//! anything newer is judged by the last confirmed position plus the time since the first answer: without end when the
//! primary restarted meanwhile (it was down; standbys reconnect within `wal_retrieve_retry_interval`, 5 s), for one
//! renewal window when it did not (only we had lost it).
//!
//! **Promotion.** A new history inherits what the promoted member was seen to hold; see [`Timeline::promoted`].

use std::time::Duration;

use super::agenda::Agenda;
use super::lease::{Bound, Lease};
use super::member::{Member, MemberName};
use super::moment::Moment;
use super::position::{ClusterId, Incarnation, Position};
use super::primary::{Members, Primary};
use super::settings::{OnPrimarySilent, PoolSettings};
use super::sighting::{Observation, Role, Sighting, StandbyView};
use super::timeline::Timeline;

/// A silence that ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Gap {
    /// When the last sample before it was sent.
    before: Moment,
    /// When the first answer after it was known.
    returned: Moment,
    /// Whether the server process was another one after it.
    restarted: bool,
}

impl Gap {
    fn lasts(self, agenda: &mut Agenda, settings: &PoolSettings) -> bool {
        self.restarted || !agenda.passed(self.returned + settings.renewal())
    }
}

/// What is known of the primary.
#[derive(Clone, Debug)]
pub struct Source {
    /// Who it is.
    pub primary: Primary,
    /// Who it was when people were last told.
    pub told: Primary,
    /// Who it last was.
    pub incumbent: Option<MemberName>,
    /// The cluster that members must belong to.
    pub cluster: Option<ClusterId>,
    timeline: Option<Timeline>,
    incarnation: Option<Incarnation>,
    /// When its newest answer was known.
    answered: Option<Moment>,
    gap: Option<Gap>,
    /// Since when a position is known that it had not made durable at its newest answer.
    unflushed_since: Option<Moment>,
    nudged: Option<Moment>,
}

impl Default for Source {
    fn default() -> Self {
        Self {
            primary: Primary::NotYet,
            told: Primary::NotYet,
            incumbent: None,
            cluster: None,
            timeline: None,
            incarnation: None,
            answered: None,
            gap: None,
            unflushed_since: None,
            nudged: None,
        }
    }
}

impl Source {
    /// The primary's timeline, when anything is known of it.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// When the primary last answered.
    pub fn answered(&self) -> Option<Moment> {
        self.answered
    }

    /// Takes the resolved primary's own answer in, and what it shows of the others.
    pub fn observe(
        &mut self,
        sighting: &Sighting,
        observation: &Observation,
        members: &mut Members,
        settings: &PoolSettings,
    ) {
        let Some(position) = &sighting.position else { return };
        self.enter(sighting, members);
        let Some(timeline) = &mut self.timeline else { return };
        if let (Some(last), Some(newest)) = (self.answered, timeline.newest().and_then(|s| s.sent))
            && observation.answered > last + settings.silent_after()
        {
            // An answer that was asked for before the silence and known after it belongs to before.
            let straddles = observation.asked <= last + settings.silent_after();
            self.gap = Some(Gap {
                before: if straddles { observation.asked } else { newest },
                returned: observation.answered,
                restarted: self.incarnation != Some(sighting.incarnation),
            });
        }
        self.incarnation = Some(sighting.incarnation);
        self.answered = Some(observation.answered);
        timeline.record(position.clone(), observation.asked, observation.answered);
        self.unflushed_since = sighting
            .flushed
            .as_ref()
            .and_then(|f| timeline.above(f))
            .map(|s| s.answered);
        show(members, &sighting.standbys, observation.asked, timeline);
    }

    /// Notes what a replica showed while the primary is silent: the primary had it.
    pub fn witness(&mut self, member: &Member, now: Moment, settings: &PoolSettings) {
        let silent = self.is_silent(&mut Agenda::at(now), settings);
        let (Some(timeline), Some(seen), true) = (&mut self.timeline, &member.seen, silent) else {
            return;
        };
        let shown = seen.position.as_ref().and_then(|p| timeline.translate(seen.history, p));
        if let Some(shown) = shown.filter(|_| seen.role == Role::Replica) {
            timeline.witness(&shown, now);
        }
    }

    /// Whether the primary is resolved and gives no sign.
    pub fn is_silent(&self, agenda: &mut Agenda, settings: &PoolSettings) -> bool {
        self.primary.name().is_some()
            && self
                .answered
                .is_some_and(|at| agenda.passed(at + settings.silent_after()))
    }

    /// Whether a replica showed something newer than the primary's last confirmed position: it lives, and only we lost it.
    pub fn moves_unseen(&self) -> bool {
        self.timeline
            .as_ref()
            .and_then(|t| t.frontier().zip(t.newest()))
            .is_some_and(|(frontier, newest)| !newest.position.contains(frontier))
    }

    /// The upper bound that `lease` gives a member last heard of at `answered`.
    pub fn bound(
        &self,
        lease: &Lease,
        answered: Moment,
        on_silent: OnPrimarySilent,
        agenda: &mut Agenda,
        settings: &PoolSettings,
    ) -> Bound {
        let absolute = Bound::absolute(lease);
        if on_silent == OnPrimarySilent::Expire {
            return absolute;
        }
        let newest = self.timeline.as_ref().and_then(Timeline::newest).and_then(|s| s.sent);
        if self.is_silent(agenda, settings) {
            let relative = Bound {
                base: newest.map_or(Duration::MAX, |newest| newest.since(lease.reference)),
                grows_after: answered + settings.periods.probe,
            };
            return absolute.min(relative, agenda.now());
        }
        match self.gap {
            Some(gap) if lease.reference <= gap.before && gap.lasts(agenda, settings) => {
                let resumed = Bound {
                    base: gap.before.since(lease.reference),
                    grows_after: gap.returned,
                };
                absolute.min(resumed, agenda.now())
            }
            _ => absolute,
        }
    }

    /// Whether a silence ended within the last ten seconds.
    #[cfg(test)]
    pub(super) fn is_recent_gap(&self, now: Moment) -> bool {
        self.gap
            .is_some_and(|gap| now.since(gap.returned) < Duration::from_secs(10))
    }

    /// Whether the primary should be asked to make what it has durable; notes that it is.
    pub fn nudge(&mut self, agenda: &mut Agenda, settings: &PoolSettings) -> bool {
        let Some(since) = self.unflushed_since else {
            return false;
        };
        let rested = self
            .nudged
            .is_none_or(|at| agenda.reached(at + settings.nudge_spacing()));
        if agenda.reached(since + settings.nudge_after()) && rested && !self.is_silent(agenda, settings) {
            self.nudged = Some(agenda.now());
            agenda.reached(agenda.now() + settings.nudge_spacing());
            return true;
        }
        false
    }

    /// Makes the timeline that of the sighting's history.
    fn enter(&mut self, sighting: &Sighting, members: &mut Members) {
        let history = sighting.history;
        if self.timeline.as_ref().is_some_and(|t| t.history() == history) {
            return;
        }
        let inherited = self.timeline.as_ref().and_then(|old| {
            let promoted = members.get(self.primary.name()?)?;
            let held = promoted.held_before_promotion(old, sighting)?;
            Some(old.promoted(history, &held))
        });
        let timeline = inherited.unwrap_or_else(|| Timeline::new(history));
        for member in members.values_mut() {
            member.prove_again(&timeline);
        }
        self.timeline = Some(timeline);
        // The silence, if there was one, was the old primary's.
        self.gap = None;
        self.answered = None;
        self.incarnation = None;
        self.unflushed_since = None;
    }
}

/// Tells each member what the primary's standbys show of it. A row counts for a member only when no other row and no other
/// member could be meant: by address, and where members share one (a NAT, one host) by name too.
fn show(members: &mut Members, standbys: &[StandbyView], asked: Moment, timeline: &Timeline) {
    let mut matches: Vec<(MemberName, Option<&StandbyView>)> = Vec::new();
    for member in members.values() {
        let Some(address) = member.input.address else { continue };
        let sharing = members.values().filter(|m| m.input.address == Some(address)).count();
        let mut rows = standbys
            .iter()
            .filter(|row| row.address == Some(address))
            .filter(|row| sharing == 1 || row.name == member.input.name);
        match (rows.next(), rows.next()) {
            (row @ Some(_), None) => matches.push((member.input.name.clone(), row)),
            (None, _) if member.view.is_some() => matches.push((member.input.name.clone(), None)),
            (None, _) | (Some(_), Some(_)) => {}
        }
    }
    for (name, row) in matches {
        if let Some(member) = members.get_mut(&name) {
            let replayed: Option<&Position> = row.and_then(|r| r.replayed.as_ref());
            member.shown(row.is_some_and(|r| r.streaming), replayed, asked, timeline);
        }
    }
}
