//! The reports of the web page over maps. Nothing here is fast; it says what the databases must answer.

use std::future::{Future, ready};
use std::ops::Range;

use carillon_domain::firing::Phase;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use carillon_store::cluster::port::CachedDefinition;
use carillon_store::reports::counting::{begin_of_day, day_of};
use carillon_store::reports::namespaces::JobNamespaces;
use carillon_store::reports::port::{JobLists, Reports};
use carillon_store::reports::tally::Ended;
use carillon_store::tables::{SeenJob, Tables, at_once};
use carillon_store::{
    ActivityBucket, Bounded, JobDay, JobList, JobListQuery, ListedJob, NamespaceScope, Overview, OverviewQuery,
    RolledUp, RunStage, RunView, StoreResult,
};

use super::data::{Data, Place};
use super::innodb::ModelConnection;
use super::tables::Transaction;

impl Data {
    fn records_of_jobs(&self, jobs: &[JobId], due: Option<Range<Timestamp>>, per_job: usize) -> Vec<RunRecord> {
        let mut records = Vec::new();
        for job in jobs {
            let newest_first = self.records.values().rev().map(|(record, _)| record);
            let of_job = newest_first
                .filter(|record| record.job == *job && due.as_ref().is_none_or(|due| due.contains(&record.due_at)));
            records.extend(of_job.take(per_job).cloned());
        }
        records
    }

    fn seen(&self, id: JobId) -> Option<SeenJob> {
        let row = self.row(id).filter(|row| !row.state.deleted)?;
        let holder = row.state.phase.held().and_then(|held| self.sessions.get(&held.session));
        Some(SeenJob { node: holder.map(|session| session.node.clone()), last_run: self.last_record(id).cloned(), row })
    }

    /// The jobs of a list, each with its time in the list.
    fn entries(&self, list: JobList) -> Vec<(JobId, Option<Timestamp>)> {
        let due = |until: Timestamp| {
            let claimable = self.states.values().filter_map(|state| Some((state.id, state.claim_at()?)));
            claimable.filter(|(_, at)| *at <= until).map(|(id, at)| (id, Some(at))).collect::<Vec<_>>()
        };
        match list {
            JobList::Troubled => {
                let since = |state: &carillon_domain::firing::JobState| state.last_end?.troubled_since;
                self.states.values().filter_map(|state| Some((state.id, Some(since(state)?)))).collect()
            }
            JobList::Overdue { since } => {
                let beside = self.concurrent.values().filter_map(|row| Some((row.key.job, row.claim_at()?)));
                let beside = beside.filter(|(_, at)| *at <= since).map(|(id, at)| (id, Some(at)));
                due(since).into_iter().chain(beside).collect()
            }
            JobList::Coming { until } => {
                let held = self.states.values().filter(|state| state.phase.held().is_some());
                held.map(|state| (state.id, None)).chain(due(until)).collect()
            }
        }
    }

    fn job_lists(&self, scope: &NamespaceScope, queries: &[JobListQuery]) -> Vec<Bounded<ListedJob>> {
        let mut lists = JobLists::of(queries);
        for (list, query) in queries.iter().enumerate() {
            for (id, at) in self.entries(query.list) {
                let Some(seen) = self.seen(id) else { continue };
                if scope.includes(&seen.row.definition.job.namespace) {
                    lists.add(list, ListedJob { view: seen.into(), at });
                }
            }
        }
        lists.done()
    }

    fn running(&self, scope: &NamespaceScope, limit: usize) -> Bounded<RunView> {
        let own = self.states.values().map(|state| (state.id, state.phase, state.cancel));
        let beside = self.concurrent.values().map(|row| (row.key.job, row.phase, row.cancel));
        let view = |(job_id, phase, cancel): (JobId, Phase, Option<_>)| {
            let Phase::Executing(held) = phase else { return None };
            let key = self.definitions.get(&job_id)?.key();
            let node = self.sessions.get(&held.session)?.node.clone();
            let stage = RunStage::Running { held, cancelling: cancel.is_some() };
            scope.includes(&key.namespace).then_some(RunView {
                id: held.run,
                job_id,
                key,
                node: Some(node),
                stage,
                params: None,
            })
        };
        Bounded::of_running(own.chain(beside).filter_map(view).collect(), limit)
    }

    fn activity(&self, scope: &NamespaceScope, since: Timestamp) -> Vec<ActivityBucket> {
        let mut buckets: Vec<ActivityBucket> = Vec::new();
        let shown = |name: &str| match scope {
            NamespaceScope::All => name.is_empty(),
            NamespaceScope::Only(names) => names.contains(name),
        };
        for (_, bucket) in self.activity.rows().filter(|(name, _)| shown(name)) {
            match buckets.iter_mut().find(|known| known.begins_at == bucket.begins_at) {
                None => buckets.push(*bucket),
                Some(known) => {
                    known.outcomes.merge(&bucket.outcomes);
                    known.started += bucket.started;
                    known.lag_total_ms += bucket.lag_total_ms;
                    known.lag_max_ms = known.lag_max_ms.max(bucket.lag_max_ms);
                }
            }
        }
        let begin = carillon_store::reports::counting::begin_of(since, carillon_store::reports::counting::BUCKET);
        buckets.retain(|bucket| bucket.begins_at >= begin);
        buckets.sort_by_key(|bucket| bucket.begins_at);
        buckets
    }

