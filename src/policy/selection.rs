//! Who serves when too few replicas are fresh: floor and fallback, as a pure function of the candidates.
//!
//! With m replicas in the list the primary's share of connections is 1/(m+1), because a Service spreads them evenly. So a
//! share of at most f needs m >= 1/f - 1 replicas beside it, rounded up:
//!
//! | primaryMaxSharePercent | replicas beside the primary |
//! | --- | --- |
//! | 100 | 0 |
//! | 50 | 1 |
//! | 34 | 2 |
//! | 33 | 3 |
//! | 25 | 3 |
//!
//! A process that has just started can prove nothing of a replica whose position is older than its own first look. Such a
//! replica fills up all the same when it was found published, for as long as the hard limit lasts: otherwise a restart while
//! all lag would empty the list. What it serves may then be staler than the hard limit, by at most as much again.
//!
//! A held replica stays until a challenger is better by [`stickiness`]: which stale replica serves must not change with
//! every probe.

use std::cmp::Reverse;
use std::time::Duration;

use super::member::MemberName;
use super::settings::{Fallback, ServiceSettings};

/// A replica that could fill up.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one replica")]
pub struct Candidate {
    /// Its name.
    pub name: MemberName,
    /// Its bound now. Of one of which nothing is proven, but which was found published: for how long that is so.
    pub upper: Duration,
    /// Whether that bound is proven: one of which it is, is taken before one of which it is not.
    pub proven: bool,
    /// Whether it answers: one that does is taken before one that does not.
    pub answering: bool,
    /// Whether it fills up already.
    pub held: bool,
    /// Whether it was in the last list that needed no fallback.
    pub in_last: bool,
}

/// What the fallback adds to the serving replicas.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filling {
    /// Replicas, by name.
    pub held: Vec<MemberName>,
    /// Whether the primary is in.
    pub primary: bool,
    /// The fallback that decided last; absent when none added anything.
    pub by: Option<Fallback>,
}

/// By how much a challenger must be better than a held replica whose bound is `held`.
pub fn stickiness(held: Duration) -> Duration {
    (held / 5).max(Duration::from_millis(500))
}

/// How many replicas must be in the list beside the primary so that its share is at most `percent`.
pub fn replicas_beside_primary(percent: u32) -> usize {
    let percent = percent.clamp(1, 100);
    usize::try_from(100_u32.div_ceil(percent).saturating_sub(1)).unwrap_or(usize::MAX)
}

/// Walks the service's fallbacks until the floor is met, or, when nobody serves, until one is in.
///
/// `candidates` are the replicas that do not serve, are not down and may serve; `primary` tells whether the primary is
/// known and answers.
pub fn fill(serving: usize, settings: &ServiceSettings, candidates: Vec<Candidate>, primary: bool) -> Filling {
    let mut pool = Fillers::new(candidates, settings.hard_max_staleness);
    let mut filling = Filling::default();
    let floor = settings.min_endpoints.max(1);
    for policy in &settings.fallback {
        let listed = serving + filling.held.len() + usize::from(filling.primary);
        if listed >= floor {
            break;
        }
        let missing = floor - listed;
        let added = match policy {
            Fallback::None => break,
            Fallback::LeastLagged => pool.freshest(missing),
            Fallback::KeepLast => pool.last(),
            Fallback::Primary => {
                if !primary || filling.primary {
                    continue;
                }
                let beside = replicas_beside_primary(settings.primary_max_share);
                let replicas = serving + filling.held.len();
                // The floor is filled up too: the primary counts as one endpoint.
                let wanted = beside.max(floor.saturating_sub(1)).saturating_sub(replicas);
                let needed = beside.saturating_sub(replicas);
                if pool.len() < needed {
                    continue;
                }
                filling.primary = true;
                filling.by = Some(Fallback::Primary);
                pool.freshest(wanted)
            }
        };
        if !added.is_empty() {
            filling.by = Some(*policy);
        }
        filling.held.extend(added);
    }
    filling.held.sort();
    filling
}

/// Candidates within the hard limit, in the order in which they are taken.
struct Fillers(Vec<Candidate>);

