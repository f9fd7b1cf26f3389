//! The timeline: when the primary is known to have had each position.
//!
//! Two facts are kept for a position. `sent` is the *latest* moment a sample that returned it was sent: whoever holds the
//! position holds everything committed before that moment. `answered` is the *earliest* moment the primary is known to
//! have had it: whoever lacks the position after that moment is behind at least since then. Both are moments of our own
//! clock, so no other machine's clock takes part.
//!
//! An idle primary returns the same position again and again: one entry, whose `sent` moves. So an idle pool's memory
//! does not grow, and its replicas stay proven without anything being written.
//!
//! Memory: full resolution for the last minute, then entries at least 1 % of their age apart, which changes a bound by at
//! most 1 %. With a sample each 50 ms that is 1,200 entries plus 100 ln(H / 60 s), some 730 for a day; [`Timeline::MOST`]
//! caps it in any case. Dropping an entry is safe: the floor found instead is older, so the upper bound is larger.

use std::time::Duration;

use super::moment::Moment;
use super::position::{History, Position};

/// One known position of the primary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// What the primary had.
    pub position: Position,
    /// When the newest question that returned it was sent; absent when only a replica showed it.
    pub sent: Option<Moment>,
    /// When the primary was first known to have it.
    pub answered: Moment,
}

/// What a history inherits from the one it branched off: everything up to `position`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Branch {
    from: History,
    position: Position,
}

/// Positions of one history, oldest first, strictly increasing.
#[derive(Clone, Debug)]
pub struct Timeline {
    history: History,
    branch: Option<Branch>,
    samples: Vec<Sample>,
    thin_at: usize,
}

impl Timeline {
    /// Entries kept at the most.
    pub const MOST: usize = 4096;
    const FULL: Duration = Duration::from_secs(60);
    /// Thinning runs when this many entries have come since it last ran.
    const BATCH: usize = 512;

    /// A history of which nothing is known yet.
    pub fn new(history: History) -> Self {
        Self {
            history,
            branch: None,
            samples: Vec::new(),
            thin_at: Self::BATCH,
        }
    }

    /// The history that began when the server that had shown `position` in `self` was promoted.
    ///
    /// What that server held is common to both histories, so samples up to it carry over: a replica's old proof is good
    /// as far as the new primary itself was seen to hold it, and void beyond. Only one generation carries over.
    pub fn promoted(&self, history: History, position: &Position) -> Self {
        let common = self.samples.partition_point(|s| position.contains(&s.position));
        Self {
            history,
            branch: Some(Branch {
                from: self.history,
                position: position.clone(),
            }),
            samples: self.samples.get(..common).unwrap_or_default().to_vec(),
            thin_at: self.thin_at,
        }
    }

    /// The history that the positions belong to.
    pub fn history(&self) -> History {
        self.history
    }

    /// What of `position`, shown in `history`, is part of this timeline; absent when the histories are not related.
    pub fn translate(&self, history: History, position: &Position) -> Option<Position> {
        if history == self.history {
            return Some(position.clone());
        }
        let branch = self.branch.as_ref().filter(|b| b.from == history)?;
        Some(position.common(&branch.position))
    }

    /// Notes a sample of the primary. A position smaller than known ones means that the primary lost log in a crash:
    /// the lost positions are forgotten.
    pub fn record(&mut self, position: Position, sent: Moment, answered: Moment) {
        while self.samples.last().is_some_and(|s| !position.contains(&s.position)) {
            self.samples.pop();
        }
        match self.samples.last_mut() {
            Some(last) if last.position == position => {
                last.sent = last.sent.max(Some(sent));
                last.answered = last.answered.min(answered);
            }
            _ => self.samples.push(Sample {
                position,
                sent: Some(sent),
                answered,
            }),
        }
        if self.samples.len() >= self.thin_at {
            self.thin(answered);
        }
    }

