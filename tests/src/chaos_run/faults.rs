//! Faults in several lanes at once, each with dice of its own, until it is over.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::caller::now;
use crate::chaos::{Class, Dice, Field, Outcome, Reach, strike};

/// The outcome of the strikes of a class.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// How often it was tried.
    pub strikes: u64,
    /// How often it was seen to take effect; the others do not count.
    pub effective: u64,
    /// Why it did not, the last time.
    pub why_not: String,
}

/// The words for a class that was never tried.
const NO_TURN: &str = "its turn did not come";

/// All strikes of a run.
#[derive(Debug, Default)]
pub struct Strikes {
    /// By class.
    pub tally: BTreeMap<Class, Tally>,
    /// The effective ones, as the checker reads them and with what was seen.
    pub faults: Vec<Value>,
    /// When strikes were under way that lose commits, whether or not they were seen to take effect; in microseconds since 1970.
    pub lossy: Vec<(i64, i64)>,
}

/// A lane strikes one class after another, with a pause between.
struct Lane {
    classes: Vec<Class>,
    pause_ms: (u64, u64),
}

/// How hard the faults strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many strike at wires at the same time.
    pub wires: usize,
    /// All pauses are multiplied with this, in percent.
    pub pauses_percent: u64,
}

impl Pace {
    /// At least 1,000 effective faults in ten minutes.
    pub const HARD: Pace = Pace { wires: 4, pauses_percent: 100 };
}

fn lanes(classes: &[Class], is_cluster: bool, pace: Pace) -> Vec<Lane> {
    let wire = |class: &Class| class.name().starts_with("wire-");
    let rare = |class: &Class| {
        class.loses_commits() || matches!(class, Class::DatabaseClock | Class::NodeClock | Class::NodeFrozenPastLease)
    };
    let of = |picked: &dyn Fn(&Class) -> bool, (low, high): (u64, u64)| Lane {
        classes: classes.iter().copied().filter(picked).collect(),
        pause_ms: (low * pace.pauses_percent / 100, high * pace.pauses_percent / 100),
    };
    let mut lanes: Vec<Lane> = (0..pace.wires).map(|_| of(&wire, (150, 900))).collect();
    lanes.push(of(&|class| class.reach() == Reach::Node && !wire(class) && !rare(class), (800, 2_500)));
    // A member takes longer to be with the others again than a server to answer.
    let between = if is_cluster { (1_000, 3_000) } else { (8_000, 16_000) };
    lanes.push(of(&|class| class.reach() == Reach::Database && !rare(class), between));
    // A whole cluster that is made anew stops all the others for a minute or more.
    lanes.push(of(&|class| rare(class), if is_cluster { (30_000, 80_000) } else { (15_000, 40_000) }));
    lanes.retain(|lane| !lane.classes.is_empty());
    lanes
}

/// Strikes in all lanes until it is over; what is under way then comes to its end.
pub fn strike_all(field: &Field, classes: &[Class], seed: u64, pace: Pace, over: &AtomicBool) -> Strikes {
    let strikes = Mutex::new(Strikes::of(classes));
    std::thread::scope(|scope| {
        for (n, lane) in lanes(classes, field.kind.is_cluster(), pace).into_iter().enumerate() {
            let mut dice = Dice::new(seed.wrapping_mul(1_000).wrapping_add(n as u64));
            let strikes = &strikes;
            scope.spawn(move || {
                // Each class comes once before one comes again: the rare lane has few turns.
                let mut turns: Vec<Class> = Vec::new();
                while rest(over, dice.ms(lane.pause_ms.0, lane.pause_ms.1)) {
                    if turns.is_empty() {
                        turns = lane.classes.clone();
                    }
                    let class =
                        turns.swap_remove(usize::try_from(dice.between(0, turns.len() as u64 - 1)).unwrap_or(0));
                    // A strike that panics is a strike that was not seen; the run goes on and tells of it.
                    let begun_us = now();
                    let outcome = catch_unwind(AssertUnwindSafe(|| strike(class, field, &mut dice)));
                    let outcome = outcome.unwrap_or(Outcome::NotEffective { why: "it panicked".to_owned() });
                    let mut strikes = strikes.lock().unwrap_or_else(PoisonError::into_inner);
                    if class.loses_commits() {
                        strikes.lossy.push((begun_us, now()));
                    }
                    strikes.note(class, outcome);
                }
            });
        }
    });
    strikes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Waits; whether it is not over.
fn rest(over: &AtomicBool, pause: Duration) -> bool {
    let until = Instant::now() + pause;
    while !over.load(Ordering::Relaxed) && Instant::now() < until {
        std::thread::park_timeout(Duration::from_millis(50));
    }
    !over.load(Ordering::Relaxed)
}

impl Strikes {
    /// None of these has been tried yet.
    fn of(classes: &[Class]) -> Self {
        let untried = || Tally { why_not: NO_TURN.to_owned(), ..Tally::default() };
        Self { tally: classes.iter().map(|class| (*class, untried())).collect(), ..Self::default() }
    }

    fn note(&mut self, class: Class, outcome: Outcome) {
        let tally = self.tally.entry(class).or_default();
        if tally.strikes == 0 {
            tally.why_not.clear();
        }
        tally.strikes += 1;
        match outcome {
            Outcome::Effective(seen) => {
                tally.effective += 1;
                self.faults.push(json!({
                    "class": class.name(), "node": seen.node, "from_us": seen.from_us, "until_us": seen.until_us,
                    "evidence": seen.evidence, "database_clock_ms": seen.database_clock_ms,
                    "kills_runs": class == Class::ChildKilled, "moves_clock": seen.database_clock_ms != 0,
                    "loses_commits": class.loses_commits(),
                }));
            }
            Outcome::NotEffective { why } => tally.why_not = why,
        }
    }

    /// Effective faults of all classes.
    pub fn effective(&self) -> u64 {
        self.tally.values().map(|tally| tally.effective).sum()
    }

    /// Classes of which at least one took effect.
    pub fn classes(&self) -> usize {
        self.tally.values().filter(|tally| tally.effective > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_whose_turn_did_not_come_is_told() {
        let mut strikes = Strikes::of(&[Class::NodeKilled, Class::MemberCutOff]);
        strikes.note(Class::NodeKilled, Outcome::NotEffective { why: "it was gone".to_owned() });
        let why: Vec<&str> = strikes.tally.values().map(|tally| &*tally.why_not).collect();
        assert_eq!(why, ["it was gone", NO_TURN]);
        assert_eq!((strikes.effective(), strikes.classes()), (0, 0));
    }
}
