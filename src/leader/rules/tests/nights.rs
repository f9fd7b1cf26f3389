//! Three candidates against a Lease store under seeded faults.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;

/// A Lease store with optimistic concurrency.
#[derive(Default)]
struct Store {
    version: u64,
    record: Option<(String, u64)>,
}

impl Store {
    fn serve(&mut self, action: &Action, who: &str) -> Answer {
        match action {
            Action::Wait(_) => return Answer::Failed,
            Action::Get => {}
            Action::Create if self.record.is_some() => return Answer::Conflict,
            Action::Create => self.write(who, 0),
            Action::Put { .. } if self.record.is_none() => return Answer::Absent,
            Action::Put { version, .. } if *version != self.version.to_string() => return Answer::Conflict,
            Action::Put { transitions, .. } => self.write(who, *transitions),
        }
        match &self.record {
            None => Answer::Absent,
            Some((holder, transitions)) => Answer::Is(Record {
                version: self.version.to_string(),
                holder: Some(holder.clone()),
                duration: Some(TIMINGS.lease),
                transitions: *transitions,
            }),
        }
    }

    fn write(&mut self, who: &str, transitions: u64) {
        self.version += 1;
        self.record = Some((who.to_owned(), transitions));
    }
}

/// One candidate's process: it may be paused, and its clock may run a little fast or slow.
struct Process {
    rules: Rules,
    name: String,
    /// Its clock's rate in per cent of true time.
    rate: u64,
    paused_until: u64,
    /// When its next step is due, in true milliseconds.
    due: u64,
    call: Option<Call>,
}

/// A call under way.
struct Call {
    action: Action,
    /// On the caller's own clock.
    sent: Moment,
    /// When the store serves it, in true time; absent when it never does, or has.
    served: Option<u64>,
    answered: u64,
    answer: Option<Answer>,
}

impl Process {
    fn own(&self, now: u64) -> Moment {
        ms(now * self.rate / 100)
    }
}

struct Night {
    random: fastrand::Rng,
    faulty_until: u64,
    /// Requests that were given up and are served all the same.
    late: Vec<(u64, Action, String)>,
}

impl Night {
    /// When a call is served and answered: delayed, lost on the way there, or on the way back.
    fn fate(&mut self, now: u64) -> (Option<u64>, u64) {
        if now >= self.faulty_until {
            return (Some(now + 2), now + 4);
        }
        let late = self.random.u64(1..1500);
        match self.random.u8(0..10) {
            0 => (None, now + 1000),
            1 => (Some(now + late), now + 1000),
            _ => (Some(now + late / 4), now + late / 2),
        }
    }

    fn step(&mut self, p: &mut Process, store: &Rc<RefCell<Store>>, now: u64) {
        if self.random.u16(0..300) == 0 && now < self.faulty_until {
            p.paused_until = now + self.random.u64(100..8000);
        }
        let own = p.own(now);
        if let Some(call) = &mut p.call {
            if call.served.is_some_and(|at| now >= at) {
                call.answer = Some(store.borrow_mut().serve(&call.action, &p.name));
                call.served = None;
            }
            // A paused process hears its answer late, and a call has its own time on its own clock.
            let over = own >= call.sent + TIMINGS.call;
            let heard = now >= call.answered && !over;
            if now >= p.paused_until && (heard || over) {
                let answer = call.answer.take().filter(|_| heard).unwrap_or(Answer::Failed);
                self.late
                    .extend(call.served.map(|at| (at, call.action.clone(), p.name.clone())));
                p.rules.hear(&call.action, call.sent, answer, own);
                p.call = None;
            }
            return;
        }
        if now < p.paused_until || now < p.due {
            return;
        }
        match p.rules.next(own, self.random.f64()) {
            Action::Wait(until) => p.due = (until.as_nanos() / 1_000_000 * 100).div_ceil(p.rate).max(now + 1),
            action => {
                let (served, answered) = self.fate(now);
                p.call = Some(Call {
                    action,
                    sent: own,
                    served,
                    answered,
                    answer: None,
                });
            }
        }
    }
}

/// Whatever the network, the store and the scheduler do: never two that may write at once; and when the faults end, one
/// leads within the promised time.
#[test]
fn two_never_write_at_once_and_one_does_again() {
    for seed in 0..150 {
        let store = Rc::new(RefCell::new(Store::default()));
        let mut night = Night {
            random: fastrand::Rng::with_seed(seed),
            faulty_until: 40_000,
            late: Vec::new(),
        };
        let mut processes: Vec<Process> = (0..3)
            .map(|n| Process {
                rules: Rules::new(format!("p{n}"), TIMINGS),
                name: format!("p{n}"),
                rate: night.random.u64(96..=104),
                paused_until: 0,
                due: 0,
                call: None,
            })
            .collect();
        let mut led_at = 0;
        for now in 0..60_000 {
            let (due, later) = night.late.drain(..).partition(|(at, ..)| *at <= now);
            night.late = later;
            let due: Vec<(u64, Action, String)> = due;
            for (_, action, who) in due {
                store.borrow_mut().serve(&action, &who);
            }
            for p in &mut processes {
                night.step(p, &store, now);
            }
            let writers: Vec<&str> = processes
                .iter()
                .filter(|p| now >= p.paused_until && p.rules.leadership(p.own(now)).may_write(p.own(now)))
                .map(|p| p.name.as_str())
                .collect();
            assert!(writers.len() <= 1, "seed {seed} at {now} ms: {writers:?}");
            if !writers.is_empty() {
                led_at = now;
            }
            let quiet_since = 40_000 + 8000;
            assert!(
                now < quiet_since + 6000 || now - led_at < 100,
                "seed {seed}: nobody leads at {now} ms"
            );
        }
    }
}
