//! Executing -> Idle, as the node asks for it: a run that ended is kept until its record is acknowledged, however long that takes.
//! The same commit may claim the job's next firing.

use super::call::{Call, CallFailure, CallKind};
use super::flow::{Decision, Load};
use super::ledger::flight::Sent;
use super::ledger::reactions::{Facts, Failed};
use super::port::{FinishAnswer, Finished, Next, RowKey};
use super::timers::Timer;
use super::{Ended, Node, Stage};
use crate::id::RunId;
use crate::matrix::Event;
use crate::partition::partition_of;
use crate::run::{Ending, Status};
use crate::time::BootTime;

const FAILED_FINISH: Failed =
    Failed { rolled_back: Event::FinishRolledBack, refused: Event::FinishRefused, unknown: Event::FinishUnknown };

impl Node {
    pub(super) fn exited(&mut self, run: RunId, ended: Ended, now: BootTime) {
        let (utc, Ended { ending, output }) = (self.utc(now), ended);
        let Some(of_run) = self.runs.get(&run).filter(|of_run| of_run.stage == Stage::Executing) else { return };
        let cancelled = ending.status == Status::Cancelled;
        let reason = of_run.stop.filter(|_| cancelled).map(|stop| stop.reason()).or(ending.reason);
        self.flow.ended(of_run.held.map(|held| held.firing), utc, now);
        let ending = Ending { ended_at: utc, reason, claimed_at: of_run.claimed_at, ..ending };
        self.set_stage(run, Stage::Ended(Ended { ending, output }));
    }

    pub(super) fn finish_if_needed(&mut self, now: BootTime) {
        // A row that has lost its run takes no record of it.
        if self.worklists.ended.is_empty() || self.has_to_write_back() {
            return;
        }
        if let Some(until) = self.agenda.backoffs.until(CallKind::Finish, now) {
            return self.timers.set(Timer::Finish, Some(until));
        }
        let load = self.load(now);
        match self.flow.finish(&load) {
            Decision::Send(runs) => self.send_finish(runs, &load),
            Decision::WaitUntil(until) => self.timers.set(Timer::Finish, Some(until)),
            Decision::Wait => {}
        }
    }

    fn send_finish(&mut self, most: usize, load: &Load) {
        let ended: Vec<RunId> = self.worklists.ended.iter().take(most).copied().collect();
        self.flow.finish_sent(load.now);
        if !self.drain.begun && self.suspended_by.is_none() && self.flow.claims_successors(load) {
            self.draw_successors(&ended);
        }
        let (until, has_place) = (self.claim_until(load.now), self.flow.starts_successors(load));
        let next = |run| Next { run, until, has_place };
        let mut runs: Vec<Finished> = ended.iter().filter_map(|run| self.finish_of(*run, next)).collect();
        runs.sort_unstable_by_key(|finished| finished.at);
        let sent = Sent::Finish(runs.iter().map(|finished| finished.at.run).collect());
        let (me, executors) = (self.me(), self.executors.clone());
        self.call(sent, Call::Finish { me, runs, executors });
    }

    /// The record of a run that has ended, which is in flight from now on.
    fn finish_of(&mut self, run: RunId, next: impl Fn(RunId) -> Next) -> Option<Finished> {
        let of_run = self.runs.get(&run)?;
        let Stage::Ended(ended) = of_run.stage.clone() else { return None };
        let next = self.successors.get(&run).map(|successor| next(*successor));
        let Ended { ending, output } = ended.clone();
        let finished = Finished { at: of_run.at, ending, output, next };
        self.set_stage(run, Stage::Finishing(ended));
        Some(finished)
    }

    /// Draws ids for the successors of these runs. An id stays the same until the finish is answered.
    fn draw_successors(&mut self, ended: &[RunId]) {
        for run in ended {
            if !self.successors.contains_key(run) && self.is_of_my_partitions(*run) {
                let next = self.draw();
                self.successors.insert(*run, next);
            }
        }
    }

    /// A partition that moved to another node takes the job's next firing with it.
    fn is_of_my_partitions(&self, run: RunId) -> bool {
        let Some(of_run) = self.runs.get(&run) else { return false };
        let own_row = matches!(of_run.at.row, RowKey::Job(_));
        let job = of_run.job.as_ref().filter(|_| own_row);
        let partition = job.map(|job| partition_of(&job.namespace, &job.name, self.config.partitions));
        partition.is_some_and(|partition| self.partitions.binary_search(&partition).is_ok())
    }

    pub(super) fn finished(&mut self, sent: Vec<RunId>, answer: Result<Vec<FinishAnswer>, CallFailure>, now: BootTime) {
        match answer {
            Ok(answers) => {
                self.agenda.backoffs.succeeded(CallKind::Finish);
                for (run, one) in sent.into_iter().zip(answers) {
                    let (event, facts) = match one {
                        FinishAnswer::Recorded { claim_at } => {
                            (Event::FinishRecorded, Facts { at_time: claim_at, ..Facts::default() })
                        }
                        FinishAnswer::RecordedAndClaimed(claimed) => {
                            (Event::FinishClaimed, Facts { successor: Some(claimed), ..Facts::default() })
                        }
                        FinishAnswer::AlreadyGone => (Event::FinishGone, Facts::default()),
                    };
                    self.react(run, event, facts, now);
                }
            }
            Err(failure) => {
                self.agenda.backoffs.failed(CallKind::Finish, now);
                self.flow.finish_failed(now);
                for run in sent {
                    self.react(run, FAILED_FINISH.event(failure), Facts::default(), now);
                }
            }
        }
    }
}
