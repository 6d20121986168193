//! The events in the order of virtual time, and calls that go on when their wait is over.

use carillon_domain::id::RunId;
use carillon_domain::invariants::{Invariant, Violation};
use carillon_domain::node::{Input, Node};
use carillon_domain::run::Status;

use super::World;
use super::nodes::exited;
use crate::simulator::calls::Done;
use crate::simulator::process::{Process, config};
use crate::simulator::tasks::TaskId;

/// More inputs than one moment can have in any cluster that makes progress.
const BUSY: u64 = 200_000;

pub(in crate::simulator) enum TimedEvent {
    Boot {
        place: usize,
    },
    ChildEnds {
        process: usize,
        run: RunId,
        status: Status,
    },
    KeeperKills {
        process: usize,
    },
    Deadline {
        task: TaskId,
    },
    Thaw {
        process: usize,
    },
    /// A node is reachable again.
    Mend {
        client: u64,
    },
    DatabaseIsBack,
    Meddle,
    People,
}

impl World {
    pub fn later(&mut self, after_us: u64, what: TimedEvent) {
        self.queued += 1;
        self.queue.insert((self.now_us + after_us, self.queued), what);
    }

    pub(super) fn run_until(&mut self, end_us: u64) -> Result<(), Violation> {
        let mut at_once = 0;
        loop {
            self.go_on();
            if let Some(violation) = self.broken.take() {
                return Err(violation);
            }
            let queued = self.queue.keys().next().map(|(at, _)| *at);
            let wakes = self.processes.iter().map(Process::wake_us);
            let next_us = queued.into_iter().chain(self.database.next_at_us()).chain(wakes).min().unwrap_or(u64::MAX);
            if next_us > end_us {
                break;
            }
            at_once = if next_us > self.now_us { 0 } else { at_once + 1 };
            if at_once > BUSY {
                let awake = self.processes.iter().filter(|process| process.wake_us() <= self.now_us);
                let nodes: Vec<_> = awake.map(|process| (process.place, process.alive, &process.node)).collect();
                let server = self.database.next_at_us();
                let sentence = format!(
                    "a busy loop {} us after the beginning: queued {queued:?}, server {server:?}, awake {nodes:?}",
                    self.now_us
                );
                return Err(Violation { invariant: Invariant::L2, sentence });
            }
            self.advance_to(next_us.max(self.now_us));
            self.step();
        }
        self.advance_to(end_us);
        Ok(())
    }

    fn advance_to(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.clock.advance_to(now_us);
        self.database.advance_to(now_us);
        self.watch();
    }

    /// Lets everything happen that is due: one entry of the queue, or a node that wakes.
    fn step(&mut self) {
        let due = self.queue.first_entry().filter(|entry| entry.key().0 <= self.now_us);
        if let Some(what) = due.map(|entry| entry.remove()) {
            self.happen(what);
            return;
        }
        for n in 0..self.processes.len() {
            if self.processes[n].wake_us() > self.now_us {
                continue;
            }
            let process = &mut self.processes[n];
            let overdue = process.clock.at(self.now_us) >= process.keeper_until;
            if overdue && !process.killing && !process.children.is_empty() {
                process.killing = true;
                let pause = config(self.plan).timing.pause.as_micros() as u64;
                let after = self.dice.below(pause);
                self.later(after, TimedEvent::KeeperKills { process: n });
            }
            if self.processes[n].alive && !self.processes[n].is_frozen(self.now_us) {
                self.feed(n, Input::Tick);
            }
        }
    }

    /// Polls every call that may go on, and hands on what came of it.
    fn go_on(&mut self) {
        while let Some((task, owner)) = self.tasks.next_ready() {
            if let Some(process) = self.processes.get_mut(owner)
                && process.is_frozen(self.now_us)
            {
                process.asleep.push(task);
                continue;
            }
            let done = self.tasks.poll(task);
            self.watch();
            if let Some((task, done)) = done {
                self.done(task.owner, done);
            }
            if self.broken.is_some() {
                return;
            }
        }
    }

    fn watch(&mut self) {
        for commit in self.database.take_commits() {
            let verdict = self.checks.committed(&commit);
            self.judge(verdict);
        }
    }

    pub(super) fn judge(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict
            && self.broken.is_none()
        {
            self.broken = Some(violation);
        }
    }

    pub(super) fn done(&mut self, owner: usize, done: Done) {
        match done {
            Done::Told(answered) => self.answered += u64::from(answered),
            Done::Input(input) => self.feed(owner, input),
            Done::Opened(Some(utc)) => {
                let process = &mut self.processes[owner];
                let now = process.clock.at(self.now_us);
                let node = Node::new(config(self.plan), process.session, utc, now).registered_at(process.sent);
                process.keeper_until = process.sent + config(self.plan).timing.self_kill_after;
                process.node = Some(node);
                let executors = self.processes[owner].executors();
                self.feed(owner, Input::Offers(executors));
            }
            Done::Opened(None) => {
                self.processes[owner].alive = false;
                self.boot_again(owner);
            }
        }
    }

    fn happen(&mut self, what: TimedEvent) {
        match what {
            TimedEvent::Boot { place } => self.boot(place),
            TimedEvent::ChildEnds { process, run, status } => {
                if self.processes[process].children.remove(&run).is_some() {
                    self.checks.died(run);
                    self.feed(process, exited(run, status));
                }
            }
            TimedEvent::KeeperKills { process } => self.kill_children(process, true),
            TimedEvent::Deadline { task } => self.deadline(task),
            TimedEvent::Thaw { process } => self.thaw(process),
            TimedEvent::Mend { client } => {
                self.fault_plan.now().cut_off.remove(&client);
            }
            TimedEvent::DatabaseIsBack => self.fault_plan.now().away = false,
            TimedEvent::Meddle => self.meddle(),
            TimedEvent::People => self.ask_something(),
        }
    }

    /// Nobody waits for the answer any more; what was sent may still be carried out.
    fn deadline(&mut self, task: TaskId) {
        let Some(owner) = self.tasks.owner(task) else { return };
        if let Some(process) = self.processes.get(owner).filter(|process| process.is_frozen(self.now_us)) {
            let after = process.frozen_until_us - self.now_us;
            return self.later(after, TimedEvent::Deadline { task });
        }
        if let Some(one) = self.tasks.drop_one(task) {
            self.fault_plan.strike("an answer that came too late");
            self.done(one.owner, one.call.late());
        }
    }
}
