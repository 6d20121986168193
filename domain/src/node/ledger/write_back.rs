//! After lost commits a node writes the runs that it knows back into their rows, and the ends that it remembers into history. Only then a
//! person may accept the loss.
//!
//! No claim, start, finish or question for an outcome is on its way meanwhile. Their answers would change what the node knows. One that tells of
//! a start may be of what is lost, and its run must not begin after the loss is accepted. Runs that end wait for their records until everything
//! is written, as a row that has lost its run would take no record. Unknown outcomes are asked for then, too.

use std::collections::{BTreeMap, VecDeque};

use crate::firing::{Firing, Held};
use crate::guard::{Guard, enabled};
use crate::id::RunId;
use crate::lost_commits::LossWindow;
use crate::matrix::Event;
use crate::node::call::{Call, CallFailure, CallKind, WriteBackRequest};
use crate::node::ledger::flight::Sent;
use crate::node::ledger::reactions::{Facts, Failed};
use crate::node::port::{KnownRun, RunRef, WriteBackAnswer};
use crate::node::timers::Timer;
use crate::node::{Node, Stage};
use crate::run::Ending;
use crate::time::{BootTime, Timestamp};

const FAILED: Failed = Failed {
    rolled_back: Event::WritebackRolledBack,
    refused: Event::WritebackRefused,
    unknown: Event::WritebackUnknown,
};

/// The ends that a node remembers, and how far it has written back.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct WriteBack {
    /// Runs that the node need not record any more. The database may lose their records again.
    ends: VecDeque<RememberedEnd>,
    /// How many of them were remembered when the store was last asked for the rows that this session holds. It is right until the first
    /// end is taken for a row of the answer, and not needed after that.
    ends_before_list: usize,
    /// The end of the window for which everything is written.
    done: Option<Timestamp>,
    /// The end of the window for which `left` was listed.
    listed: Option<Timestamp>,
    /// Runs still to write.
    left: VecDeque<KnownRun>,
}

/// A run that has ended.
#[derive(Debug, Clone, Hash)]
struct RememberedEnd {
    known: KnownRun,
    /// Whether the store has answered that it recorded it, and not that the row is another's by now.
    is_recorded: bool,
}

impl WriteBack {
    /// Everything is listed and written again: what is written already changes nothing.
    pub fn again(&mut self) {
        (self.listed, self.done) = (None, None);
    }

    /// Its finish was answered.
    pub(in crate::node) fn remember(
        &mut self,
        (at, held, ending): (RunRef, Held, Ending),
        is_recorded: bool,
        most: usize,
    ) {
        self.ends.push_back(RememberedEnd { known: KnownRun { at, held, ended: Some(ending) }, is_recorded });
        while self.ends.len() > most {
            self.ends.pop_front();
            self.ends_before_list = self.ends_before_list.saturating_sub(1);
        }
    }

    /// The store is asked for the rows that this session holds. The answer tells nothing about ends that come after this.
    pub(in crate::node) fn asks_for_list(&mut self) {
        self.ends_before_list = self.ends.len();
    }

    /// Runs that ended since then, with the versions of their last rows. Their rows may have been read before.
    pub(in crate::node) fn ended_since_list(&self) -> BTreeMap<RunId, u64> {
        self.ends.iter().skip(self.ends_before_list).map(|end| (end.known.at.run, end.known.at.version)).collect()
    }

    /// The end of a run that the database lists as held although it had acknowledged the record. A manual run keeps its id for its next
    /// attempt, whose row is newer.
    pub(in crate::node) fn take_end(&mut self, row: RunRef) -> Option<(Held, Ending)> {
        let is_lost = |RememberedEnd { known, is_recorded }: &RememberedEnd| {
            *is_recorded && known.held.run == row.run && row.version <= known.at.version
        };
        let KnownRun { held, ended, .. } = self.ends.remove(self.ends.iter().position(is_lost)?)?.known;
        Some((held, ended?))
    }
}

impl Node {
    /// Whether the node has runs to write back before anything of them is recorded.
    pub(in crate::node) fn has_to_write_back(&self) -> bool {
        self.suspended_by.is_some_and(|window| self.write_back.done != Some(window.until_at))
    }

