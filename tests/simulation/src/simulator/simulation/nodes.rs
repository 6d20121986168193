//! Processes of nodes: they boot, do what their node wants, and die.

use carillon_domain::firing::{Held, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::Input;
use carillon_domain::node::call::{Call, CallId, CallKind};
use carillon_domain::run::Status;
use carillon_store::NodeStore;

use super::{Simulation, TimedEvent};
use crate::simulator::calls::{Done, Request, make};
use crate::simulator::plan::Plan;
use crate::simulator::process::{Process, STATEMENT_TIMEOUT_US, Seat};
use crate::world::{BootClock, End, Scheduler, World, registration};

/// Their clients, as the plan of faults knows them.
const SURVIVORS: u64 = 500;

impl Simulation {
    pub(super) fn boot(&mut self, place: usize) {
        self.booted += 1;
        let session = SessionId::from_random(self.booted << 8 | place as u64);
        let client = self.database.client(place as u64);
        let drift_ppm =
            if self.plan.clocks() { i64::try_from(self.dice.below(19_001)).unwrap_or(0) - 9_500 } else { 0 };
        let clock = BootClock { ahead_us: self.dice.below(1 << 40), drift_ppm };
        let (n, now_us) = (self.world.processes.len(), self.world.now_us);
        let (sent, asleep, inbox) = (clock.at(now_us), Vec::new(), Vec::new());
        let seat = Seat { place, client: client.clone(), sent, asleep, inbox };
        self.world.processes.push(Process::registering(session, clock, now_us, seat));
        let new = registration(session, format!("node-{place}"));
        let opening = async move { Done::Opened(client.open_session(&new).await.ok().map(|opened| opened.now)) };
        let task = self.tasks.spawn(n, Request::Open, opening);
        self.later(STATEMENT_TIMEOUT_US, TimedEvent::Deadline { task });
    }

    /// A process that only watches and sends.
    pub fn survivor(&mut self, place: usize) {
        self.booted += 1;
        let (n, now_us) = (self.world.processes.len(), self.world.now_us);
        let session = SessionId::from_random(self.booted << 8 | place as u64);
        let (clock, client) = (BootClock::default(), self.database.client(SURVIVORS + place as u64));
        let seat = Seat { place, client, sent: clock.at(now_us), asleep: Vec::new(), inbox: Vec::new() };
        self.world.processes.push(Process::registering(session, clock, now_us, seat));
        self.later(place as u64, TimedEvent::Alerts { process: n });
    }

    pub(super) fn boot_again(&mut self, n: usize) {
        let place = self.world.processes[n].own.place;
        let after = self.dice.between(100_000, 2_500_000);
        self.later(after, TimedEvent::Boot { place });
    }

    pub(super) fn thaw(&mut self, n: usize) {
        let process = &mut self.world.processes[n];
        if process.frozen_until_us > self.world.now_us {
            return;
        }
        let (asleep, inbox) = (std::mem::take(&mut process.own.asleep), std::mem::take(&mut process.own.inbox));
        asleep.into_iter().for_each(|task| self.tasks.wake(task));
        for input in inbox {
            self.tell(n, input);
        }
    }

    /// The node is gone at once; its keeper kills the children within the grace, and somebody starts another one.
    pub fn die(&mut self, n: usize) {
        let after = self.dice.below(self.world.timing.fence_grace.as_micros() as u64);
        self.world.processes[n].die(self.world.now_us + after);
        self.tasks.drop_of(n);
        self.later(after, TimedEvent::KeeperKills { process: n });
        self.boot_again(n);
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
}

impl Scheduler for Simulation {
    type Own = Seat;

    fn world(&mut self) -> &mut World<Seat> {
        &mut self.world
    }

    fn tell(&mut self, n: usize, input: Input) {
        let process = &mut self.world.processes[n];
        if process.frozen_until_us > self.world.now_us {
            process.own.inbox.push(input);
        } else {
            self.feed(n, input);
        }
    }

    /// On its way to the store, with the time limit that the engine sets.
    fn send(&mut self, n: usize, id: CallId, call: Call) {
        let limit_us = match call.kind() {
            CallKind::Heartbeat => self.world.timing.heartbeat_timeout.as_micros() as u64,
            _ => STATEMENT_TIMEOUT_US,
        };
        let calling = make(self.world.processes[n].own.client.clone(), id, call);
        let task = self.tasks.spawn(n, Request::Call(id), calling);
        self.later(limit_us, TimedEvent::Deadline { task });
    }

    fn row_of(&self, held: &Held) -> (Option<JobId>, Option<Phase>) {
        self.checks.row_of(held.run)
    }

    fn started(&mut self, n: usize, held: &Held) -> u64 {
        let process = &self.world.processes[n];
        let (run, now) = (held.run.parts(), process.clock.at(self.world.now_us));
        self.checks.trace.note("spawn", [run.0, run.1, now.as_ms()]);
        let (after, status) = self.fate_of_child();
        self.later(after, TimedEvent::ChildEnds { process: n, run: held.run, status });
        self.world.now_us + after
    }

    fn stopping(&mut self, n: usize, run: RunId) -> u64 {
        let after = self.dice.below(200_000);
        self.later(after, TimedEvent::ChildEnds { process: n, run, status: Status::Cancelled });
        self.world.now_us + after
    }

    fn over(&mut self, n: usize, end: End) {
        match end {
            End::Drained => {
                self.world.processes[n].alive = false;
                self.tasks.drop_of(n);
                self.boot_again(n);
            }
            End::SelfKill(_) => {
                self.fault_plan.strike("a node that ended itself");
                self.die(n);
            }
        }
    }
}
