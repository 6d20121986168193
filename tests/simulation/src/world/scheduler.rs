//! The behaviour of processes under any scheduler: they hear, they act, they start children, they end.

use std::sync::Arc;

use carillon_domain::firing::{Held, Phase};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::node::call::{Call, CallId};
use carillon_domain::node::{Effect, Input, SelfKillReason};
use carillon_domain::run::{Ending, Output, Status};
use carillon_domain::time::Timestamp;

use super::World;

/// The end of a process by its own will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It has given back all that it held.
    Drained,
    /// It may not go on.
    SelfKill(SelfKillReason),
}

/// The decisions about a world: when things happen, and the fate of calls.
pub trait Scheduler {
    /// The part of a process that only this scheduler knows.
    type Own;

    /// The world.
    fn world(&mut self) -> &mut World<Self::Own>;
    /// Tells a process something, now or when it can hear it.
    fn tell(&mut self, n: usize, input: Input);
    /// A node makes a call.
    fn send(&mut self, n: usize, id: CallId, call: Call);
    /// The job that a run is of, if that is known, and the phase of the row that carries it.
    fn row_of(&self, held: &Held) -> (Option<JobId>, Option<Phase>);
    /// A child has started; answers when it ends at the latest, by true time.
    fn started(&mut self, n: usize, held: &Held) -> u64;
    /// A child was asked to stop; answers when it ends at the latest.
    fn stopping(&mut self, n: usize, run: RunId) -> u64;
    /// A process ends.
    fn over(&mut self, n: usize, end: End);

    /// The output of a run of the job.
    fn output_of(&self, _: JobId) -> Arc<Output> {
        Arc::default()
    }

    /// A process that is awake hears something, and does what its node wants.
    fn feed(&mut self, n: usize, input: Input) {
        let world = self.world();
        let (now_us, process) = (world.now_us, &mut world.processes[n]);
        let now = process.clock.at(now_us);
        let awake = process.is_awake(now_us);
        let Some(node) = process.node.as_mut().filter(|_| awake) else { return };
        Arc::make_mut(node).handle(input, now);
        while let Some(effect) = self.world().next_effect(n) {
            self.carry_out(n, effect);
        }
    }

    /// Carries out one effect: the same for every scheduler.
    fn carry_out(&mut self, n: usize, effect: Effect) {
        match effect {
            Effect::RenewKeeper { until } => {
                let process = &mut self.world().processes[n];
                process.keeper_until = process.keeper_until.max(until);
            }
            Effect::Spawn { held, job } => {
                let (id, row) = self.row_of(&held);
                if self.world().start(n, (&held, &job), (id, row.as_ref())) {
                    let ends_at_us = self.started(n, &held);
                    if let Some(child) = self.world().processes[n].children.get_mut(&held.run) {
                        child.ends_at_us = ends_at_us;
                    }
                }
            }
            Effect::Stop { run, .. } => {
                let latest_us = self.stopping(n, run);
                if let Some(child) = self.world().processes[n].children.get_mut(&run) {
                    (child.asked_to_stop, child.ends_at_us) = (true, child.ends_at_us.min(latest_us));
                }
            }
            Effect::Recorded(_) => {}
            Effect::Drained => self.over(n, End::Drained),
            Effect::SelfKill(reason) => self.over(n, End::SelfKill(reason)),
            Effect::Call { id, call } => self.send(n, id, call),
        }
    }

    /// A child ends; its node hears of it if it can.
    fn child_ends(&mut self, n: usize, run: RunId, status: Status) {
        if let Some(child) = self.world().processes[n].children.remove(&run) {
            let ending = Ending::new(status, Timestamp::EPOCH);
            let output = self.output_of(child.job);
            self.tell(n, Input::Exited { run, ending, output });
        }
    }

    /// The keeper has killed all children of a process.
    fn children_die(&mut self, n: usize) {
        self.world().processes[n].dead_at_us = None;
        for run in self.world().processes[n].children.keys().copied().collect::<Vec<_>>() {
            self.child_ends(n, run, Status::Failed);
        }
    }

    /// Something is due: in order of time the first of all, as [`World::next_due`] has it.
    fn comes_due(&mut self, n: usize, due: Due) {
        match due {
            Due::Dead => self.children_die(n),
            Due::Deadline => {
                let world = self.world();
                let timing = world.timing;
                world.processes[n].deadline_passes(&timing);
            }
            Due::End(run) => {
                let stopped = self.world().processes[n].children.get(&run).is_some_and(|child| child.asked_to_stop);
                self.child_ends(n, run, if stopped { Status::Cancelled } else { Status::Succeeded });
            }
            Due::Wake => self.feed(n, Input::Tick),
        }
    }
}

/// An event that comes with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The keeper has killed the children of its node.
    Dead,
    /// The keeper's deadline is over.
    Deadline,
    /// A child has run for as long as it does.
    End(RunId),
    /// The node is to be looked at.
    Wake,
}

impl Due {
    /// Which of two that are due at once comes first.
    pub(super) const fn order(self) -> u8 {
        match self {
            Due::Dead => 0,
            Due::Deadline => 1,
            Due::End(_) => 2,
            Due::Wake => 3,
        }
    }
}
