//! The reads of the protocol, each from one state of the rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey, JobState, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::{RunRef, Unclaimed, WantedOutput};
use carillon_domain::run::RunRecord;
use carillon_domain::store::Definition;
use carillon_domain::time::Timestamp;

use super::model_connection::ModelConnection;
use crate::data::Data;
use carillon_store::alerts::port::RunHead;
use carillon_store::cluster::port::{
    CachedDefinition, ConcurrentQuery, LiveOutputs, Peeking, Purging, ReadForPeople, ReadRows, SignIn, StateQuery,
    StateRead,
};
use carillon_store::feed::{AuditLine, JournalAsk, Numbered};
use carillon_store::live_output::LiveRow;
use carillon_store::purge_cursor::{Counted, Purge, PurgePosition, PurgePositions};
use carillon_store::tables::{GivenParams, JobRows, RecordQuery, Recorded, SeenJob, Tables, at_once};
use carillon_store::{
    AuditQuery, AuditRows, ClaimRequest, JobKey, JobQuery, LinkDigest, LivePart, Output, PeekRequest, RunView,
    SigningKey, StoreResult,
};

fn holds(phase: &Phase, run: RunId) -> bool {
    phase.held().is_some_and(|held| held.run == run)
}

fn is_of(phase: &Phase, session: SessionId) -> bool {
    phase.held().is_some_and(|held| held.session == session)
}

fn states(data: &Data, query: StateQuery<'_>) -> Vec<StateRead> {
    let read = |state: &Arc<JobState>| (state.id, Ok(JobState::clone(state)));
    let all = data.states.values();
    match query {
        StateQuery::Ids(ids) => ids.iter().filter_map(|id| data.states.get(id)).map(read).collect(),
        StateQuery::HeldRun(run) => all.filter(|state| holds(&state.phase, run)).map(read).collect(),
        StateQuery::WaitingRun(run) => {
            let waits = |state: &&Arc<JobState>| state.manual.is_some_and(|manual| manual.run == Some(run));
            all.filter(waits).map(read).collect()
        }
        StateQuery::HeldBy(session, limit) => {
            all.filter(|state| is_of(&state.phase, session)).take(limit).map(read).collect()
        }
        StateQuery::Executing => all.filter(|state| matches!(state.phase, Phase::Executing(_))).map(read).collect(),
        StateQuery::Live(ids) => {
            let asked = |state: &&Arc<JobState>| ids.is_none_or(|ids| ids.contains(&state.id));
            let lives = |state: &&Arc<JobState>| state.phase.held().is_some() || state.manual.is_some();
            all.filter(asked).filter(lives).map(read).collect()
        }
    }
}

fn concurrent_runs(data: &mut Data, query: ConcurrentQuery<'_>) -> StoreResult<Vec<ConcurrentRun>> {
    let all = data.concurrent.values();
    Ok(match query {
        ConcurrentQuery::Keys(keys) => keys.iter().filter_map(|key| data.concurrent.get(key)).cloned().collect(),
        ConcurrentQuery::HeldRun(run) => all.filter(|row| holds(&row.phase, run)).cloned().collect(),
        ConcurrentQuery::WaitingRun(run) => {
            let waits = |row: &&ConcurrentRun| row.waiting.is_some_and(|waiting| waiting.run == Some(run));
            all.filter(waits).cloned().collect()
        }
        ConcurrentQuery::HeldBy(session, limit) => {
            all.filter(|row| is_of(&row.phase, session)).take(limit).cloned().collect()
        }
        ConcurrentQuery::Due(request) => {
            let due = at_once(data.begin().due_concurrent(request))?;
            due.into_iter().map(|due| due.row).collect()
        }
        ConcurrentQuery::All => all.cloned().collect(),
        ConcurrentQuery::OfJobs(jobs) => all.filter(|row| jobs.contains(&row.key.job)).cloned().collect(),
    })
}

