//! The faults between nodes and database, as the plan and the dice want them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carillon_doubles::innodb::{CommitFate, FaultPlan, StatementFate};

use super::dice::Dice;
use super::plan::Plan;

/// Longer than anybody waits for an answer.
const FOR_EVER_US: u64 = 10_000_000;

/// The faults of this moment. Clones are the same.
#[derive(Clone)]
pub(super) struct SeededFaults(Arc<Mutex<Inner>>);

pub(super) struct Inner {
    plan: Plan,
    dice: Dice,
    /// Whether anything may go wrong.
    pub stormy: bool,
    /// Clients whose packets get lost.
    pub cut_off: BTreeSet<u64>,
    /// The database refuses connections.
    pub away: bool,
    /// The faults so far.
    pub counters: BTreeMap<&'static str, u64>,
}

impl SeededFaults {
    pub fn new(plan: Plan, dice: Dice) -> Self {
        let (cut_off, counters) = (BTreeSet::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Inner { plan, dice, stormy: false, cut_off, away: false, counters })))
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
        *self.counters.entry(what).or_default() += 1;
    }

    fn noticed_after_us(&mut self) -> u64 {
        if self.dice.one_in(4) { self.dice.below(3_000_000) } else { self.dice.below(5_000) }
    }
}

impl FaultPlan for SeededFaults {
    fn latency_us(&mut self, client: u64) -> u64 {
        let mut fault_plan = self.now();
        if fault_plan.cut_off.contains(&client) {
            return FOR_EVER_US;
        }
        let usual = 150 + fault_plan.dice.below(700);
        let slow = fault_plan.stormy && fault_plan.plan.network() && fault_plan.dice.one_in(150);
        if slow {
            fault_plan.strike("a slow statement");
            return usual + fault_plan.dice.below(1_500_000);
        }
        usual
    }

    fn statement(&mut self, _: u64) -> StatementFate {
        let mut fault_plan = self.now();
        if fault_plan.away {
            fault_plan.strike("a statement while the database was away");
            return StatementFate::Lost { noticed_after_us: 0 };
        }
        if !fault_plan.stormy {
            return StatementFate::Arrives;
        }
        if fault_plan.plan.network() && fault_plan.dice.one_in(200) {
            fault_plan.strike("a connection lost before the COMMIT");
            let noticed_after_us = fault_plan.noticed_after_us();
            return StatementFate::Lost { noticed_after_us };
        }
        if fault_plan.plan.locks() {
            match fault_plan.dice.below(300) {
                0 => {
                    fault_plan.strike("1205 said by the server");
                    return StatementFate::TimesOut;
                }
                1 | 2 => {
                    fault_plan.strike("1213 or 1020 said by the server");
                    return StatementFate::RolledBack;
                }
                _ => {}
            }
        }
        StatementFate::Arrives
    }

    fn commit(&mut self, _: u64) -> CommitFate {
        let mut fault_plan = self.now();
        if fault_plan.away {
            fault_plan.strike("a COMMIT while the database was away");
            return CommitFate::LostBefore { noticed_after_us: 0 };
        }
        if !fault_plan.stormy {
            return CommitFate::Arrives;
        }
        let kinds = if fault_plan.plan.network() { 40 } else { 400 };
        match fault_plan.dice.below(kinds) {
            0 if fault_plan.plan.network() => {
                fault_plan.strike("a connection lost before the COMMIT arrived");
                let noticed_after_us = fault_plan.noticed_after_us();
                CommitFate::LostBefore { noticed_after_us }
            }
            1 if fault_plan.plan.network() => {
                fault_plan.strike("the answer to a COMMIT lost");
                CommitFate::LostAfter
            }
            2 if fault_plan.plan.network() => {
                fault_plan.strike("a late COMMIT");
                CommitFate::Late { after_us: fault_plan.dice.below(4_000_000) }
            }
            3 if fault_plan.plan.locks() => {
                fault_plan.strike("a COMMIT rolled back");
                CommitFate::RolledBack
            }
            _ => CommitFate::Arrives,
        }
    }

    fn kill(&mut self, client: u64) -> Option<u64> {
        let mut fault_plan = self.now();
        if fault_plan.cut_off.contains(&client) || fault_plan.away {
            return None;
        }
        if fault_plan.stormy && fault_plan.plan.network() && fault_plan.dice.one_in(4) {
            fault_plan.strike("a KILL that did not get through");
            return None;
        }
        Some(fault_plan.dice.below(2_000))
    }
}
