//! Statements of people's requests: jobs and history as they are shown, live output, and the purge of history.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::id::{JobId, RunId};
use carillon_domain::run::RunRecord;
use carillon_domain::store::Definition;
use carillon_domain::time::Timestamp;

use crate::alerts::port::RunHead;
use crate::calls::sign_in::{LinkDigest, SigningKey};
use crate::feed::{AuditLine, JournalAsk, Numbered};
use crate::live_output::LiveRow;
use crate::purge_cursor::{Counted, Purge, PurgePosition, PurgePositions};
use crate::tables::{GivenParams, JobRows, RecordQuery, Recorded, SeenJob};
use crate::{AuditQuery, AuditRows, JobKey, JobQuery, LivePart, Output, RunView, StoreResult};

/// A definition by id and generation, if it is cached.
pub type CachedDefinition<'a> = &'a (dyn Fn(JobId, u64) -> Option<Arc<Definition>> + Sync);

/// Reads of jobs and history.
pub trait ReadForPeople {
    /// Living jobs by name, in the order asked for; one that this binary cannot read is an error of its own. A definition that is
    /// `cached` is not read again.
    fn jobs_by_name(
        &mut self,
        keys: &[JobKey],
        cached: CachedDefinition<'_>,
    ) -> impl Future<Output = StoreResult<Vec<StoreResult<Option<SeenJob>>>>> + Send;

    /// A page of living jobs in the order asked for. If only a part of the jobs was looked at, also the last of that part.
    fn job_page(
        &mut self,
        query: &JobQuery,
        partitions: u16,
        cached: CachedDefinition<'_>,
    ) -> impl Future<Output = StoreResult<JobRows>> + Send;

    /// A run wherever it is, by one statement: between two of them it could move on.
    fn seen_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<(RunView, GivenParams)>>> + Send;

    /// Living runs of `jobs`, whatever else the query says, and the history that it asks for; one statement for the same reason.
    fn seen_runs_of(
        &mut self,
        jobs: &[JobId],
        query: &RecordQuery,
    ) -> impl Future<Output = StoreResult<Vec<RunView>>> + Send;

    /// One record of history.
    fn record(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Recorded>>> + Send;

    /// History, newest first.
    fn records(&mut self, query: &RecordQuery) -> impl Future<Output = StoreResult<Vec<Recorded>>> + Send;

    /// History by its numbers.
    fn runs_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<Recorded>>> + Send;

    /// The same without what only a few rows are read for.
    fn run_heads(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<RunHead>>> + Send;

    /// Which of these runs have kept output that is not empty.
    fn runs_with_output(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send;

    /// Which of these runs have a record.
    fn recorded_runs(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send;

    /// The audit log by its numbers.
    fn audit_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<AuditLine>>> + Send;

    /// The newest record of each job that has one.
    fn last_records(&mut self, jobs: &[JobId]) -> impl Future<Output = StoreResult<BTreeMap<JobId, RunRecord>>> + Send;

    /// Entries of the audit log, newest first, up to `query.limit`.
    fn audit(&mut self, query: &AuditQuery) -> impl Future<Output = StoreResult<AuditRows>> + Send;

    /// The output of a run that ended.
    fn output(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Output>>> + Send;
}

/// Output of runs that are not over, for readers at other nodes.
pub trait LiveOutputs {
    /// The published part and when it was asked for.
    fn live_output(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<LiveRow>>> + Send;

    /// Notes that somebody reads.
    fn ask_live_output(&mut self, run: RunId, now: Timestamp) -> impl Future<Output = StoreResult<()>> + Send;

    /// Publishes parts, only where somebody asked and never back to an older state.
    fn publish_live_output(&mut self, outputs: &[(RunId, LivePart)]) -> impl Future<Output = StoreResult<()>> + Send;
}

/// Signing in at the page.
pub trait SignIn {
    /// Stores the key unless there is one; answers the one that is there.
    fn signing_key(&mut self, offered: SigningKey) -> impl Future<Output = StoreResult<SigningKey>> + Send;

    /// Stores a link, and removes those that expired before `now`.
    fn insert_link(
        &mut self,
        link: LinkDigest,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> impl Future<Output = StoreResult<()>> + Send;

    /// Whether there is a link that has not expired.
    fn has_link(&mut self, link: LinkDigest, now: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send;

    /// Deletes a link that has not expired; whether there was one.
    fn delete_link(&mut self, link: LinkDigest, now: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send;
}

/// Deletion of old history and of the remains of deleted jobs.
pub trait Purging {
    /// Jobs with more records than they may have, as far as a part of the index tells.
    fn crowded_jobs(&mut self, purge: &Purge, from: PurgePosition)
    -> impl Future<Output = StoreResult<Counted>> + Send;

    /// Deletes up to `limit` entries of the audit log that are older than `before`; answers how many.
    fn purge_audit(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = StoreResult<usize>> + Send;

    /// Deletes up to `purge.limit` records, and remains. Answers how many records, and where the next call goes on.
    fn purge(
        &mut self,
        purge: &Purge,
        counted: &Counted,
        from: PurgePositions,
        now: Timestamp,
    ) -> impl Future<Output = StoreResult<(usize, PurgePositions)>> + Send;
}
