//! The reports of the web page.

use std::collections::BTreeMap;
use std::ops::Range;

use async_trait::async_trait;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use crate::local::LocalStore;
use crate::local::port::LocalDatabase;
use crate::{
    ActivityBucket, Bounded, JobDay, JobListQuery, ListedJob, NamespaceScope, ReportStore, RolledUp, RunView,
    StoreError,
};

fn not_yet() -> StoreError {
    StoreError::Permanent("this report is not built yet".to_owned())
}

#[async_trait]
impl<D: LocalDatabase> ReportStore for LocalStore<D> {
    async fn recent_runs(&self, _jobs: &[JobId], _count: usize) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        Err(not_yet())
    }

    async fn runs_between(
        &self,
        _jobs: &[JobId],
        _due: Range<Timestamp>,
        _per_job: usize,
    ) -> Result<BTreeMap<JobId, Vec<RunRecord>>, StoreError> {
        Err(not_yet())
    }

    async fn job_lists(
        &self,
        _scope: &NamespaceScope,
        _lists: &[JobListQuery],
    ) -> Result<Vec<Bounded<ListedJob>>, StoreError> {
        Err(not_yet())
    }

    async fn running(&self, _scope: &NamespaceScope, _limit: usize) -> Result<Bounded<RunView>, StoreError> {
        Err(not_yet())
    }

    async fn activity(&self, _scope: &NamespaceScope, _since: Timestamp) -> Result<Vec<ActivityBucket>, StoreError> {
        Err(not_yet())
    }

    async fn days_of_job(&self, _job: JobId, _since: Timestamp) -> Result<Vec<JobDay>, StoreError> {
        Err(not_yet())
    }

    async fn roll_up(&self, _limit: usize) -> Result<RolledUp, StoreError> {
        Err(not_yet())
    }
}