    /// Notes a position that a replica showed at `answered`: the primary had it before. Good for lower bounds only.
    pub fn witness(&mut self, position: &Position, answered: Moment) {
        let beyond = self.samples.last().is_none_or(|s| !s.position.contains(position));
        if beyond {
            self.samples.push(Sample {
                position: position.clone(),
                sent: None,
                answered,
            });
            if self.samples.len() >= self.thin_at {
                self.thin(answered);
            }
        }
    }

    /// The newest sample that `position` contains and that was read from the primary itself.
    pub fn floor(&self, position: &Position) -> Option<&Sample> {
        let contained = self.samples.partition_point(|s| position.contains(&s.position));
        self.samples.get(..contained)?.iter().rev().find(|s| s.sent.is_some())
    }

    /// The oldest position that whoever has `position` lacks.
    pub fn above(&self, position: &Position) -> Option<&Sample> {
        self.samples
            .get(self.samples.partition_point(|s| position.contains(&s.position)))
    }

    /// The newest sample read from the primary itself.
    pub fn newest(&self) -> Option<&Sample> {
        self.samples.iter().rev().find(|s| s.sent.is_some())
    }

    /// The newest position known, whoever showed it.
    pub fn frontier(&self) -> Option<&Position> {
        self.samples.last().map(|s| &s.position)
    }

    /// Since when anything is known.
    pub fn begun(&self) -> Option<Moment> {
        self.samples.first().map(|s| s.answered)
    }

