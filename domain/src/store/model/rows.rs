//! The rows that one transaction has read so far.

use std::collections::{BTreeMap, BTreeSet};

use super::{ConcurrentJob, JobKey, JobRow, KnownSession, SessionState, Standing};
use crate::firing::FiringKey;
use crate::id::{JobId, RunId};
use crate::node::port::{RowKey, RunRef};
use crate::run::RunRecord;
use crate::store::Need;
use crate::time::Timestamp;

/// Rows of one state of the database, as far as they were read, and the time of the transaction.
///
/// `None` in a field means that nobody has read it yet. In a map it means that there is no such row.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// The database's time, the same throughout the transaction.
    pub now: Timestamp,
    /// The same in microseconds: versions of new rows begin there.
    pub now_us: u64,
    /// See [`Need::Standing`].
    pub standing: Option<Standing>,
    /// See [`Need::SpentSeq`].
    pub spent_seq: Option<Option<u64>>,
    /// See [`Need::LastHeard`].
    pub last_heard: Option<Option<Timestamp>>,
    /// Rows of jobs.
    pub jobs: BTreeMap<JobId, Option<JobRow>>,
    /// Concurrent runs.
    pub concurrent: BTreeMap<FiringKey, Option<ConcurrentJob>>,
    /// Living jobs by name; their rows are in `jobs`.
    pub names: BTreeMap<JobKey, Option<JobId>>,
    /// Runs by id, each with the row that carries it.
    pub runs: BTreeMap<RunId, Option<RowKey>>,
    /// Whether runs have a record.
    pub recorded: BTreeMap<RunId, bool>,
    /// See [`Need::History`]: of each job, from which due time on.
    pub history: BTreeMap<JobId, (Timestamp, Vec<RunRecord>)>,
    /// See [`Need::Losses`]: since when it was asked, and up to when commits were lost.
    pub losses: Option<(Timestamp, Option<Timestamp>)>,
    /// Jobs of which every concurrent run was read.
    pub with_concurrent: BTreeSet<JobId>,
    /// See [`Need::Due`]: in the order of their due times.
    pub due: Option<Vec<RowKey>>,
    /// See [`Need::HeldBy`].
    pub held: Option<Vec<RowKey>>,
    /// See [`Need::Sessions`].
    pub sessions: Option<Vec<KnownSession>>,
    /// See [`Need::SessionState`]; the inner `None` means that there is no such session.
    pub session_state: Option<Option<SessionState>>,
    /// See [`Need::NewJobs`]: numbers in the order of the definitions.
    pub new_jobs: Option<Vec<JobId>>,
    /// See [`Need::HighestVersion`].
    pub highest_version: Option<u64>,
}

impl Rows {
    /// Nothing but the time of the transaction.
    pub fn at(now: Timestamp, now_us: u64) -> Self {
        Self { now, now_us, ..Self::default() }
    }

    /// Takes in the row of a job.
    pub fn add_job(&mut self, row: JobRow) -> RowKey {
        let id = row.state.id;
        self.jobs.insert(id, Some(row));
        RowKey::Job(id)
    }

    /// Takes in a concurrent run.
    pub fn add_concurrent(&mut self, run: ConcurrentJob) -> RowKey {
        let key = run.row.key;
        self.concurrent.insert(key, Some(run));
        RowKey::Concurrent(key)
    }

    /// Notes that rows which were asked for and not added do not exist.
    pub fn note_missing(&mut self, runs: &[RunRef]) {
        for at in runs {
            match at.row {
                RowKey::Job(id) => _ = self.jobs.entry(id).or_default(),
                RowKey::Concurrent(key) => _ = self.concurrent.entry(key).or_default(),
            }
        }
    }

    /// Whether the row was read.
    pub fn has(&self, row: &RowKey) -> bool {
        match row {
            RowKey::Job(id) => self.jobs.contains_key(id),
            RowKey::Concurrent(key) => self.concurrent.contains_key(key),
        }
    }

    /// Fails with a need, unless every row of `runs` was read.
    pub(in crate::store) fn require(
        &self,
        runs: &[RunRef],
        need: impl FnOnce(Vec<RunRef>) -> Need,
    ) -> Result<(), Need> {
        if runs.iter().all(|at| self.has(&at.row)) { Ok(()) } else { Err(need(runs.to_vec())) }
    }

    /// Fails with a need, unless the rows of these jobs were read.
    pub(in crate::store) fn require_jobs(&self, jobs: Vec<JobId>) -> Result<(), Need> {
        if jobs.iter().all(|id| self.jobs.contains_key(id)) { Ok(()) } else { Err(Need::Jobs(jobs)) }
    }

    /// Fails with a need, unless the rows of all jobs were read that have a concurrent run among `rows`: they learn how it
    /// ends.
    pub(in crate::store) fn require_jobs_of_concurrent<'a>(
        &self,
        rows: impl Iterator<Item = &'a RowKey>,
    ) -> Result<(), Need> {
        let of_concurrent = |row: &RowKey| match row {
            RowKey::Job(_) => None,
            RowKey::Concurrent(key) => Some(key.job),
        };
        let jobs: BTreeSet<JobId> = rows.filter_map(of_concurrent).collect();
        self.require_jobs(jobs.into_iter().collect())
    }

    /// Takes in the history of these jobs from `since` on.
    pub fn add_history(&mut self, jobs: Vec<JobId>, since: Timestamp, records: Vec<RunRecord>) {
        for job in jobs {
            self.history.insert(job, (since, Vec::new()));
        }
        for record in records {
            if let Some((_, of_job)) = self.history.get_mut(&record.job) {
                of_job.push(record);
            }
        }
    }

    /// Fails with a need, unless the history of these jobs was read from `since` on.
    pub(in crate::store) fn require_history(&self, jobs: &[JobId], since: Timestamp) -> Result<(), Need> {
        let is_read = |job: &JobId| self.history.get(job).is_some_and(|(from, _)| *from <= since);
        if jobs.iter().all(is_read) { Ok(()) } else { Err(Need::History(jobs.to_vec(), since)) }
    }

    /// Up to when commits were lost; fails with a need, unless the losses since this time were read.
    pub(in crate::store) fn require_losses(&self, since: Timestamp) -> Result<Option<Timestamp>, Need> {
        let read = self.losses.filter(|(from, _)| *from <= since);
        read.map(|(_, until)| until).ok_or(Need::Losses(since))
    }

    /// Fails with a need, unless it was read of all these runs whether they have a record.
    pub(in crate::store) fn require_recorded(&self, runs: Vec<RunId>) -> Result<(), Need> {
        if runs.iter().all(|run| self.recorded.contains_key(run)) { Ok(()) } else { Err(Need::Recorded(runs)) }
    }

    /// Fails with a need, unless every concurrent run of these jobs was read.
    pub(in crate::store) fn require_concurrent_of(&self, jobs: Vec<JobId>) -> Result<(), Need> {
        if jobs.iter().all(|id| self.with_concurrent.contains(id)) { Ok(()) } else { Err(Need::ConcurrentRunsOf(jobs)) }
    }
}