impl ReadRows for ModelConnection {
    async fn states(&mut self, query: StateQuery<'_>) -> StoreResult<Vec<StateRead>> {
        self.read(|data| states(data, query)).await
    }

    async fn definitions(&mut self, ids: &[JobId]) -> StoreResult<BTreeMap<JobId, StoreResult<Arc<Definition>>>> {
        let found =
            |data: &mut Data| ids.iter().filter_map(|id| Some((*id, Ok(data.definitions.get(id)?.clone())))).collect();
        self.read(found).await
    }

    async fn ids_by_name(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobId>>> {
        self.read(|data| keys.iter().map(|key| data.names.get(key).copied()).collect()).await
    }

    async fn ids_ever_named(&mut self, key: &JobKey) -> StoreResult<Vec<JobId>> {
        self.read(|data| at_once(data.begin().ids_of_name(key))).await?
    }

    async fn first_due(&mut self, request: &ClaimRequest, of_each: usize) -> StoreResult<Vec<(i64, JobId, u16)>> {
        let first = |data: &mut Data| {
            let mut found = Vec::new();
            for partition in &request.partitions {
                let from = (*partition, Timestamp::from_ms(i64::MIN), JobId(0));
                let until = (*partition, request.until, JobId(u64::MAX));
                let runnable = |id: &JobId| {
                    let definition = data.definitions.get(id);
                    definition.is_some_and(|definition| request.executors.contains(&definition.job.executor))
                };
                let due = data.due.range(from..=until).filter(|(_, _, id)| runnable(id));
                found.extend(due.take(of_each).map(|(partition, at, id)| (at.as_ms(), *id, *partition)));
            }
            found.sort_unstable();
            found
        };
        self.read(first).await
    }

    async fn concurrent_runs(&mut self, query: ConcurrentQuery<'_>) -> StoreResult<Vec<ConcurrentRun>> {
        self.read(|data| concurrent_runs(data, query)).await?
    }

    async fn run_params(&mut self, firings: &[FiringKey]) -> StoreResult<Vec<Option<Arc<str>>>> {
        self.read(|data| firings.iter().map(|firing| data.run_params.get(firing).cloned()).collect()).await
    }

    async fn highest_version(&mut self) -> StoreResult<u64> {
        self.read(|data| data.highest_version).await
    }
}

impl ReadForPeople for ModelConnection {
    async fn jobs_by_name(
        &mut self,
        keys: &[JobKey],
        _cached: CachedDefinition<'_>,
    ) -> StoreResult<Vec<StoreResult<Option<SeenJob>>>> {
        self.read(|data| keys.iter().map(|key| at_once(data.begin().seen_job(key))).collect()).await
    }

    async fn job_page(
        &mut self,
        query: &JobQuery,
        _partitions: u16,
        _cached: CachedDefinition<'_>,
    ) -> StoreResult<JobRows> {
        self.read(|data| at_once(data.begin().job_page(query))).await?
    }

    async fn seen_run(&mut self, run: RunId) -> StoreResult<Option<(RunView, GivenParams)>> {
        self.read(|data| at_once(data.begin().seen_run(run))).await?
    }

    async fn seen_runs_of(&mut self, _jobs: &[JobId], query: &RecordQuery) -> StoreResult<Vec<RunView>> {
        self.read(|data| at_once(data.begin().seen_runs(query))).await?
    }

    async fn record(&mut self, run: RunId) -> StoreResult<Option<Recorded>> {
        self.read(|data| at_once(data.begin().record(run))).await?
    }

    async fn records(&mut self, query: &RecordQuery) -> StoreResult<Vec<Recorded>> {
        self.read(|data| at_once(data.begin().records(query))).await?
    }

    async fn runs_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<Recorded>> {
        self.read(|data| data.runs_numbered(ask)).await
    }

