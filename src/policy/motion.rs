//! How a replica's proof moves: trend for people. Nothing is decided by it.

use std::time::Duration;

use super::moment::Moment;
use super::position::Position;
use super::state::Phase;

/// Over how long speed is measured: between one and two windows.
const WINDOW: Duration = Duration::from_secs(3);
/// Speed over less than this is noise.
const LEAST: Duration = Duration::from_millis(500);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Mark {
    at: Moment,
    reference: Option<Moment>,
    position: Position,
}

/// Marks of the recent past.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Motion {
    older: Option<Mark>,
    newer: Option<Mark>,
    last: Option<Mark>,
    /// When the present position was first shown.
    still_since: Option<Moment>,
}

impl Motion {
    /// Notes an answer known at `at` that showed `position`, worth `reference`.
    pub fn note(&mut self, at: Moment, reference: Option<Moment>, position: &Position) {
        if self.last.as_ref().is_none_or(|last| last.position != *position) {
            self.still_since = Some(at);
        }
        let mark = Mark {
            at,
            reference,
            position: position.clone(),
        };
        if self.newer.as_ref().is_none_or(|newer| at.since(newer.at) >= WINDOW) {
            self.older = self.newer.replace(mark.clone());
        }
        self.last = Some(mark);
    }

    /// For how long the position has been the same at every answer up to `now`; zero when none was shown.
    pub fn still_for(&self, now: Moment) -> Duration {
        self.still_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// The phase of the recent past; absent until there is enough of it.
    pub fn phase(&self) -> Option<Phase> {
        let (from, to) = self.span()?;
        let advanced = to.reference?.since(from.reference?);
        Some(Phase::of(advanced.as_secs_f64() / to.at.since(from.at).as_secs_f64()))
    }

    /// How long applying `backlog` bytes takes at the recent rate; absent when nothing was applied or too little is known.
    pub fn time_to_apply(&self, backlog: u64) -> Option<Duration> {
        let (from, to) = self.span()?;
        let applied = to.position.ahead_of(&from.position);
        if applied == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "an estimate for people")]
        let ratio = backlog as f64 / applied as f64;
        Duration::try_from_secs_f64(to.at.since(from.at).as_secs_f64() * ratio).ok()
    }

    fn span(&self) -> Option<(&Mark, &Mark)> {
        let to = self.last.as_ref()?;
        let from = self.older.as_ref().or(self.newer.as_ref())?;
        (to.at.since(from.at) >= LEAST).then_some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::position::Lsn;

    fn run(speed_percent: u64) -> Motion {
        let mut motion = Motion::default();
        for at in (0..10_000).step_by(100) {
            let frontier = at * speed_percent / 100;
            motion.note(
                Moment::from_millis(at),
                Some(Moment::from_millis(frontier)),
                &Position::Lsn(Lsn(frontier * 1000)),
            );
        }
        motion
    }

    #[test]
    fn speed_gives_the_phase() {
        for (percent, phase) in [
            (0, Phase::Stalled),
            (50, Phase::FallingBehind),
            (100, Phase::Steady),
            (300, Phase::CatchingUp),
        ] {
            assert_eq!(run(percent).phase(), Some(phase), "{percent} %");
        }
        assert_eq!(Motion::default().phase(), None);
    }

    #[test]
    fn a_backlog_is_applied_at_the_recent_rate() {
        // 1,000 bytes a millisecond: 5 MB take five seconds.
        let estimate = run(100).time_to_apply(5_000_000).unwrap();
        assert!(
            estimate.abs_diff(Duration::from_secs(5)) < Duration::from_millis(10),
            "{estimate:?}"
        );
        assert_eq!(run(0).time_to_apply(1), None);
    }

    #[test]
    fn a_position_that_does_not_move_is_noticed() {
        assert_eq!(
            run(0).still_for(Moment::from_millis(9_900)),
            Duration::from_millis(9_900)
        );
        assert_eq!(run(100).still_for(Moment::from_millis(9_900)), Duration::ZERO);
    }
}
