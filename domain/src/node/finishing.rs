//! Executing -> Idle, the node's side: a run that ended is kept until its record is acknowledged, however long that takes.
//! What comes up next of the same job may be claimed by the same commit.

use super::port::{FinishAnswer, FinishRequest, Next, RowKey};
use super::{Effect, Lane, Node, Stage, StoreAnswer};
use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::partition::partition_of;
use crate::run::{Ending, Status};
use crate::time::BootTime;

impl Node {
    pub(super) fn exited(&mut self, run: RunId, ending: Ending, now: BootTime) {
        let utc = self.utc(now);
        let Some(of_run) = self.runs.get(&run).filter(|of_run| of_run.stage == Stage::Executing) else { return };
        let cancelled = ending.status == Status::Cancelled;
        let reason = of_run.stop.filter(|_| cancelled).map(|stop| stop.reason()).or(ending.reason);
        self.wish.gather.ended(of_run.record_by(utc, now));
        self.set_stage(run, Stage::Ended(Ending { ended_at: utc, reason, ..ending }));
    }

    pub(super) fn finish_if_needed(&mut self, now: BootTime) {
        let gathers = self.gathers(now);
        let Some(lane) = self.flight.finish.free().filter(|_| self.wish.finish_backoff.is_over()) else { return };
        let waiting = self.to_ask.ended.len();
        if waiting == 0 || !self.may_send_beside(&self.flight.finish, waiting) || self.is_in_a_rush(now) || gathers {
            return;
        }
        let ended: Vec<RunId> = self.to_ask.ended.iter().take(self.recorded_together()).copied().collect();
        self.wish.gather.was_sent(now);
        self.draw_onward(&ended);
        let until = self.claim_until(now);
        // That of the run that has ended, unless places are what the next start is short of.
        let has_place = self.free_places() >= self.due.len().min(self.config.max_batch);
        let next = |run| Next { run, until, has_place };
        let mut requests: Vec<FinishRequest> = ended.iter().filter_map(|run| self.finish_of(*run, next)).collect();
        requests.sort_unstable_by_key(|request| request.at);
        self.flight.finish.send(lane, requests.iter().map(|request| request.at.run).collect());
        self.emit(Effect::Finish { lane, runs: requests });
    }

    /// What is to be recorded of a run that has ended, which is on its way from now on.
    fn finish_of(&mut self, run: RunId, next: impl Fn(RunId) -> Next) -> Option<FinishRequest> {
        let of_run = self.runs.get(&run)?;
        let Stage::Ended(ending) = of_run.stage.clone() else { return None };
        let next = self.onward.get(&run).map(|onward| next(*onward));
        let request = FinishRequest { at: of_run.at, ending: ending.clone(), next };
        self.set_stage(run, Stage::Finishing(ending));
        Some(request)
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

    pub(super) fn finished(&mut self, lane: Lane, answer: StoreAnswer<Vec<FinishAnswer>>, now: BootTime) {
        let Some(sent) = self.flight.finish.take(lane) else { return };
        let Ok(answers) = answer else {
            // Whatever the failure was, it is asked again for ever; the run id makes a second record impossible.
            self.wish.finish_backoff.failed(now);
            self.wish.gather.ended(now);
            sent.into_iter().for_each(|run| self.finish_again(run));
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

    fn finish_again(&mut self, run: RunId) {
        if !enabled(Guard::FinishRepeats) {
            self.forget(run);
            self.onward.remove(&run);
        } else if let Some(Stage::Finishing(ending)) = self.runs.get(&run).map(|of_run| of_run.stage.clone()) {
            self.set_stage(run, Stage::Ended(ending));
        }
    }
}
