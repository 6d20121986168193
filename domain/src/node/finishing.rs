//! Executing -> Idle, the node's side: a run that ended is kept until its record is acknowledged, however long that takes.

use super::port::{FinishAnswer, FinishRequest};
use super::{Effect, Node, Stage, StoreAnswer};
use crate::guard::{Guard, stands};
use crate::id::RunId;
use crate::run::{Ending, Status};
use crate::time::BootTime;

impl Node {
    pub(super) fn exited(&mut self, run: RunId, ending: Ending, now: BootTime) {
        let utc = self.utc(now);
        let Some(of_run) = self.runs.get(&run).filter(|of_run| of_run.stage == Stage::Executing) else { return };
        let cancelled = ending.status == Status::Cancelled;
        let reason = of_run.stop.filter(|_| cancelled).map(|stop| stop.reason()).or(ending.reason);
        self.set_stage(run, Stage::Ended(Ending { ended_at: utc, reason, ..ending }));
    }

    pub(super) fn finish_if_needed(&mut self) {
        if self.flight.finish.is_some() || !self.wish.finish_backoff.is_over() {
            return;
        }
        let ended = self.batch_of(&self.to_ask.ended);
        if ended.is_empty() {
            return;
        }
        let request = |run: &RunId| {
            let of_run = self.runs.get(run)?;
            let Stage::Ended(ending) = &of_run.stage else { return None };
            Some(FinishRequest { at: of_run.at, ending: ending.clone() })
        };
        let mut requests: Vec<FinishRequest> = ended.iter().filter_map(request).collect();
        requests.sort_unstable_by_key(|request| request.at);
        self.flight.finish = Some(requests.iter().map(|request| request.at.run).collect());
        self.emit(Effect::Finish(requests));
    }

    pub(super) fn finished(&mut self, answer: StoreAnswer<Vec<FinishAnswer>>, now: BootTime) {
        let Some(sent) = self.flight.finish.take() else { return };
        let Ok(answers) = answer else {
            // Whatever the failure was, it is asked again for ever; the run id makes a second record impossible.
            self.wish.finish_backoff.failed(now);
            if !stands(Guard::FinishAgain) {
                sent.into_iter().for_each(|run| self.forget(run));
            }
            return;
        };
        self.wish.finish_backoff.succeeded();
        let until = self.utc(now) + self.config.horizon;
        for (run, one) in sent.into_iter().zip(answers) {
            self.forget(run);
            self.emit(Effect::Forget(run));
            let soon = matches!(one, FinishAnswer::Recorded { claim_at: Some(at) } if at <= until);
            self.wish.claim |= soon;
        }
    }
}
