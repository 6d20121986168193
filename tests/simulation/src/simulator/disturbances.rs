//! Crashes, freezes, drains, dead keepers, cut wires, a database that is away or silent, clocks that are set.

use carillon_domain::node::Input;

use super::plan::Plan;
use super::simulation::{Simulation, TimedEvent};
use crate::world::Scheduler;

impl Simulation {
    /// One piece of trouble, and the next one a while later.
    pub(super) fn meddle(&mut self) {
        if !self.troubled {
            return;
        }
        let per_node = 900_000 / (self.world.processes.len() as u64).clamp(1, 4);
        let quietly = if self.plan == Plan::Dst { 60 } else { 1 };
        let after = self.dice.below(per_node * 2 * quietly);
        self.later(after, TimedEvent::Meddle);
        let alive: Vec<usize> = (0..self.world.processes.len()).filter(|n| self.world.processes[*n].alive).collect();
        if alive.is_empty() {
            return;
        }
        let n = self.dice.pick(&alive);
        match self.dice.below(12) {
            0..=3 if self.plan.nodes() => self.meddle_with_node(n),
            4..=6 if self.plan.network() => self.meddle_with_wire(n),
            7 if self.plan.clocks() => self.set_clock(),
            8 if self.plan.clocks() => self.freeze(n, 200_000),
            9 if self.plan.locks() => self.freeze(n, 3_000_000),
            _ => {}
        }
    }

    fn meddle_with_node(&mut self, n: usize) {
        match self.dice.below(12) {
            0 | 1 => {
                self.fault_plan.strike("a crash");
                self.die(n);
            }
            2..=6 => self.freeze(n, 6_000_000),
            7 | 8 => {
                self.fault_plan.strike("a drain");
                self.tell(n, Input::Drain);
            }
            9 => {
                self.fault_plan.strike("a hurried drain");
                self.tell(n, Input::DrainNow);
            }
            10 => {
                self.fault_plan.strike("a dead keeper");
                self.world.processes[n].keeper_dies();
                self.tell(n, Input::KeeperDied);
            }
            _ => {
                self.fault_plan.strike("a rolling restart");
                for n in 0..self.world.processes.len() {
                    if self.world.processes[n].alive {
                        self.tell(n, Input::Drain);
                    }
                }
            }
        }
    }

    fn freeze(&mut self, n: usize, longest_us: u64) {
        self.fault_plan.strike("a frozen node");
        let lasts = 1 + self.dice.below(longest_us);
        self.world.processes[n].frozen_until_us = self.world.now_us + lasts;
        self.later(lasts, TimedEvent::Thaw { process: n });
    }

    fn meddle_with_wire(&mut self, n: usize) {
        let lasts = self.dice.below(5_000_000);
        match self.dice.below(6) {
            0 | 1 => {
                self.fault_plan.strike("a node cut off");
                let client = self.world.processes[n].own.place as u64;
                self.fault_plan.now().cut_off.insert(client);
                self.later(lasts, TimedEvent::Mend { client });
            }
            2 => {
                self.fault_plan.strike("the database away");
                self.fault_plan.now().away = true;
                self.later(lasts / 2, TimedEvent::DatabaseIsBack);
            }
            3 | 4 => {
                self.fault_plan.strike("a frozen database");
                self.database.freeze_until(self.world.now_us + lasts / 3);
            }
            _ => {}
        }
    }

    fn set_clock(&mut self) {
        self.fault_plan.strike("the database's clock set");
        let by_us = i64::try_from(self.dice.below(4_000_000)).unwrap_or(0) - 2_000_000;
        self.clock.step(by_us);
        self.clock.advance_to(self.world.now_us);
    }
}
