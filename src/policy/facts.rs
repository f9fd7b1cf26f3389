//! How silence is read: which members are down, which are blind, and whether the blindness is ours.
//!
//! *Refusal is an answer.* A member that refuses twice in a row is down, whatever its lease, provided that somebody else
//! answered meanwhile: a network policy can refuse us everywhere at once, and then the trouble is ours.
//!
//! *Silence is not.* A member that does not answer for a while is blind. When most members are blind or refuse at once the
//! common cause is likely on our side, so they keep their state for [`FREEZE_MAX`]; when the primary is among them, for as
//! long as it lasts.
//!
//! *The primary is a second witness.* While most members are cut off from us, one that the primary shows streaming is
//! alive, and what the primary shows of it is proof; one that the primary has lost too is not kept. One member alone that
//! does not answer us leaves all the same: others can serve, and clients may not reach it either.

use std::time::Duration;

use super::agenda::Agenda;
use super::lease::Bound;
use super::member::{Member, MemberName, Standing};
use super::moment::Moment;
use super::primary::Members;
use super::reason::Reason;
use super::settings::{OnPrimarySilent, PoolSettings};
use super::source::Source;
use super::transition::Transition;

/// How long blind members keep their state while only most are blind.
pub const FREEZE_MAX: Duration = Duration::from_secs(30);

/// How a member and we are in contact. Later ones weigh more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Contact {
    /// It answers; a failure or two between answers is no more than that.
    Answering,
    /// Every attempt has failed for a renewal window, and not by silence.
    Troubled,
    /// It has given no answer for [`PoolSettings::blind_after`].
    Blind,
    /// It is blind, and keeps its state, because the blindness is likely ours.
    Kept,
    /// Its server refuses.
    Down,
}

/// How many members we are in contact with. Later ones include what the earlier ones mean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// Most answer.
    Most,
    /// Most are blind or refuse: what the primary shows of them counts.
    Few,
    /// Most are blind, or were a moment ago, and those blind that the primary has not lost too keep their state.
    Frozen,
    /// Nobody answers us, the primary included.
    Isolated,
}

/// What one step knows of one member, the same for every service.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Whose fact it is.
    pub name: MemberName,
    /// Why it may not serve whatever its lag; absent when it may.
    pub excluded: Option<Reason>,
    /// How it and we are in contact.
    pub contact: Contact,
    /// What the newest failure says; absent when its newest attempt was answered.
    pub trouble: Option<Reason>,
}

impl Fact {
    /// Whether its server refuses.
    pub fn is_down(&self) -> bool {
        self.contact == Contact::Down
    }

    /// Whether it keeps its state although it is blind.
    pub fn is_kept(&self) -> bool {
        self.contact == Contact::Kept
    }

    /// Why it gives no news; absent while it answers.
    fn lost(&self) -> Option<Reason> {
        self.trouble.filter(|_| self.contact != Contact::Answering)
    }

    /// Whether it has given no answer for long, kept or not.
    pub fn is_blind(&self) -> bool {
        matches!(self.contact, Contact::Blind | Contact::Kept)
    }
}

/// What one step knows of all members.
#[derive(Clone, Debug)]
pub struct Facts {
    /// One for each member, by name.
    pub members: Vec<Fact>,
    /// How many members we are in contact with.
    pub reach: Reach,
    /// The primary is resolved and gives no sign.
    pub silent: bool,
    /// The primary is not resolved.
    pub unresolved: bool,
}

/// Since when most members are blind.
#[derive(Clone, Default, Debug)]
pub struct Blindness {
    since: Option<Moment>,
    /// When most last were.
    last: Moment,
}

impl Facts {
    /// What is known before the first look.
    pub fn nothing() -> Self {
        Self {
            members: Vec::new(),
            reach: Reach::Most,
            silent: false,
            unresolved: true,
        }
    }

    /// Reads the silence of every member.
    pub fn gather(
        members: &Members,
        source: &Source,
        settings: &PoolSettings,
        blindness: &mut Blindness,
        agenda: &mut Agenda,
    ) -> Self {
        let blind: Vec<bool> = members
            .values()
            .map(|m| agenda.passed(m.quiet_since() + settings.blind_after()))
            .collect();
        let silent = source.is_silent(agenda, settings);
        let unresolved = source.primary.name().is_none();
        let cut = |member: &Member, blind: bool| blind || member.refusals() > 0;
        let replicas = || {
            let all = members.values().zip(&blind);
            all.filter(|(m, _)| source.primary.name() != Some(&m.input.name) && m.input.standing == Standing::Eligible)
        };
        let (count, cut_off) = (replicas().count(), replicas().filter(|(m, b)| cut(m, **b)).count());
        let nobody = !members.is_empty() && members.values().zip(&blind).all(|(m, b)| cut(m, *b));
        let mut facts = Self {
            members: Vec::with_capacity(members.len()),
            reach: match (nobody, cut_off * 2 > count) {
                (true, _) => Reach::Isolated,
                (false, true) => Reach::Few,
                (false, false) => Reach::Most,
            },
            silent,
            unresolved,
        };
        let mut blind_count = 0;
        for (member, blind) in members.values().zip(&blind) {
            let contact = facts.contact(member, *blind, members, settings, agenda);
            let is_replica = source.primary.name() != Some(&member.input.name);
            let eligible = member.input.standing == Standing::Eligible;
            let witnessed = facts.is_witnessed(member, member.quiet_since());
            blind_count += usize::from(contact == Contact::Blind && is_replica && eligible && !witnessed);
            facts.members.push(Fact {
                name: member.input.name.clone(),
                excluded: excluded(member, source),
                contact,
                trouble: member.trouble.map(|t| Reason::from(t.kind)),
            });
        }
        facts.freeze(
            blind_count * 2 > count,
            settings.blind_after(),
            blindness,
            members,
            agenda,
        );
        facts
    }

