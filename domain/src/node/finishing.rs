//! Executing -> Idle, the node's side: a run that ended is kept until its record is acknowledged, however long that takes.
//! What comes up next of the same job may be claimed by the same commit.

use std::time::Duration;

use super::port::{FinishAnswer, FinishRequest, Next, RowKey};
use super::{Effect, Node, Rush, Stage, StoreAnswer};
use crate::guard::{Guard, stands};
use crate::id::RunId;
use crate::partition::partition_of;
use crate::run::{Ending, Status};
use crate::time::BootTime;

/// For how long at the most starts go before finishes.
const RUSH: Duration = Duration::from_millis(250);
/// How long after a finish was sent the next one is, at the soonest, unless its batch is full.
const GATHER: Duration = Duration::from_millis(25);

impl Node {
    pub(super) fn exited(&mut self, run: RunId, ending: Ending, now: BootTime) {
        let utc = self.utc(now);
        let Some(of_run) = self.runs.get(&run).filter(|of_run| of_run.stage == Stage::Executing) else { return };
        let cancelled = ending.status == Status::Cancelled;
        let reason = of_run.stop.filter(|_| cancelled).map(|stop| stop.reason()).or(ending.reason);
        self.set_stage(run, Stage::Ended(Ending { ended_at: utc, reason, ..ending }));
    }

    pub(super) fn finish_if_needed(&mut self, now: BootTime) {
        if self.flight.finish.is_some() || !self.wish.finish_backoff.is_over() {
            return;
        }
        let ended = self.batch_of(&self.to_ask.ended);
        if ended.is_empty() || self.is_in_a_rush(now) || ended.len() < self.config.max_batch && self.gathers() {
            return;
        }
        self.wish.gather_until = Some(now + GATHER);
        self.draw_onward(&ended);
        let until = self.claim_until(now);
        let request = |run: &RunId| {
            let of_run = self.runs.get(run)?;
            let Stage::Ended(ending) = &of_run.stage else { return None };
            let next = self.onward.get(run).map(|next| Next { run: *next, until });
            Some(FinishRequest { at: of_run.at, ending: ending.clone(), next })
        };
        let mut requests: Vec<FinishRequest> = ended.iter().filter_map(request).collect();
        requests.sort_unstable_by_key(|request| request.at);
        self.flight.finish = Some(requests.iter().map(|request| request.at.run).collect());
        self.emit(Effect::Finish(requests));
    }

    /// Runs that end soon after each other share a finish; the first one after a while goes at once. Nothing waits in a drain.
    fn gathers(&self) -> bool {
        self.wish.gather_until.is_some() && !self.drain.begun
    }

    /// Many firings that come due together are started before the first of them to end are recorded: how late they start is
    /// seen, when they are recorded hardly. For a short while only, as a node that is behind has always some waiting, and only
    /// while there is a place for each.
    fn is_in_a_rush(&mut self, now: BootTime) -> bool {
        let starting = !self.due.is_empty() || self.flight.start.is_some();
        let starts_first = starting && self.executing < self.config.max_executing && !self.drain.begun;
        self.wish.rush = match self.wish.rush {
            _ if !starts_first => Rush::Off,
            Rush::Off => Rush::Until(now + RUSH),
            Rush::Until(at) if at > now => Rush::Until(at),
            Rush::Until(_) | Rush::Over => Rush::Over,
        };
        matches!(self.wish.rush, Rush::Until(_))
    }

    /// Gives ids to what may be claimed along with these finishes. One that was given stays until the finish is answered.
    fn draw_onward(&mut self, ended: &[RunId]) {
        // A node that is full leaves what comes up next to the order in which it does.
        if self.drain.begun || self.withheld.is_some() || self.claim_limit() == 0 {
            return;
        }
        for run in ended {
            if !self.onward.contains_key(run) && self.is_of_my_partitions(*run) {
                let next = self.draw();
                self.onward.insert(*run, next);
            }
        }
    }

    /// What falls to another node by now goes to it with its next firing.
    fn is_of_my_partitions(&self, run: RunId) -> bool {
        let Some(of_run) = self.runs.get(&run) else { return false };
        let own_row = matches!(of_run.at.row, RowKey::Job(_));
        let job = of_run.job.as_ref().filter(|_| own_row);
        let partition = job.map(|job| partition_of(&job.namespace, &job.name, self.config.partitions));
        partition.is_some_and(|partition| self.partitions.binary_search(&partition).is_ok())
    }

    pub(super) fn finished(&mut self, answer: StoreAnswer<Vec<FinishAnswer>>, now: BootTime) {
        let Some(sent) = self.flight.finish.take() else { return };
        let Ok(answers) = answer else {
            // Whatever the failure was, it is asked again for ever; the run id makes a second record impossible.
            self.wish.finish_backoff.failed(now);
            if !stands(Guard::FinishAgain) {
                for run in sent {
                    self.forget(run);
                    self.onward.remove(&run);
                }
            }
            return;
        };
        self.wish.finish_backoff.succeeded();
        let until = self.utc(now) + self.config.horizon;
        for (run, one) in sent.into_iter().zip(answers) {
            self.forget(run);
            self.onward.remove(&run);
            self.emit(Effect::Forget(run));
            match one {
                FinishAnswer::Onward(claimed) => self.adopt(*claimed, now),
                FinishAnswer::Recorded { claim_at } => self.wish.claim |= claim_at.is_some_and(|at| at <= until),
                FinishAnswer::AlreadyGone => {}
            }
        }
    }
}
