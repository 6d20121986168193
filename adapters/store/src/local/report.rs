//! The reports of the web page.

use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use crate::local::LocalStore;
use crate::local::port::LocalDatabase;
use crate::reports::namespaces::JobNamespaces;
use crate::reports::port::{Reports, by_job};
use crate::tables::{Tables, at_once};
use crate::{
    Bounded, JobDay, JobListQuery, ListedJob, NamespaceScope, Overview, OverviewQuery, ReportStore, RolledUp,
    StoreError,
};

#[async_trait]
impl<D: LocalDatabase> ReportStore for LocalStore<D> {
    async fn recent_runs(&self, jobs: &[JobId], count: usize) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        let jobs = jobs.to_vec();
        let read = self.database.read("recent_runs", move |tables| at_once(tables.records_of_jobs(&jobs, None, count)));
        read.await.map(by_job)
    }

    async fn runs_between(
        &self,
        jobs: &[JobId],
        due: Range<Timestamp>,
        per_job: usize,
    ) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        let jobs = jobs.to_vec();
        let read = self
            .database
            .read("runs_between", move |tables| at_once(tables.records_of_jobs(&jobs, Some(due), per_job)));
        read.await.map(by_job)
    }

    async fn job_lists(
        &self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
    ) -> Result<Vec<Bounded<ListedJob>>, StoreError> {
        let (scope, lists) = (scope.clone(), lists.to_vec());
        let read = move |tables: &mut D::Transaction<'_>| {
            let partitions = tables.partitions();
            at_once(tables.job_lists(&scope, &lists, partitions, &|_, _| None))
        };
        self.database.read("job_lists", read).await
    }

    async fn overview(&self, query: &OverviewQuery) -> Result<Overview, StoreError> {
        let query = query.clone();
        self.database.read("overview", move |tables| at_once(tables.overview(&query))).await
    }

    async fn days_of_job(&self, job: JobId, since: Timestamp) -> Result<Vec<JobDay>, StoreError> {
        self.database.read("days_of_job", move |tables| at_once(tables.days_of_job(job, since))).await
    }

    async fn roll_up(&self, limit: usize) -> Result<RolledUp, StoreError> {
        let has_to = |tables: &mut D::Transaction<'_>| {
            let now = tables.now();
            at_once(tables.has_to_roll_up(now))
        };
        if !self.database.read("roll_up", has_to).await? {
            return Ok(RolledUp::default());
        }
        let roll_up = move |tables: &mut D::Transaction<'_>| {
            let now = tables.now();
            at_once(tables.roll_up(limit, now, &JobNamespaces::default()))
        };
        self.database.write("roll_up", roll_up).await
    }
}