    /// All but what the tables tell.
    fn overview(&self, OverviewQuery { scope, running, since }: &OverviewQuery) -> Overview {
        let any_job = self.names.keys().any(|key| scope.includes(&key.namespace));
        let (running, activity) = (self.running(scope, *running), self.activity(scope, *since));
        Overview { running, activity, any_job, ..Overview::default() }
    }

    fn days_of_job(&self, job: JobId, since: Timestamp) -> Vec<JobDay> {
        let mut days = self.job_days.clone();
        for (record, _) in self.uncounted.iter().filter_map(|place| self.records.get(place)) {
            days.entry((record.job, day_of(record.due_at))).or_default().add(record.status, record.count);
        }
        let of_job = days.into_iter().filter(|((id, day), _)| *id == job && *day >= day_of(since));
        of_job.map(|((_, day), outcomes)| JobDay { begins_at: begin_of_day(day), outcomes }).collect()
    }

    fn roll_up(&mut self, limit: usize) -> RolledUp {
        let step: Vec<Place> = self.uncounted.iter().take(limit).copied().collect();
        for place in &step {
            self.uncounted.remove(place);
            let Some((record, _)) = self.records.get(place) else { continue };
            let ended = Ended::one(record.finished_at, record.status, record.count, record.lag_ms);
            let namespace = self.definitions.get(&record.job).map(|definition| definition.job.namespace.clone());
            self.activity.add(namespace.as_deref(), &ended);
            self.job_days.entry((record.job, day_of(record.due_at))).or_default().add(record.status, record.count);
        }
        RolledUp { passed: step.len() as u64, more: !self.uncounted.is_empty() }
    }
}

fn done<T: Send>(value: T) -> impl Future<Output = StoreResult<T>> + Send {
    ready(Ok(value))
}

impl Reports for Transaction<'_> {
    fn records_of_jobs(
        &mut self,
        jobs: &[JobId],
        due: Option<Range<Timestamp>>,
        per_job: usize,
    ) -> impl Future<Output = StoreResult<Vec<RunRecord>>> + Send {
        done(self.data.records_of_jobs(jobs, due, per_job))
    }

    fn job_lists(
        &mut self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
        _partitions: u16,
        _cached: CachedDefinition<'_>,
    ) -> impl Future<Output = StoreResult<Vec<Bounded<ListedJob>>>> + Send {
        done(self.data.job_lists(scope, lists))
    }

    fn overview(&mut self, query: &OverviewQuery) -> impl Future<Output = StoreResult<Overview>> + Send {
        let (sessions, losses) = (at_once(self.sessions(false)), at_once(self.windows(query.since)));
        ready(sessions.and_then(|sessions| Ok(Overview { sessions, losses: losses?, ..self.data.overview(query) })))
    }

    fn days_of_job(&mut self, job: JobId, since: Timestamp) -> impl Future<Output = StoreResult<Vec<JobDay>>> + Send {
        done(self.data.days_of_job(job, since))
    }

    fn has_to_roll_up(&mut self, _now: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send {
        done(!self.data.uncounted.is_empty())
    }

    fn roll_up(
        &mut self,
        limit: usize,
        _now: Timestamp,
        _namespaces: &JobNamespaces,
    ) -> impl Future<Output = StoreResult<RolledUp>> + Send {
        done(self.data.roll_up(limit))
    }
}

/// Counts are written at once: no protocol hangs on them.
impl Reports for ModelConnection {
    async fn records_of_jobs(
        &mut self,
        jobs: &[JobId],
        due: Option<Range<Timestamp>>,
        per_job: usize,
    ) -> StoreResult<Vec<RunRecord>> {
        self.read(|data| data.records_of_jobs(jobs, due, per_job)).await
    }

    async fn job_lists(
        &mut self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
        _partitions: u16,
        _cached: CachedDefinition<'_>,
    ) -> StoreResult<Vec<Bounded<ListedJob>>> {
        self.read(|data| data.job_lists(scope, lists)).await
    }

    async fn overview(&mut self, query: &OverviewQuery) -> StoreResult<Overview> {
        self.read(|data| at_once(data.begin().overview(query))).await?
    }

    async fn days_of_job(&mut self, job: JobId, since: Timestamp) -> StoreResult<Vec<JobDay>> {
        self.read(|data| data.days_of_job(job, since)).await
    }

    async fn has_to_roll_up(&mut self, _now: Timestamp) -> StoreResult<bool> {
        self.read(|data| !data.uncounted.is_empty()).await
    }

    async fn roll_up(&mut self, limit: usize, _now: Timestamp, _namespaces: &JobNamespaces) -> StoreResult<RolledUp> {
        self.read(|data| data.roll_up(limit)).await
    }
}
