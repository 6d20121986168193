//! Where each run of a node stands.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::firing::Held;
use crate::id::RunId;
use crate::job::Job;
use crate::measured::ClaimedAt;
use crate::node::port::RunRef;
use crate::node::{Node, StopReason};
use crate::run::{Ending, Output};

/// Where a run stands in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::node) enum Stage {
    /// Held by this session, waiting in the wheel or for a place.
    Prepared,
    /// A start is in flight.
    Starting,
    /// A start of unknown outcome: to be settled before anything else.
    OutcomeUnknown,
    /// It runs.
    Executing,
    /// It has ended; its finish is to be sent.
    Ended(Ended),
    /// Its finish is in flight.
    Finishing(Ended),
    /// To be released unstarted.
    Releasing,
}

/// How a run ended and what it printed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::node) struct Ended {
    pub(in crate::node) ending: Ending,
    pub(in crate::node) output: Arc<Output>,
}

#[derive(Debug, Clone, Hash)]
pub(in crate::node) struct Run {
    pub(in crate::node) at: RunRef,
    /// The definition to run; `None` for a row that recovery found.
    pub(in crate::node) job: Option<Arc<Job>>,
    pub(in crate::node) stage: Stage,
    /// The reason why it was asked to stop, if it was.
    pub(in crate::node) stop: Option<StopReason>,
    /// The firing that runs, once it was spawned.
    pub(in crate::node) held: Option<Held>,
    /// When this node learned that it holds the row.
    pub(in crate::node) claimed_at: ClaimedAt,
}

/// Runs in stages that only an answer of the store leads out of. Starts have an order of their own.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Worklists {
    pub(in crate::node) outcome_unknown: BTreeSet<RunId>,
    pub(in crate::node) ended: BTreeSet<RunId>,
    pub(in crate::node) releasing: BTreeSet<RunId>,
}

impl Worklists {
    pub(in crate::node) const fn of(&mut self, stage: &Stage) -> Option<&mut BTreeSet<RunId>> {
        match stage {
            Stage::OutcomeUnknown => Some(&mut self.outcome_unknown),
            Stage::Ended(_) => Some(&mut self.ended),
            Stage::Releasing => Some(&mut self.releasing),
            Stage::Prepared | Stage::Starting | Stage::Executing | Stage::Finishing(_) => None,
        }
    }
}

/// Whether a stage counts as executing. A run keeps its place until it is recorded, and a start of unknown outcome may execute as soon as
/// it is settled.
pub(in crate::node) const fn lives(stage: &Stage) -> bool {
    matches!(stage, Stage::OutcomeUnknown | Stage::Executing | Stage::Ended(_) | Stage::Finishing(_))
}

impl Node {
    /// All runs in `stage`. Looks at every run: not for what is done at every step.
    pub(in crate::node) fn in_stage(&self, stage: &Stage) -> Vec<RunId> {
        self.runs.iter().filter(|(_, run)| run.stage == *stage).map(|(id, _)| *id).collect()
    }

    /// Puts a run into its first stage. An earlier run of the same id is over.
    pub(in crate::node) fn enter(&mut self, of_run: Run) {
        self.forget(of_run.at.run);
        self.count_in(of_run.at.run, &of_run.stage);
        self.runs.insert(of_run.at.run, of_run);
    }

    pub(in crate::node) fn set_stage(&mut self, run: RunId, stage: Stage) {
        let Some(of_run) = self.runs.get_mut(&run) else { return };
        let before = std::mem::replace(&mut of_run.stage, stage.clone());
        self.count_out(run, &before);
        self.count_in(run, &stage);
    }

    pub(in crate::node) fn forget(&mut self, run: RunId) {
        if let Some(gone) = self.runs.remove(&run) {
            self.count_out(run, &gone.stage);
            if !self.replaces.is_empty() {
                self.replaces.retain(|(_, of)| *of != run);
            }
        }
    }

    pub(in crate::node) fn count_in(&mut self, run: RunId, stage: &Stage) {
        self.executing += usize::from(lives(stage));
        self.worklists.of(stage).map(|runs| runs.insert(run));
    }

    pub(in crate::node) fn count_out(&mut self, run: RunId, stage: &Stage) {
        if *stage == Stage::Executing {
            self.to_recheck.remove(&run);
        }
        self.executing -= usize::from(lives(stage));
        self.worklists.of(stage).map(|runs| runs.remove(&run));
    }
}
