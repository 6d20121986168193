//! Crashes, freezes, drains, and people, as the dice want it.

use std::time::Duration;

use carillon_domain::firing::Event;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::Input;

use super::{Happening, World};

impl World {
    pub(super) fn meddle(&mut self) {
        let n = self.dice.below(self.processes.len().max(1) as u64) as usize;
        let job = JobId(1 + self.dice.below(self.store.jobs.len() as u64));
        let Some(process) = self.processes.get(n) else { return };
        let (session, alive) = (process.session, process.alive);
        match self.dice.below(40) {
            0 if alive => self.die(n),
            1 if alive => self.processes[n].frozen_until = self.now + self.dice.below(6_000),
            2 if alive => self.feed_awake(n, Input::Drain),
            3 if alive && process.node.counts().1 > 0 => self.feed_awake(n, Input::DrainNow),
            4 if alive => {
                self.kill_children(n, false);
                self.processes[n].keeper_died = true;
                // A frozen node hears of it when it goes on.
                self.happen(Happening::Answer { session, input: Input::KeeperDied });
            }
            5..=8 => {
                let until = self.dice.one_in(2).then(|| self.store.now + Duration::from_millis(self.dice.below(3_000)));
                self.store.tell(job, &Event::Pause { until, reason: None });
            }
            9..=14 => self.store.tell(job, &Event::Resume),
            15..=19 => {
                self.booted += 1;
                self.store
                    .tell(job, &Event::Trigger { run: RunId::drawn(SessionId::from_random(1 << 40), self.booted) });
            }
            20..=24 => {
                if let Some(run) = self.store.held(session).first().map(|at| at.run) {
                    self.store.cancel(run);
                }
            }
            25..=27 => {
                let overlap = self.dice.pick(&Overlap::ALL);
                let schedule = format!("@every {}s", 1 + self.dice.below(4));
                let job_now = self.store.jobs[&job].job.clone();
                self.store.update(job, Job { overlap, schedule, ..(*job_now).clone() });
            }
            28 if self.dice.one_in(6) => self.store.tell(job, &Event::Delete),
            _ => {}
        }
    }
}
