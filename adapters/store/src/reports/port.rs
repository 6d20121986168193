//! The rows of the reports, as one transaction or statement of a database reads and writes them.

use std::collections::BTreeMap;
use std::ops::Range;

use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use crate::cluster::port::CachedDefinition;
use crate::reports::namespaces::JobNamespaces;
use crate::{
    Bounded, JobDay, JobList, JobListQuery, ListedJob, NamespaceScope, Overview, OverviewQuery, RolledUp, StoreResult,
};

/// How many entries of an index a report looks at for each list, if only some namespaces are shown.
pub const LOOKED_AT: usize = 500;

/// Reads and writes of the reports. Each read is one statement.
pub trait Reports {
    /// See [`crate::ReportStore::recent_runs`] and [`crate::ReportStore::runs_between`]; the records of each job are newest
    /// first.
    fn records_of_jobs(
        &mut self,
        jobs: &[JobId],
        due: Option<Range<Timestamp>>,
        per_job: usize,
    ) -> impl Future<Output = StoreResult<Vec<RunRecord>>> + Send;

    /// See [`crate::ReportStore::job_lists`].
    fn job_lists(
        &mut self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
        partitions: u16,
        cached: CachedDefinition<'_>,
    ) -> impl Future<Output = StoreResult<Vec<Bounded<ListedJob>>>> + Send;

    /// See [`crate::ReportStore::overview`].
    fn overview(&mut self, query: &OverviewQuery) -> impl Future<Output = StoreResult<Overview>> + Send;

    /// See [`crate::ReportStore::days_of_job`].
    fn days_of_job(&mut self, job: JobId, since: Timestamp) -> impl Future<Output = StoreResult<Vec<JobDay>>> + Send;

    /// Whether [`Self::roll_up`] has anything to do.
    fn has_to_roll_up(&mut self, now: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send;

    /// See [`crate::ReportStore::roll_up`]. Namespaces that are known need not be looked up.
    fn roll_up(
        &mut self,
        limit: usize,
        now: Timestamp,
        namespaces: &JobNamespaces,
    ) -> impl Future<Output = StoreResult<RolledUp>> + Send;
}

/// Collects the lists of [`Reports::job_lists`] from rows in any order.
pub struct JobLists {
    lists: Vec<OneList>,
}

/// A list that is collected.
struct OneList {
    query: JobListQuery,
    found: Bounded<ListedJob>,
    /// The place of each job among those found.
    places: BTreeMap<JobId, usize>,
}

impl JobLists {
    /// Empty lists.
    pub fn of(queries: &[JobListQuery]) -> Self {
        let list = |query: &JobListQuery| OneList { query: *query, found: Bounded::default(), places: BTreeMap::new() };
        Self { lists: queries.iter().map(list).collect() }
    }

    /// Adds a job to a list. A job with several rows (attempts of its last due time, runs that wait) is listed once.
    pub fn add(&mut self, list: usize, mut job: ListedJob) {
        let Some(OneList { query, found, places }) = self.lists.get_mut(list) else { return };
        if !query.list.tells_records() {
            job.view.last_run = None;
        }
        let place = *places.entry(job.view.state.id).or_insert(found.items.len());
        let Some(known) = found.items.get_mut(place) else { return found.items.push(job) };
        let order = |view: &crate::JobView| view.last_run.as_ref().map(|run| (run.attempt, run.id));
        if order(&job.view) > order(&known.view) {
            known.view.last_run = job.view.last_run;
        }
        known.at = known.at.min(job.at);
    }

    /// Notes that not all rows of a list were looked at.
    pub fn note_more(&mut self, list: usize) {
        if let Some(list) = self.lists.get_mut(list) {
            list.found.more = true;
        }
    }

    /// The lists in their orders and lengths.
    pub fn done(self) -> Vec<Bounded<ListedJob>> {
        let ordered = |OneList { query, found: mut list, .. }| {
            list.items.sort_by_key(|job: &ListedJob| (job.at, job.view.state.id));
            if query.list == JobList::Troubled {
                list.items.reverse();
            }
            list.more |= list.items.len() > query.limit;
            list.items.truncate(query.limit);
            list
        };
        self.lists.into_iter().map(ordered).collect()
    }
}

/// The records of each job, newest first.
pub fn by_job(records: Vec<RunRecord>) -> BTreeMap<JobId, Vec<RunRecord>> {
    let mut of_jobs: BTreeMap<JobId, Vec<RunRecord>> = BTreeMap::new();
    for record in records {
        of_jobs.entry(record.job).or_default().push(record);
    }
    for records in of_jobs.values_mut() {
        records.sort_by_key(|record| std::cmp::Reverse((record.due_at, record.attempt, record.id)));
    }
    of_jobs
}