    /// How many entries are kept.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    fn thin(&mut self, now: Moment) {
        // The first pass spaces entries by 1 % of their age; each further one, needed only at sample periods far below
        // the allowed ones, doubles the spacing and covers the last minute too.
        let mut percent = 1;
        let mut full = Self::FULL;
        loop {
            self.space(now, percent, full);
            if self.samples.len() <= Self::MOST {
                break;
            }
            percent *= 2;
            full = Duration::ZERO;
        }
        self.thin_at = (self.samples.len() + Self::BATCH).min(Self::MOST + 1);
    }

    fn space(&mut self, now: Moment, percent: u32, full: Duration) {
        let mut kept: Option<Moment> = None;
        let newest = self.samples.len().saturating_sub(1);
        let mut index = 0;
        self.samples.retain(|s| {
            let at = s.sent.unwrap_or(s.answered);
            let age = now.since(at);
            let keep = index == newest || age < full || kept.is_none_or(|kept| at.since(kept) >= age * percent / 100);
            if keep {
                kept = Some(at);
            }
            index += 1;
            keep
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::position::{ClusterId, Lsn};

    fn lsn(n: u64) -> Position {
        Position::Lsn(Lsn(n))
    }

    fn ms(n: u64) -> Moment {
        Moment::from_millis(n)
    }

    fn history(timeline: u32) -> History {
        History {
            cluster: ClusterId(1),
            timeline,
        }
    }

    fn sampled(samples: &[(u64, u64)]) -> Timeline {
        let mut timeline = Timeline::new(history(1));
        for (position, sent) in samples {
            timeline.record(lsn(*position), ms(*sent), ms(sent + 2));
        }
        timeline
    }

    #[test]
    fn a_replica_is_placed_between_two_samples() {
        let timeline = sampled(&[(100, 0), (200, 100), (300, 200)]);
        assert_eq!(timeline.floor(&lsn(250)).and_then(|s| s.sent), Some(ms(100)));
        assert_eq!(timeline.above(&lsn(250)).map(|s| s.answered), Some(ms(202)));
        assert_eq!(timeline.floor(&lsn(300)).and_then(|s| s.sent), Some(ms(200)));
        assert_eq!(timeline.above(&lsn(300)), None);
        assert_eq!(timeline.floor(&lsn(99)), None);
    }

    /// PG-01, PG-02: an idle primary proves its replicas without a write, and costs no memory.
    #[test]
    fn an_idle_primary_is_one_entry_whose_proof_moves() {
        let timeline = sampled(&[(100, 0), (100, 100), (100, 7_466_000)]);
        assert_eq!(timeline.len(), 1);
        let sample = timeline.floor(&lsn(100)).unwrap();
        assert_eq!((sample.sent, sample.answered), (Some(ms(7_466_000)), ms(2)));
    }

    #[test]
    fn a_primary_that_lost_log_forgets_the_lost_positions() {
        let mut timeline = sampled(&[(100, 0), (200, 100), (300, 200)]);
        timeline.record(lsn(150), ms(900), ms(902));
        assert_eq!(timeline.floor(&lsn(300)).and_then(|s| s.sent), Some(ms(900)));
        assert_eq!(timeline.above(&lsn(120)).map(|s| s.position.clone()), Some(lsn(150)));
    }

    #[test]
    fn what_a_replica_showed_counts_for_lower_bounds_only() {
        let mut timeline = sampled(&[(100, 0)]);
        timeline.witness(&lsn(90), ms(40));
        timeline.witness(&lsn(150), ms(50));
        assert_eq!(timeline.above(&lsn(100)).map(|s| s.answered), Some(ms(50)));
        assert_eq!(timeline.floor(&lsn(150)).and_then(|s| s.sent), Some(ms(0)));
        assert_eq!(timeline.newest().map(|s| s.position.clone()), Some(lsn(100)));
        timeline.record(lsn(150), ms(100), ms(102));
        assert_eq!(timeline.floor(&lsn(150)).and_then(|s| s.sent), Some(ms(100)));
        assert_eq!(timeline.above(&lsn(100)).map(|s| s.answered), Some(ms(50)));
    }

    #[test]
    fn a_promotion_keeps_what_the_new_primary_held() {
        let old = sampled(&[(100, 0), (200, 100), (300, 200)]);
        let new = old.promoted(history(2), &lsn(220));
        assert_eq!(new.floor(&lsn(300)).and_then(|s| s.sent), Some(ms(100)));
        // A replica that got further than the new primary before the crash diverged: only the common part counts.
        assert_eq!(new.translate(history(1), &lsn(290)), Some(lsn(220)));
        assert_eq!(new.translate(history(1), &lsn(150)), Some(lsn(150)));
        assert_eq!(new.translate(history(2), &lsn(290)), Some(lsn(290)));
        assert_eq!(new.translate(history(3), &lsn(290)), None);
    }

    #[test]
    fn old_entries_are_thinned_to_one_percent_of_their_age() {
        let mut timeline = Timeline::new(history(1));
        let hour = 3_600_000;
        for at in (0..=hour).step_by(100) {
            timeline.record(lsn(at + 1), ms(at), ms(at));
        }
        assert!(
            timeline.len() < 600 + 420 + Timeline::BATCH,
            "{} entries",
            timeline.len()
        );
        for behind in [100, 59_000, 120_000, 1_800_000, 3_500_000] {
            let at = hour - behind;
            let found = timeline.floor(&lsn(at + 1)).and_then(|s| s.sent).unwrap();
            let (bound, truth) = (ms(hour).since(found), ms(hour).since(ms(at)));
            assert!(bound >= truth, "thinning only ever enlarges a bound");
            // 1 % of the age when it was thinned, and one sample period.
            assert!(
                bound <= truth.mul_f64(1.02) + Duration::from_millis(100),
                "{bound:?} for {truth:?}"
            );
        }
    }

    #[test]
    fn memory_is_bounded_at_any_rate() {
        let mut timeline = Timeline::new(history(1));
        for n in 0..200_000_u64 {
            let at = Moment::from_nanos(n * 1_000_000);
            timeline.record(lsn(n), at, at);
        }
        assert!(timeline.len() <= Timeline::MOST + Timeline::BATCH);
        assert_eq!(timeline.frontier(), Some(&lsn(199_999)));
    }
}
