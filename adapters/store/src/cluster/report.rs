//! The reports of the web page: each is one statement by itself, without a transaction around it.

use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use crate::cluster::ClusterStore;
use crate::cluster::locks::Locks;
use crate::cluster::port::{Database, Pool};
use crate::cluster::transaction::{TRIES, Transaction};
use crate::reports::port::{Reports, by_job};
use crate::{
    Bounded, JobDay, JobListQuery, ListedJob, NamespaceScope, Overview, OverviewQuery, ReportStore, RolledUp,
    StoreError,
};

#[async_trait]
impl<D: Database> ReportStore for ClusterStore<D> {
    async fn recent_runs(&self, jobs: &[JobId], count: usize) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        glance!(self, |tables| tables.connection.records_of_jobs(jobs, None, count)).map(by_job)
    }

    async fn runs_between(
        &self,
        jobs: &[JobId],
        due: Range<Timestamp>,
        per_job: usize,
    ) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        glance!(self, |tables| tables.connection.records_of_jobs(jobs, Some(due.clone()), per_job)).map(by_job)
    }

    async fn job_lists(
        &self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
    ) -> Result<Vec<Bounded<ListedJob>>, StoreError> {
        let cached = |id, generation| self.shared.definition(id, generation);
        let partitions = self.shared.partitions;
        glance!(self, |tables| tables.connection.job_lists(scope, lists, partitions, &cached))
    }

    async fn overview(&self, query: &OverviewQuery) -> Result<Overview, StoreError> {
        glance!(self, |tables| tables.connection.overview(query))
    }

    async fn days_of_job(&self, job: JobId, since: Timestamp) -> Result<Vec<JobDay>, StoreError> {
        glance!(self, |tables| tables.connection.days_of_job(job, since))
    }

    async fn roll_up(&self, limit: usize) -> Result<RolledUp, StoreError> {
        if !glance!(self, |tables| tables.has_to_roll_up())? {
            return Ok(RolledUp::default());
        }
        within!(Transaction::begin(&self.database, &self.shared, (Pool::Writers, "roll_up"), Locks::Rows), |tables| {
            tables.roll_up(limit)
        })
    }
}