    pub(in crate::node) fn write_back_if_needed(&mut self, now: BootTime) {
        let Some(window) = self.suspended_by.filter(|_| self.has_to_write_back()) else { return };
        if self.flight.writes_back() || self.flight.may_tell_of_runs() {
            return;
        }
        if let Some(until) = self.agenda.backoffs.until(CallKind::WriteBack, now) {
            return self.timers.set(Timer::WriteBack, Some(until));
        }
        if self.write_back.listed != Some(window.until_at) {
            self.write_back.left =
                if enabled(Guard::WriteBack) { self.to_write_back(&window) } else { VecDeque::new() };
            self.write_back.listed = Some(window.until_at);
        }
        let most = self.config.max_batch.min(self.write_back.left.len());
        let runs: Vec<KnownRun> = self.write_back.left.drain(..most).collect();
        let last = self.write_back.left.is_empty();
        let sent = Sent::WriteBack { until: window.until_at, runs: runs.iter().map(|known| known.at).collect(), last };
        let request = WriteBackRequest { me: self.me(), until: window.until_at, runs, last };
        self.call(sent, Call::WriteBack(request));
    }

    /// The runs of one job next to each other, in the order of their firings. Ends from before the window are safe; one may have been recorded
    /// as late as a node lives without a database.
    fn to_write_back(&self, window: &LossWindow) -> VecDeque<KnownRun> {
        let safe_until = window.from_at - self.config.timing.expire_after;
        let may_be_lost = |end: &&KnownRun| {
            let ended_at = end.ended.as_ref().map(|ending| ending.ended_at);
            ended_at >= Some(safe_until) && !self.runs.contains_key(&end.held.run)
        };
        let ended = self.write_back.ends.iter().map(|end| &end.known).filter(may_be_lost).cloned();
        let living = self.runs.values().filter_map(|of_run| {
            let is_known = matches!(of_run.stage, Stage::Executing | Stage::Ended(_) | Stage::Finishing(_));
            of_run.held.filter(|_| is_known).map(|held| KnownRun { at: of_run.at, held, ended: None })
        });
        let mut known: Vec<KnownRun> = ended.chain(living).collect();
        known.sort_by_key(|KnownRun { at, held, .. }| {
            let Firing { due_at, trigger, attempt, .. } = held.firing;
            (at.row.job(), due_at, trigger, attempt)
        });
        known.into()
    }

    pub(in crate::node) fn wrote_back(
        &mut self,
        (until, sent, last): (Timestamp, Vec<RunRef>, bool),
        answer: Result<Option<Vec<WriteBackAnswer>>, CallFailure>,
        now: BootTime,
    ) {
        let answers = match answer {
            Ok(Some(answers)) => answers,
            // The next heartbeat tells what is open now.
            Ok(None) => return self.write_back_failed(&sent, CallFailure::RolledBack, now),
            Err(failure) => return self.write_back_failed(&sent, failure, now),
        };
        self.agenda.backoffs.succeeded(CallKind::WriteBack);
        if last {
            self.write_back.done = Some(until);
        }
        for (at, answer) in sent.into_iter().zip(answers) {
            // An end that was remembered has no stage any more.
            if !self.runs.contains_key(&at.run) {
                continue;
            }
            match answer {
                WriteBackAnswer::Executing { at, replace_at } => {
                    let facts = Facts { at: Some(at), replace_at, ..Facts::default() };
                    self.react(at.run, Event::WritebackExecuting, facts, now);
                }
                WriteBackAnswer::Recorded | WriteBackAnswer::Nowhere => {
                    self.react(at.run, Event::WritebackNowhere, Facts::default(), now);
                }
            }
        }
    }

    fn write_back_failed(&mut self, sent: &[RunRef], failure: CallFailure, now: BootTime) {
        self.agenda.backoffs.failed(CallKind::WriteBack, now);
        let living: Vec<RunId> = sent.iter().map(|at| at.run).filter(|run| self.runs.contains_key(run)).collect();
        for run in &living {
            self.react(*run, FAILED.event(failure), Facts::default(), now);
        }
        // Ends that were remembered have no stage.
        if living.is_empty() {
            self.write_back.again();
        }
    }
}