impl Fillers {
    fn new(mut candidates: Vec<Candidate>, hard: Duration) -> Self {
        candidates.retain(|c| c.upper <= hard);
        // A held one competes with its stickiness taken off, so that only a clearly better one replaces it.
        let rank = |c: &Candidate| {
            c.upper
                .saturating_sub(if c.held { stickiness(c.upper) } else { Duration::ZERO })
        };
        candidates.sort_by(|a, b| {
            let key = |c: &Candidate| (Reverse(c.answering), Reverse(c.proven), rank(c), Reverse(c.held));
            (key(a), &a.name).cmp(&(key(b), &b.name))
        });
        Self(candidates)
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn freshest(&mut self, count: usize) -> Vec<MemberName> {
        self.0.drain(..count.min(self.0.len())).map(|c| c.name).collect()
    }

    /// The whole last set: a part of it would carry the whole load.
    fn last(&mut self) -> Vec<MemberName> {
        let (last, rest) = std::mem::take(&mut self.0).into_iter().partition(|c| c.in_last);
        self.0 = rest;
        let last: Vec<Candidate> = last;
        last.into_iter().map(|c| c.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn candidates(uppers: &[(&str, u64)]) -> Vec<Candidate> {
        let one = |(name, ms): &(&str, u64)| Candidate {
            name: Arc::from(*name),
            upper: Duration::from_millis(*ms),
            proven: true,
            answering: true,
            held: false,
            in_last: false,
        };
        uppers.iter().map(one).collect()
    }

    fn settings(fallback: &[Fallback], floor: usize, share: u32) -> ServiceSettings {
        let mut settings = ServiceSettings::new("s", Duration::from_secs(2));
        settings.fallback = fallback.to_vec();
        settings.min_endpoints = floor;
        settings.primary_max_share = share;
        settings
    }

    fn check(filling: &Filling, held: &[&str], primary: bool, by: Option<Fallback>) {
        let names: Vec<&str> = filling.held.iter().map(AsRef::as_ref).collect();
        assert_eq!((names.as_slice(), filling.primary, filling.by), (held, primary, by));
    }

    /// The rows of the module's table.
    #[test]
    fn the_share_needs_replicas_beside_the_primary() {
        for (percent, beside) in [(100, 0), (99, 1), (50, 1), (49, 2), (34, 2), (33, 3), (25, 3), (1, 99)] {
            assert_eq!(replicas_beside_primary(percent), beside, "{percent} %");
        }
    }

    #[test]
    fn the_freshest_within_the_hard_limit_fills_up() {
        let all = [("a", 9000), ("b", 5000), ("c", 60_001)];
        let s = settings(&[Fallback::LeastLagged], 1, 50);
        check(
            &fill(0, &s, candidates(&all), true),
            &["b"],
            false,
            Some(Fallback::LeastLagged),
        );
        let s = settings(&[Fallback::LeastLagged], 3, 50);
        check(
            &fill(0, &s, candidates(&all), true),
            &["a", "b"],
            false,
            Some(Fallback::LeastLagged),
        );
        check(&fill(3, &s, candidates(&all), true), &[], false, None);
        let s = settings(&[Fallback::LeastLagged], 1, 50);
        check(&fill(0, &s, candidates(&[("c", 60_001)]), true), &[], false, None);
    }

    #[test]
    fn ties_break_by_name_and_answers_come_first() {
        let s = settings(&[Fallback::LeastLagged], 1, 50);
        check(
            &fill(0, &s, candidates(&[("b", 5000), ("a", 5000)]), true),
            &["a"],
            false,
            Some(Fallback::LeastLagged),
        );
        let mut silent_first = candidates(&[("a", 3000), ("b", 9000)]);
        silent_first[0].answering = false;
        check(
            &fill(0, &s, silent_first, true),
            &["b"],
            false,
            Some(Fallback::LeastLagged),
        );
    }

    #[test]
    fn a_held_replica_stays_until_a_challenger_is_clearly_better() {
        let s = settings(&[Fallback::LeastLagged], 1, 50);
        // 20 % of 10 s is 2 s; of 1 s it is 200 ms, so the 500 ms rule.
        for (held, challenger, wins) in [
            (10_000, 8000, "h"),
            (10_000, 7999, "c"),
            (1000, 500, "h"),
            (1000, 499, "c"),
        ] {
            let mut all = candidates(&[("h", held), ("c", challenger)]);
            all[0].held = true;
            check(&fill(0, &s, all, true), &[wins], false, Some(Fallback::LeastLagged));
        }
    }

    #[test]
    fn the_primary_comes_within_its_share_or_not_at_all() {
        let primary = Some(Fallback::Primary);
        let s = settings(&[Fallback::Primary], 1, 50);
        check(
            &fill(0, &s, candidates(&[("a", 9000), ("b", 5000)]), true),
            &["b"],
            true,
            primary,
        );
        check(&fill(0, &s, candidates(&[("a", 70_000)]), true), &[], false, None);
        check(&fill(0, &s, candidates(&[("a", 9000)]), false), &[], false, None);
        let s = settings(&[Fallback::Primary], 1, 100);
        check(&fill(0, &s, candidates(&[("a", 9000)]), true), &[], true, primary);
        let s = settings(&[Fallback::Primary], 3, 34);
        check(&fill(1, &s, candidates(&[("a", 9000)]), true), &["a"], true, primary);
        let s = settings(&[Fallback::Primary, Fallback::LeastLagged], 1, 34);
        check(
            &fill(0, &s, candidates(&[("a", 9000)]), true),
            &["a"],
            false,
            Some(Fallback::LeastLagged),
        );
    }

    #[test]
    fn keep_last_brings_the_whole_last_set_back() {
        let s = settings(&[Fallback::KeepLast], 1, 50);
        let mut all = candidates(&[("a", 9000), ("b", 5000), ("c", 61_000), ("d", 3000)]);
        for c in &mut all[..3] {
            c.in_last = true;
        }
        check(&fill(0, &s, all, true), &["a", "b"], false, Some(Fallback::KeepLast));
    }

    #[test]
    fn fallbacks_are_tried_in_order_until_the_floor_is_met() {
        let s = settings(
            &[
                Fallback::KeepLast,
                Fallback::LeastLagged,
                Fallback::None,
                Fallback::Primary,
            ],
            2,
            100,
        );
        let mut all = candidates(&[("a", 9000), ("b", 5000)]);
        all[0].in_last = true;
        check(&fill(0, &s, all, true), &["a", "b"], false, Some(Fallback::LeastLagged));
        let s = settings(&[Fallback::None, Fallback::Primary], 1, 100);
        check(&fill(0, &s, candidates(&[("a", 9000)]), true), &[], false, None);
    }
}