    async fn run_heads(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<RunHead>> {
        self.read(|data| data.run_heads(ask)).await
    }

    async fn runs_with_output(&mut self, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
        self.read(|data| data.runs_with_output(runs)).await
    }

    async fn recorded_runs(&mut self, runs: &[RunId]) -> StoreResult<Vec<RunId>> {
        self.read(|data| data.recorded_runs(runs)).await
    }

    async fn audit_numbered(&mut self, ask: &JournalAsk) -> StoreResult<Numbered<AuditLine>> {
        self.read(|data| data.audit_numbered(ask)).await
    }

    async fn last_records(&mut self, jobs: &[JobId]) -> StoreResult<BTreeMap<JobId, RunRecord>> {
        self.read(|data| at_once(data.begin().last_records(jobs))).await?
    }

    async fn audit(&mut self, query: &AuditQuery) -> StoreResult<AuditRows> {
        self.read(|data| data.audit_rows(query)).await
    }

    async fn output(&mut self, run: RunId) -> StoreResult<Option<Output>> {
        self.read(|data| at_once(data.begin().output(run))).await?
    }
}

impl Peeking for ModelConnection {
    async fn unclaimed(&mut self, request: &PeekRequest, _partitions: u16) -> StoreResult<Vec<Unclaimed>> {
        self.read(|data| data.unclaimed(request)).await
    }

    async fn news(&mut self, session: SessionId) -> StoreResult<(Vec<SessionId>, Vec<RunId>)> {
        self.read(|data| data.news(session)).await
    }

    async fn wanted_outputs(&mut self, session: SessionId, _now: Timestamp) -> StoreResult<Vec<WantedOutput>> {
        self.read(|data| data.wanted_outputs(session)).await
    }

    async fn rows_held_by(&mut self, session: SessionId) -> StoreResult<Vec<RunRef>> {
        self.read(|data| data.held(session)).await
    }
}

/// Rows of live output are written at once: no protocol hangs on them.
impl LiveOutputs for ModelConnection {
    async fn live_output(&mut self, run: RunId) -> StoreResult<Option<LiveRow>> {
        self.read(|data| data.live.get(&run).cloned()).await
    }

    async fn ask_live_output(&mut self, run: RunId, _now: Timestamp) -> StoreResult<()> {
        self.read(|data| _ = data.ask_output(run)).await
    }

    async fn publish_live_output(&mut self, outputs: &[(RunId, LivePart)]) -> StoreResult<()> {
        self.read(|data| data.publish_output(outputs.to_vec())).await
    }
}

/// Keys and links are written at once: no protocol hangs on them.
impl SignIn for ModelConnection {
    async fn signing_key(&mut self, offered: SigningKey) -> StoreResult<SigningKey> {
        self.read(|data| data.signing_key(offered)).await
    }

    async fn insert_link(&mut self, link: LinkDigest, _now: Timestamp, expires_at: Timestamp) -> StoreResult<()> {
        self.read(|data| data.insert_link(link, expires_at)).await
    }

    async fn has_link(&mut self, link: LinkDigest, _now: Timestamp) -> StoreResult<bool> {
        self.read(|data| data.has_link(link)).await
    }

    async fn delete_link(&mut self, link: LinkDigest, _now: Timestamp) -> StoreResult<bool> {
        self.read(|data| data.delete_link(link)).await
    }
}

/// History is purged at once.
impl Purging for ModelConnection {
    async fn crowded_jobs(&mut self, _purge: &Purge, _from: PurgePosition) -> StoreResult<Counted> {
        self.statement().await?;
        Ok(Counted::default())
    }

    async fn purge_audit(&mut self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.read(|data| data.purge_audit(before, limit)).await
    }

    async fn purge(
        &mut self,
        purge: &Purge,
        _counted: &Counted,
        from: PurgePositions,
        _now: Timestamp,
    ) -> StoreResult<(usize, PurgePositions)> {
        let purged = self.read(|data| data.purge(purge.before, purge.max_runs_per_job, purge.limit)).await?;
        Ok((purged, from))
    }
}
