//! People, who ask for anything at any time.

use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::job::Job;
use carillon_doubles::author;
use carillon_store::{ControlStore, JobKey, PutIf, PutJob};

use super::jobs;
use super::plan::Plan;
use super::simulation::{Simulation, TimedEvent};

pub(super) fn key(job: &Job) -> JobKey {
    JobKey { namespace: job.namespace.clone(), name: job.name.clone() }
}

impl Simulation {
    /// One request, and the next one a while later.
    pub(super) fn ask_something(&mut self) {
        if !self.troubled || !(self.plan.people() || self.plan == Plan::Dst) {
            return;
        }
        let every_us = if self.plan == Plan::Dst { 20_000_000 } else { 60_000 };
        let after = self.dice.below(every_us);
        self.later(after, TimedEvent::People);
        let n = usize::try_from(self.dice.below(self.jobs.len() as u64)).unwrap_or(0);
        let Some(job) = self.jobs.get(n).cloned() else { return };
        let (people, key) = (self.people.clone(), key(&job));
        match self.dice.below(20) {
            0..=3 => {
                self.fault_plan.strike("a pause");
                let lasts = Duration::from_millis(self.dice.below(5_000));
                let until = self.dice.one_in(2).then(|| self.database_now() + lasts);
                self.ask(async move { people.pause(&key, until, None, &author()).await.is_ok() });
            }
            4..=7 => {
                self.fault_plan.strike("a resume");
                self.ask(async move { people.resume(&key, &author()).await.is_ok() });
            }
            8..=11 => {
                self.fault_plan.strike("a run now");
                self.asked_runs += 1;
                let run = RunId::drawn(SessionId::from_random(1 << 40), self.asked_runs);
                self.ask(async move { people.trigger(&key, run, &author()).await.is_ok() });
            }
            12..=14 => {
                let at = self.dice.below(u64::MAX);
                if let Some(run) = self.checks.some_run(at) {
                    self.fault_plan.strike("a cancel");
                    self.ask(async move { people.cancel(run, &author()).await.is_ok() });
                }
            }
            15..=18 => {
                self.fault_plan.strike("an update");
                let job = jobs::changed(self.plan, &mut self.dice, &job);
                self.jobs[n] = job.clone();
                let put = [PutJob { job, paused: None, when: PutIf::Any, author: author() }];
                self.ask(async move { people.put_jobs(&put).await.is_ok() });
            }
            _ => {
                self.fault_plan.strike("a deletion");
                self.ask(async move { people.delete_job(&key, None, &author()).await.is_ok() });
            }
        }
    }
}
