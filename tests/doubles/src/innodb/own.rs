//! The writes of a transaction that are not committed yet.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, JobState};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::run::RunRecord;
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;

use crate::data::Data;
use carillon_store::alerts::port::{AlertWrite, WatchRow};
use carillon_store::tables::WriteSet;
use carillon_store::{JobKey, RecordedLoss, SessionView};

/// A row before and after a commit.
pub type Change<R> = (Option<Arc<R>>, Option<Arc<R>>);

/// The writes that one COMMIT made visible.
#[derive(Debug)]
pub struct Commit {
    /// The call that did it.
    pub by: &'static str,
    /// The database's time in the transaction: what was decided in it holds as of then, however late the COMMIT came.
    pub now: Timestamp,
    /// Jobs' rows.
    pub jobs: Vec<Change<JobState>>,
    /// Rows beside them.
    pub concurrent: Vec<Change<ConcurrentRun>>,
    /// Definitions, each with its due times: new ones, and those that were replaced.
    pub defined: Vec<(JobId, Arc<Job>, Timeline)>,
    /// Jobs that were deleted.
    pub deleted: Vec<JobId>,
    /// History.
    pub records: Vec<RunRecord>,
    /// Sessions that were ended or removed.
    pub ended: Vec<SessionId>,
    /// Jobs whose due times were judged against their expectations: the row before and after.
    pub judged: Vec<(WatchRow, WatchRow)>,
}

/// The same before it is visible.
#[derive(Debug, Clone, Default)]
pub(super) struct Own {
    /// When its clock was looked at.
    pub now: Timestamp,
    pub changes: Vec<WriteSet>,
    /// Lock rows, each written once more.
    pub epochs: Vec<u32>,
    /// Sessions as they are now; `None` where they are gone.
    pub sessions: BTreeMap<SessionId, Option<SessionView>>,
    pub spent: Vec<(SessionId, u64, Timestamp)>,
    pub names: Vec<(JobKey, JobId)>,
    pub windows: Option<Vec<RecordedLoss>>,
    /// Each with the numbers that it has drawn.
    pub alerts: Vec<(AlertWrite, RangeInclusive<u64>)>,
}

impl Own {
    /// How much a rollback would undo.
    pub fn weight(&self) -> usize {
        let rows = |changes: &WriteSet| changes.jobs.len() + changes.concurrent.len() + changes.records.len();
        self.changes.iter().map(rows).sum::<usize>() + self.epochs.len() + self.sessions.len()
    }

    /// Whether reads must look beyond the sessions.
    pub fn has_rows(&self) -> bool {
        !self.changes.is_empty() || !self.names.is_empty() || self.windows.is_some() || !self.alerts.is_empty()
    }

    /// Lays it over what is committed.
    pub fn apply(self, data: &mut Data) {
        data.names.extend(self.names);
        // Before the sessions: a record finds the node's name of a session that goes in the same commit.
        self.changes.into_iter().for_each(|changes| data.apply(changes));
        for (id, view) in self.sessions {
            match view {
                Some(view) => data.sessions.insert(id, view),
                None => data.sessions.remove(&id),
            };
        }
        for (id, seq, ended_at) in self.spent {
            data.spent.insert(id, (seq, ended_at));
        }
        if let Some(windows) = self.windows {
            data.windows = windows;
        }
        for (write, drawn) in self.alerts {
            data.alerts.apply_drawn(&write, drawn);
        }
    }

    /// The commit as a watcher sees it.
    pub fn told(&self, by: &'static str) -> Commit {
        let over = |view: &Option<SessionView>| {
            view.as_ref().is_none_or(|view| view.beat.state == carillon_store::SessionState::Ended)
        };
        let ended = self.sessions.iter().filter(|(_, view)| over(view)).map(|(id, _)| *id).collect();
        let (jobs, concurrent, defined) = (Vec::new(), Vec::new(), Vec::new());
        let (deleted, records) = (Vec::new(), Vec::new());
        let judged = self.alerts.iter().filter_map(|(write, _)| match write {
            AlertWrite::Watched(before, after) => Some((*before, *after)),
            _ => None,
        });
        let judged = judged.collect();
        let mut told = Commit { by, now: self.now, jobs, concurrent, defined, deleted, records, ended, judged };
        for changes in &self.changes {
            for write in &changes.jobs {
                if let (None, Some(after)) = (&write.before, &write.after) {
                    let definition = &write.definition;
                    told.defined.push((after.id, definition.job.clone(), definition.timeline.clone()));
                }
                told.jobs.push((write.before.clone(), write.after.clone()));
            }
            told.concurrent.extend(changes.concurrent.iter().map(|write| (write.before.clone(), write.after.clone())));
            let defined = changes.definitions.iter();
            told.defined.extend(defined.map(|(id, new)| (*id, new.job.clone(), new.timeline.clone())));
            told.deleted.extend(&changes.deleted);
            told.records.extend(changes.records.iter().cloned());
        }
        told
    }
}
