//! The weather between nodes and database, as the plan and the dice want it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carillon_store::memory::innodb::{CommitFate, StatementFate, Weather};

use super::dice::Dice;
use super::plan::Plan;

/// Longer than anybody waits for an answer.
const FOR_EVER_US: u64 = 10_000_000;

/// What goes wrong now. Clones are the same.
#[derive(Clone)]
pub(super) struct Sky(Arc<Mutex<Inner>>);

pub(super) struct Inner {
    plan: Plan,
    dice: Dice,
    /// Whether anything may go wrong.
    pub stormy: bool,
    /// Clients whose packets get lost.
    pub cut_off: BTreeSet<u64>,
    /// The database refuses connections.
    pub away: bool,
    /// What went wrong so far.
    pub struck: BTreeMap<&'static str, u64>,
}

impl Sky {
    pub fn new(plan: Plan, dice: Dice) -> Self {
        let (cut_off, struck) = (BTreeSet::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Inner { plan, dice, stormy: false, cut_off, away: false, struck })))
    }

    pub fn now(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn strike(&self, what: &'static str) {
        self.now().strike(what);
    }
}

impl Inner {
    fn strike(&mut self, what: &'static str) {
        *self.struck.entry(what).or_default() += 1;
    }

    fn noticed_after_us(&mut self) -> u64 {
        if self.dice.one_in(4) { self.dice.below(3_000_000) } else { self.dice.below(5_000) }
    }
}

impl Weather for Sky {
    fn latency_us(&mut self, client: u64) -> u64 {
        let mut sky = self.now();
        if sky.cut_off.contains(&client) {
            return FOR_EVER_US;
        }
        let usual = 150 + sky.dice.below(700);
        let slow = sky.stormy && sky.plan.network() && sky.dice.one_in(150);
        if slow {
            sky.strike("a slow statement");
            return usual + sky.dice.below(1_500_000);
        }
        usual
    }

    fn statement(&mut self, _: u64) -> StatementFate {
        let mut sky = self.now();
        if sky.away {
            sky.strike("a statement while the database was away");
            return StatementFate::Lost { noticed_after_us: 0 };
        }
        if !sky.stormy {
            return StatementFate::Arrives;
        }
        if sky.plan.network() && sky.dice.one_in(200) {
            sky.strike("a connection lost before the COMMIT");
            let noticed_after_us = sky.noticed_after_us();
            return StatementFate::Lost { noticed_after_us };
        }
        if sky.plan.locks() {
            match sky.dice.below(300) {
                0 => {
                    sky.strike("1205 said by the server");
                    return StatementFate::TimesOut;
                }
                1 | 2 => {
                    sky.strike("1213 or 1020 said by the server");
                    return StatementFate::RolledBack;
                }
                _ => {}
            }
        }
        StatementFate::Arrives
    }

    fn commit(&mut self, _: u64) -> CommitFate {
        let mut sky = self.now();
        if sky.away {
            sky.strike("a COMMIT while the database was away");
            return CommitFate::LostBefore { noticed_after_us: 0 };
        }
        if !sky.stormy {
            return CommitFate::Arrives;
        }
        let kinds = if sky.plan.network() { 40 } else { 400 };
        match sky.dice.below(kinds) {
            0 if sky.plan.network() => {
                sky.strike("a connection lost before the COMMIT arrived");
                let noticed_after_us = sky.noticed_after_us();
                CommitFate::LostBefore { noticed_after_us }
            }
            1 if sky.plan.network() => {
                sky.strike("the answer to a COMMIT lost");
                CommitFate::LostAfter
            }
            2 if sky.plan.network() => {
                sky.strike("a late COMMIT");
                CommitFate::Late { after_us: sky.dice.below(4_000_000) }
            }
            3 if sky.plan.locks() => {
                sky.strike("a COMMIT rolled back");
                CommitFate::RolledBack
            }
            _ => CommitFate::Arrives,
        }
    }

    fn kill(&mut self, client: u64) -> Option<u64> {
        let mut sky = self.now();
        if sky.cut_off.contains(&client) || sky.away {
            return None;
        }
        if sky.stormy && sky.plan.network() && sky.dice.one_in(4) {
            sky.strike("a KILL that did not get through");
            return None;
        }
        Some(sky.dice.below(2_000))
    }
}
