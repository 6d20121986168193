//! The events in the order of virtual time, and calls that go on when their wait is over.

use carillon_domain::id::RunId;
use carillon_domain::invariants::{Invariant, Violation};
use carillon_domain::node::Input;
use carillon_domain::run::Status;

use super::Simulation;
use crate::simulator::calls::Done;
use crate::simulator::process::{Process, config};
use crate::simulator::tasks::TaskId;
use crate::world::{Scheduler, Writer};

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
    /// A node looks whether there is anything to tell or to send.
    Alerts {
        process: usize,
    },
    /// A message reaches its receiver.
    Heard {
        attempt: u64,
    },
    /// An attempt to send is over for its node.
    Answered {
        attempt: u64,
    },
}

impl Simulation {
    pub fn later(&mut self, after_us: u64, what: TimedEvent) {
        self.queued += 1;
        self.queue.insert((self.world.now_us + after_us, self.queued), what);
    }

    pub fn run_until(&mut self, end_us: u64) -> Result<(), Violation> {
        let mut at_once = 0;
        loop {
            self.go_on();
            if let Some(violation) = self.world.broken.take() {
                return Err(violation);
            }
            let queued = self.queue.keys().next().map(|(at, _)| *at);
            let wakes = self.world.processes.iter().map(Process::looked_at_us);
            let next_us = queued.into_iter().chain(self.database.next_at_us()).chain(wakes).min().unwrap_or(u64::MAX);
            if next_us > end_us {
                break;
            }
            at_once = if next_us > self.world.now_us { 0 } else { at_once + 1 };
            if at_once > BUSY {
                let awake = self.world.processes.iter().filter(|process| process.looked_at_us() <= self.world.now_us);
                let nodes: Vec<_> = awake.map(|process| (process.own.place, process.alive, &process.node)).collect();
                let server = self.database.next_at_us();
                let sentence = format!(
                    "a busy loop {} us after the beginning: queued {queued:?}, server {server:?}, awake {nodes:?}",
                    self.world.now_us
                );
                return Err(Violation { invariant: Invariant::L2, sentence });
            }
            self.advance_to(next_us.max(self.world.now_us));
            self.step();
        }
        self.advance_to(end_us);
        Ok(())
    }

    fn advance_to(&mut self, now_us: u64) {
        self.world.now_us = now_us;
        self.clock.advance_to(now_us);
        self.database.advance_to(now_us);
        self.watch();
    }

    /// Lets everything happen that is due: one entry of the queue, or a node that wakes.
    fn step(&mut self) {
        let due = self.queue.first_entry().filter(|entry| entry.key().0 <= self.world.now_us);
        if let Some(what) = due.map(|entry| entry.remove()) {
            self.happen(what);
            return;
        }
        for n in 0..self.world.processes.len() {
            if self.world.processes[n].looked_at_us() > self.world.now_us {
                continue;
            }
            if self.world.processes[n].deadline_us().is_some_and(|at| at <= self.world.now_us) {
                let after = self.dice.below(self.world.timing.pause.as_micros() as u64);
                self.world.processes[n].dead_at_us = Some(self.world.now_us + after);
                self.later(after, TimedEvent::KeeperKills { process: n });
            }
            self.feed(n, Input::Tick);
        }
    }

    /// Polls every call that may go on, and hands on what came of it.
    fn go_on(&mut self) {
        while let Some((task, owner)) = self.tasks.next_ready() {
            if let Some(process) = self.world.processes.get_mut(owner)
                && process.is_frozen(self.world.now_us)
            {
                process.own.asleep.push(task);
                continue;
            }
            let done = self.tasks.poll(task);
            self.watch();
            if let Some((task, done)) = done {
                self.done(task.owner, done);
            }
            if self.world.broken.is_some() {
                return;
            }
        }
    }

    fn watch(&mut self) {
        for commit in self.database.take_commits() {
            self.world.committed(&commit, Writer { call: commit.by, of: None });
            let verdict = self.checks.committed(&commit, &mut self.world);
            self.world.must(verdict);
            let verdict = self.outbox.facts.committed(&commit, self.database_now());
            self.world.must(verdict);
        }
    }

    pub(super) fn done(&mut self, owner: usize, done: Done) {
        match done {
            Done::Told(answered) => self.answered += u64::from(answered),
            Done::Input(input) => self.tell(owner, input),
            Done::Looked => self.looked(owner),
            Done::Claimed(claimed) => self.claimed_deliveries(owner, claimed),
            Done::AnswerWritten { attempt, written } => self.answer_written(attempt, written),
            Done::Opened(Some(utc)) => {
                let (now_us, config) = (self.world.now_us, config(self.plan));
                let process = &mut self.world.processes[owner];
                process.register(config, utc, process.own.sent, now_us);
                let executors = process.own.executors();
                self.tell(owner, Input::Offers(executors));
                self.later(0, TimedEvent::Alerts { process: owner });
            }
            Done::Opened(None) => {
                self.world.processes[owner].alive = false;
                self.boot_again(owner);
            }
        }
    }

    fn happen(&mut self, what: TimedEvent) {
        match what {
            TimedEvent::Boot { place } => self.boot(place),
            TimedEvent::ChildEnds { process, run, status } => self.child_ends(process, run, status),
            TimedEvent::KeeperKills { process } => self.children_die(process),
            TimedEvent::Deadline { task } => self.deadline(task),
            TimedEvent::Thaw { process } => self.thaw(process),
            TimedEvent::Mend { client } => {
                self.fault_plan.now().cut_off.remove(&client);
            }
            TimedEvent::DatabaseIsBack => self.fault_plan.now().away = false,
            TimedEvent::Meddle => self.meddle(),
            TimedEvent::People => self.ask_something(),
            TimedEvent::Alerts { process } => self.look_at_alerts(process),
            TimedEvent::Heard { attempt } => self.message_heard(attempt),
            TimedEvent::Answered { attempt } => self.message_answered(attempt),
        }
    }

    /// Nobody waits for the answer any more; what was sent may still be carried out.
    fn deadline(&mut self, task: TaskId) {
        let Some(owner) = self.tasks.owner(task) else { return };
        if let Some(process) = self.world.processes.get(owner).filter(|process| process.is_frozen(self.world.now_us)) {
            let after = process.frozen_until_us - self.world.now_us;
            return self.later(after, TimedEvent::Deadline { task });
        }
        if let Some(one) = self.tasks.drop_one(task) {
            self.fault_plan.strike("an answer that came too late");
            self.done(one.owner, one.call.late());
        }
    }
}
