//! The reports of the web page: each is one statement by itself, without a transaction around it.

use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use crate::cluster::ClusterStore;
use crate::cluster::locks::Locks;
use crate::cluster::port::{Connection, Database, Pool};
use crate::cluster::transaction::{TRIES, Transaction};
use crate::reports::port::{Reports, by_job};
use crate::{
    ActivityBucket, Bounded, JobDay, JobListQuery, ListedJob, NamespaceScope, ReportStore, RolledUp, RunView,
    StoreError,
};

/// Asks one statement. A connection that was closed while it was idle costs only another one.
macro_rules! ask {
    ($store:expr, |$connection:ident| $statement:expr) => {{
        let mut fresh = false;
        loop {
            let mut connection = $store.database.connection(Pool::Readers, fresh).await?;
            let answer = {
                let $connection = &mut connection;
                $statement.await
            };
            let lost = connection.is_lost();
            if answer.is_ok() {
                connection.give_back();
            } else {
                connection.give_up().await;
            }
            if !lost || fresh {
                break answer;
            }
            fresh = true;
        }
    }};
}

#[async_trait]
impl<D: Database> ReportStore for ClusterStore<D> {
    async fn recent_runs(&self, jobs: &[JobId], count: usize) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        ask!(self, |connection| connection.records_of_jobs(jobs, None, count)).map(by_job)
    }

    async fn runs_between(
        &self,
        jobs: &[JobId],
        due: Range<Timestamp>,
        per_job: usize,
    ) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        ask!(self, |connection| connection.records_of_jobs(jobs, Some(due.clone()), per_job)).map(by_job)
    }

    async fn job_lists(
        &self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
    ) -> Result<Vec<Bounded<ListedJob>>, StoreError> {
        let cached = |id, generation| self.shared.definition(id, generation);
        let partitions = self.shared.partitions;
        ask!(self, |connection| connection.job_lists(scope, lists, partitions, &cached))
    }

    async fn running(&self, scope: &NamespaceScope, limit: usize) -> Result<Bounded<RunView>, StoreError> {
        ask!(self, |connection| connection.running(scope, limit))
    }

    async fn activity(&self, scope: &NamespaceScope, since: Timestamp) -> Result<Vec<ActivityBucket>, StoreError> {
        ask!(self, |connection| connection.activity(scope, since))
    }

    async fn days_of_job(&self, job: JobId, since: Timestamp) -> Result<Vec<JobDay>, StoreError> {
        ask!(self, |connection| connection.days_of_job(job, since))
    }

    async fn roll_up(&self, limit: usize) -> Result<RolledUp, StoreError> {
        let has_to =
            within!(Transaction::read(&self.database, &self.shared, "roll_up"), |tables| { tables.has_to_roll_up() })?;
        if !has_to {
            return Ok(RolledUp::default());
        }
        within!(Transaction::begin(&self.database, &self.shared, (Pool::Writers, "roll_up"), Locks::Rows), |tables| {
            tables.roll_up(limit)
        })
    }
}