    /// What contact with members is another than `before`.
    pub fn compare(&self, before: &Self, out: &mut Vec<Transition>) {
        for fact in &self.members {
            let old = before.members.iter().find(|f| f.name == fact.name);
            let (from, told) = old.map_or((Contact::Answering, None), |f| (f.contact, f.lost()));
            if fact.contact != from || fact.lost() != told {
                out.push(Transition::Contact {
                    member: fact.name.clone(),
                    from,
                    to: fact.contact,
                    reason: fact.lost(),
                });
            }
        }
    }

    /// The upper bound of `member`'s staleness, from its own answers and, while most members are cut off, the primary's
    /// view. Absent without a proof.
    pub fn bound(
        &self,
        member: &Member,
        source: &Source,
        on_silent: OnPrimarySilent,
        agenda: &mut Agenda,
        settings: &PoolSettings,
    ) -> Option<Bound> {
        let answered = member.quiet_since();
        let own = member
            .lease
            .as_ref()
            .map(|l| source.bound(l, answered, on_silent, agenda, settings));
        let view = member.view.as_ref().filter(|_| self.reach >= Reach::Few);
        let shown = view
            .and_then(|v| v.lease.as_ref().map(|l| (l, v.asked)))
            .map(|(lease, asked)| source.bound(lease, asked.max(answered), on_silent, agenda, settings));
        match (own, shown) {
            (Some(own), Some(shown)) => Some(own.min(shown, agenda.now())),
            (own, shown) => own.or(shown),
        }
    }

    fn contact(
        &self,
        member: &Member,
        blind: bool,
        members: &Members,
        settings: &PoolSettings,
        agenda: &mut Agenda,
    ) -> Contact {
        if self.reach < Reach::Isolated && self.is_down(member, members) {
            Contact::Down
        } else if blind {
            Contact::Blind
        } else if member.trouble.is_some() && agenda.passed(member.quiet_since() + settings.renewal()) {
            Contact::Troubled
        } else {
            Contact::Answering
        }
    }

    fn is_down(&self, member: &Member, members: &Members) -> bool {
        let Some(trouble) = member.trouble.filter(|t| t.refusals >= 2) else {
            return false;
        };
        let somebody_answered = members.values().any(|other| {
            other.input.name != member.input.name
                && other.answers()
                && other.seen.as_ref().is_some_and(|s| s.asked >= trouble.refused_since)
        });
        let alive = !trouble.by_server && self.is_witnessed(member, trouble.refused_since);
        somebody_answered && !alive
    }

    /// Whether the primary showed it streaming in an answer that was asked for after `since`, and is worth asking.
    fn is_witnessed(&self, member: &Member, since: Moment) -> bool {
        let shown = member.view.as_ref().is_some_and(|v| v.streaming && v.asked >= since);
        shown && self.reach >= Reach::Few && !self.silent && !self.unresolved
    }

    fn freeze(
        &mut self,
        most_blind: bool,
        grace: Duration,
        blindness: &mut Blindness,
        members: &Members,
        agenda: &mut Agenda,
    ) {
        let isolated = self.reach == Reach::Isolated;
        if most_blind || isolated {
            blindness.last = agenda.now();
        }
        // When contact returns, members answer one after another: those that have yet to are not thrown out meanwhile.
        let ending = blindness.since.is_some() && !agenda.passed(blindness.last + grace);
        if !most_blind && !isolated && !ending {
            blindness.since = None;
            return;
        }
        let since = blindness.since.get_or_insert(agenda.now());
        if isolated {
            *since = agenda.now();
        } else if agenda.reached(*since + FREEZE_MAX) {
            return;
        }
        self.reach = self.reach.max(Reach::Frozen);
        for (fact, member) in self.members.iter_mut().zip(members.values()) {
            let lost_by_primary = !self.silent && member.view.as_ref().is_some_and(|v| !v.streaming);
            if fact.contact == Contact::Blind && (isolated || !lost_by_primary) {
                fact.contact = Contact::Kept;
            }
        }
    }
}

fn excluded(member: &Member, source: &Source) -> Option<Reason> {
    match member.input.standing {
        Standing::Manual => return Some(Reason::Manual),
        Standing::Terminating => return Some(Reason::Terminating),
        Standing::PodNotReady => return Some(Reason::PodNotReady),
        Standing::Eligible => {}
    }
    let seen = member.seen.as_ref()?;
    if source.cluster.is_some_and(|ours| seen.history.cluster != ours) {
        return Some(Reason::ForeignServer);
    }
    member.claims_primary().then_some(Reason::RoleChanged)
}
