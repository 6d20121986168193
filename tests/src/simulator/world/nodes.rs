//! Processes of nodes: they boot, do what their node wants, and die.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::call::{Call, CallId, CallKind};
use carillon_domain::node::{Effect, Input, Node};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::{BootTime, Timestamp};
use carillon_store::{NewSession, NodeStore};

use super::{TimedEvent, World};
use crate::simulator::calls::{Done, Request, make};
use crate::simulator::clocks::BootClock;
use crate::simulator::plan::Plan;
use crate::simulator::process::{Process, STATEMENT_TIMEOUT_US, config};

impl World {
    pub(super) fn boot(&mut self, place: usize) {
        self.booted += 1;
        let session = SessionId::from_random(self.booted << 8 | place as u64);
        let client = self.database.client(place as u64);
        let drift_ppm =
            if self.plan.clocks() { i64::try_from(self.dice.below(19_001)).unwrap_or(0) - 9_500 } else { 0 };
        let clock = BootClock { ahead_us: self.dice.below(1 << 40), drift_ppm };
        let sent = clock.at(self.now_us);
        let n = self.processes.len();
        self.processes.push(Process {
            place,
            node: None,
            session,
            client: client.clone(),
            clock,
            sent,
            frozen_until_us: 0,
            asleep: Vec::new(),
            inbox: Vec::new(),
            keeper_until: sent,
            killing: false,
            children: BTreeMap::new(),
            alive: true,
        });
        let new =
            NewSession { id: session, node: format!("node-{place}"), address: String::new(), version: String::new() };
        let opening = async move { Done::Opened(client.open_session(&new).await.ok().map(|opened| opened.now)) };
        let task = self.tasks.spawn(n, Request::Open, opening);
        self.later(STATEMENT_TIMEOUT_US, TimedEvent::Deadline { task });
    }

    pub(super) fn boot_again(&mut self, n: usize) {
        let place = self.processes[n].place;
        let after = self.dice.between(100_000, 2_500_000);
        self.later(after, TimedEvent::Boot { place });
    }

    pub(super) fn thaw(&mut self, n: usize) {
        let process = &mut self.processes[n];
        if process.is_frozen(self.now_us) {
            return;
        }
        let (asleep, inbox) = (std::mem::take(&mut process.asleep), std::mem::take(&mut process.inbox));
        asleep.into_iter().for_each(|task| self.tasks.wake(task));
        for input in inbox {
            self.feed(n, input);
        }
    }

    /// The node is gone at once; its keeper kills the children within the grace, and somebody starts another one.
    pub fn die(&mut self, n: usize) {
        self.processes[n].alive = false;
        self.processes[n].killing = true;
        self.tasks.drop_of(n);
        let grace = config(self.plan).timing.fence_grace.as_micros() as u64;
        let after = self.dice.below(grace);
        self.later(after, TimedEvent::KeeperKills { process: n });
        self.boot_again(n);
    }

    pub fn kill_children(&mut self, n: usize, told: bool) {
        self.processes[n].killing = false;
        for run in std::mem::take(&mut self.processes[n].children).into_keys() {
            self.checks.died(run);
            if told && self.processes[n].alive {
                self.feed(n, exited(run, Status::Failed));
            }
        }
    }

    pub fn feed(&mut self, n: usize, input: Input) {
        let process = &mut self.processes[n];
        if process.is_frozen(self.now_us) {
            process.inbox.push(input);
            return;
        }
        let now = process.clock.at(self.now_us);
        let Some(node) = process.node.as_mut().filter(|_| process.alive) else { return };
        node.handle(input, now);
        while let Some(effect) = self.processes[n].node.as_mut().and_then(Node::poll) {
            self.carry_out(n, effect, now);
            if !self.processes[n].alive {
                return;
            }
        }
    }

    fn carry_out(&mut self, n: usize, effect: Effect, now: BootTime) {
        match effect {
            Effect::RenewKeeper { until } => self.processes[n].keeper_until = until,
            Effect::Spawn { held, job } => {
                let process = &mut self.processes[n];
                let lease = (process.keeper_until, now);
                process.children.insert(held.run, ());
                let verdict = self.checks.spawn((process.session, &held, &job), lease).map(|_| ());
                self.judge(verdict);
                let (after, status) = self.fate_of_child();
                self.later(after, TimedEvent::ChildEnds { process: n, run: held.run, status });
            }
            Effect::Stop { run, .. } => {
                let after = self.dice.below(200_000);
                self.later(after, TimedEvent::ChildEnds { process: n, run, status: Status::Cancelled });
            }
            Effect::Recorded(_) => {}
            Effect::Drained => {
                self.processes[n].alive = false;
                self.tasks.drop_of(n);
                self.boot_again(n);
            }
            Effect::SelfKill(_) => {
                self.fault_plan.strike("a node that ended itself");
                self.die(n);
            }
            Effect::Call { id, call } => self.send(n, id, call),
        }
    }

    fn fate_of_child(&mut self) -> (u64, Status) {
        if self.plan == Plan::Calm {
            return (self.dice.below(80_000), Status::Succeeded);
        }
        let status = self.dice.pick(&[Status::Succeeded, Status::Succeeded, Status::Failed, Status::TimedOut]);
        let takes = match self.dice.below(12) {
            0 => self.dice.below(6_000_000),
            1..=3 => self.dice.below(900_000),
            _ => self.dice.below(60_000),
        };
        (takes, status)
    }

    /// On its way to the store, with the time limit that the engine sets.
    fn send(&mut self, n: usize, id: CallId, call: Call) {
        let limit_us = match call.kind() {
            CallKind::Heartbeat => config(self.plan).timing.heartbeat_timeout.as_micros() as u64,
            _ => STATEMENT_TIMEOUT_US,
        };
        let calling = make(self.processes[n].client.clone(), id, call);
        let task = self.tasks.spawn(n, Request::Call(id), calling);
        self.later(limit_us, TimedEvent::Deadline { task });
    }
}

pub(super) fn exited(run: RunId, status: Status) -> Input {
    let ending = Ending { status, exit_code: None, signal: None, reason: None, ended_at: Timestamp::EPOCH };
    Input::Exited { run, ending, output: Arc::default() }
}
