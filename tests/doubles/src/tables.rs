//! The maps behind the operations. Nothing here waits: each method answers when it is called.

use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey, JobState, Phase};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use super::alerts::Alerts;
use super::data::{Data, Place as RecordPlace};
use carillon_store::alerts::port::RunHead;
use carillon_store::feed::{AuditLine, JournalAsk, Numbered};
use carillon_store::tables::{
    ConcurrentJob, GivenParams, JobRow, JobRows, KnownSession, RecordQuery, Recorded, SeenJob, Standing, Tables,
    WriteSet, at_once, seen_job, seen_jobs, seen_run, seen_runs,
};
use carillon_store::{
    AuditQuery, AuditRows, ClaimRequest, JobKey, JobQuery, JobSort, NewSession, Output, RecordedLoss, RunCursor,
    RunView, SessionBeat, SessionState, SessionView, StoreError, StoreResult,
};

impl Data {
    /// A transaction: the time stands still in it.
    pub fn begin(&mut self) -> Transaction<'_> {
        let now_us = self.clock.now_us();
        Transaction { data: self, now_us }
    }
}

/// One call's view of the data.
pub struct Transaction<'a> {
    pub(super) data: &'a mut Data,
    now_us: i64,
}

fn done<T: Send>(value: T) -> impl Future<Output = StoreResult<T>> + Send {
    ready(Ok(value))
}

fn carries(phase: &Phase, waiting: Option<RunId>, run: RunId) -> bool {
    phase.held().is_some_and(|held| held.run == run) || waiting == Some(run)
}

impl Tables for Transaction<'_> {
    type Alerts = Alerts;

    fn alerts(&mut self) -> &mut Alerts {
        &mut self.data.alerts
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us.div_euclid(1000))
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.now_us).unwrap_or(0)
    }

    fn highest_version(&mut self) -> impl Future<Output = StoreResult<u64>> + Send {
        done(self.data.highest_version)
    }

    fn partitions(&self) -> u16 {
        self.data.partitions
    }

    fn lock_partitions(&mut self, partitions: &[u16]) -> impl Future<Output = StoreResult<()>> + Send {
        let missing = partitions.iter().find(|partition| **partition >= self.data.partitions);
        if let Some(missing) = missing {
            return ready(Err(StoreError::Permanent(format!("partition {missing} has no lock row"))));
        }
        partitions.iter().for_each(|partition| self.data.epochs[usize::from(*partition)] += 1);
        ready(Ok(()))
    }

    fn jobs_by_id(&mut self, ids: &[JobId]) -> impl Future<Output = StoreResult<Vec<Option<JobRow>>>> + Send {
        done(ids.iter().map(|id| self.data.row(*id)).collect())
    }

    fn jobs_by_key(&mut self, keys: &[JobKey]) -> impl Future<Output = StoreResult<Vec<Option<JobRow>>>> + Send {
        done(keys.iter().map(|key| self.data.row(*self.data.names.get(key)?)).collect())
    }

    fn seen_job(&mut self, key: &JobKey) -> impl Future<Output = StoreResult<Option<SeenJob>>> + Send {
        ready(at_once(seen_job(self, key)))
    }

    fn job_by_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<JobRow>>> + Send {
        let waiting = |state: &JobState| state.manual.and_then(|manual| manual.run);
        done(self.data.rows(|state| carries(&state.phase, waiting(state), run)).next())
    }

    fn due_jobs(&mut self, request: &ClaimRequest) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        let mut due: Vec<(Timestamp, JobId)> = Vec::new();
        for partition in &request.partitions {
            let from = (*partition, Timestamp::from_ms(i64::MIN), JobId(0));
            let until = (*partition, request.until, JobId(u64::MAX));
            due.extend(self.data.due.range(from..=until).map(|(_, at, id)| (*at, *id)));
        }
        due.sort_unstable();
        let rows = due.into_iter().filter_map(|(_, id)| self.data.row(id));
        let runnable = rows.filter(|row| request.executors.contains(&row.definition.job.executor));
        done(runnable.take(request.runs.len()).collect())
    }

    fn held_jobs(&mut self, session: SessionId, limit: usize) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        let mine = |state: &JobState| state.phase.held().is_some_and(|held| held.session == session);
        done(self.data.rows(mine).take(limit).collect())
    }

    fn job_page(&mut self, query: &JobQuery) -> impl Future<Output = StoreResult<JobRows>> + Send {
        let next = |row: &JobRow| (row.state.claim_at(), row.state.id);
        let after = |row: &JobRow| {
            query.after_name().is_none_or(|after| row.definition.key() > *after)
                && query.after_next().is_none_or(|after| next(row) > after)
        };
        let rows = self.data.names.values().filter_map(|id| self.data.row(*id));
        let mut rows: Vec<JobRow> = rows.filter(|row| matches(row, query) && after(row)).collect();
        if query.sort == JobSort::Next {
            rows.sort_by_key(next);
        }
        rows.truncate(query.limit);
        ready(at_once(seen_jobs(self, rows)).map(|rows| JobRows { rows, looked_until: None }))
    }

    fn ids_of_name(&mut self, key: &JobKey) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send {
        let named = self.data.definitions.iter().filter(|(_, definition)| definition.key() == *key);
        done(named.map(|(id, _)| *id).collect())
    }

    fn concurrent_by_key(
        &mut self,
        keys: &[FiringKey],
    ) -> impl Future<Output = StoreResult<Vec<Option<ConcurrentJob>>>> + Send {
        done(keys.iter().map(|key| self.data.beside(key)).collect())
    }

    fn concurrent_by_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<ConcurrentJob>>> + Send {
        let waiting = |row: &ConcurrentRun| row.waiting.and_then(|waiting| waiting.run);
        done(self.data.besides(|row| carries(&row.phase, waiting(row), run)).next())
    }

    fn due_concurrent(
        &mut self,
        request: &ClaimRequest,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send {
        let due = |row: &ConcurrentRun| row.claim_at().is_some_and(|at| at <= request.until);
        let here = |concurrent: &ConcurrentJob| {
            request.partitions.contains(&self.data.partition_of(&concurrent.definition))
                && request.executors.contains(&concurrent.definition.job.executor)
        };
        let mut rows: Vec<ConcurrentJob> = self.data.besides(due).filter(here).collect();
        rows.sort_by_key(|concurrent| (concurrent.row.claim_at(), concurrent.row.key));
        rows.truncate(request.runs.len());
        done(rows)
    }

    fn held_concurrent(
        &mut self,
        session: SessionId,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send {
        let mine = |row: &ConcurrentRun| row.phase.held().is_some_and(|held| held.session == session);
        done(self.data.besides(mine).take(limit).collect())
    }

    fn live_jobs(&mut self, jobs: Option<&[JobId]>) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        let live = |state: &JobState| {
            jobs.is_none_or(|jobs| jobs.contains(&state.id)) && (state.phase.held().is_some() || state.manual.is_some())
        };
        done(self.data.rows(live).collect())
    }

    fn executing_jobs(&mut self) -> impl Future<Output = StoreResult<Vec<JobRow>>> + Send {
        done(self.data.rows(|state| matches!(state.phase, Phase::Executing(_))).collect())
    }

    fn live_concurrent(
        &mut self,
        jobs: Option<&[JobId]>,
    ) -> impl Future<Output = StoreResult<Vec<ConcurrentJob>>> + Send {
        done(self.data.besides(|row| jobs.is_none_or(|jobs| jobs.contains(&row.key.job))).collect())
    }

    fn seen_run(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<(RunView, GivenParams)>>> + Send {
        ready(at_once(seen_run(self, run)))
    }

    fn seen_runs(&mut self, query: &RecordQuery) -> impl Future<Output = StoreResult<Vec<RunView>>> + Send {
        ready(at_once(seen_runs(self, query)))
    }

    fn record(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Recorded>>> + Send {
        done(self.data.places.get(&run).and_then(|place| self.data.recorded(place)))
    }

    fn records(&mut self, query: &RecordQuery) -> impl Future<Output = StoreResult<Vec<Recorded>>> + Send {
        let wanted = |at: &RecordPlace, record: &RunRecord| {
            let cursor = RunCursor { due_at: at.0, attempt: at.1, run: at.2 };
            query.after.is_none_or(|after| cursor < after)
                && query.jobs.as_ref().is_none_or(|jobs| jobs.contains(&record.job))
                && query.status.is_none_or(|status| status == record.status)
                && query.until.is_none_or(|until| at.0 < until)
                && query.covering.is_none_or(|due| record.first_due_at <= due && due <= at.0)
        };
        let of_namespace =
            |recorded: &Recorded| query.namespace.as_ref().is_none_or(|of| *of == recorded.key.namespace);
        let newest_first = self.data.records.iter().rev();
        let since = newest_first.take_while(|(at, _)| query.since.is_none_or(|since| at.0 >= since));
        let rows = since.filter(|(at, (record, _))| wanted(at, record)).filter_map(|(at, _)| self.data.recorded(at));
        done(rows.filter(of_namespace).take(query.limit).collect())
    }

    fn runs_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<Recorded>>> + Send {
        done(self.data.runs_numbered(ask))
    }

    fn run_heads(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<RunHead>>> + Send {
        done(self.data.run_heads(ask))
    }

    fn runs_with_output(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send {
        done(self.data.runs_with_output(runs))
    }

    fn recorded_runs(&mut self, runs: &[RunId]) -> impl Future<Output = StoreResult<Vec<RunId>>> + Send {
        done(self.data.recorded_runs(runs))
    }

    fn audit_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<AuditLine>>> + Send {
        done(self.data.audit_numbered(ask))
    }

    fn last_records(&mut self, jobs: &[JobId]) -> impl Future<Output = StoreResult<BTreeMap<JobId, RunRecord>>> + Send {
        done(jobs.iter().filter_map(|job| Some((*job, self.data.last_record(*job)?.clone()))).collect())
    }

    fn audit(&mut self, query: &AuditQuery) -> impl Future<Output = StoreResult<AuditRows>> + Send {
        done(self.data.audit_rows(query))
    }

    fn output(&mut self, run: RunId) -> impl Future<Output = StoreResult<Option<Output>>> + Send {
        done(self.data.outputs.get(&run).cloned())
    }

    fn run_params(&mut self, firings: &[FiringKey]) -> impl Future<Output = StoreResult<Vec<Option<Arc<str>>>>> + Send {
        done(firings.iter().map(|firing| self.data.run_params.get(firing).cloned()).collect())
    }

    fn insert_session(&mut self, session: &NewSession) -> impl Future<Output = StoreResult<()>> + Send {
        let now = self.now();
        let view = SessionView {
            beat: SessionBeat { id: session.id, seq: 0, state: SessionState::Live },
            node: session.node.clone(),
            address: session.address.clone(),
            version: session.version.clone(),
            started_at: now,
            heartbeat_at: now,
            server: None,
            terms: None,
            wrote_back: Some(Timestamp::EPOCH),
            prepared: 0,
            executing: 0,
        };
        self.data.sessions.insert(session.id, view);
        done(())
    }

    fn session_state(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<SessionState>>> + Send {
        done(self.data.sessions.get(&session).map(|session| session.beat.state))
    }

    fn beat(
        &mut self,
        session: SessionId,
        seq: u64,
        state: SessionState,
    ) -> impl Future<Output = StoreResult<()>> + Send {
        let now = self.now();
        let found = self.data.sessions.get_mut(&session);
        let lives = |beat: SessionBeat| beat.state != SessionState::Ended || !enabled(Guard::HeartbeatNotEnded);
        let newer = |beat: SessionBeat| beat.seq < seq || !enabled(Guard::HeartbeatNewer);
        if let Some(found) = found.filter(|found| lives(found.beat) && newer(found.beat)) {
            found.beat = SessionBeat { id: session, seq, state };
            found.heartbeat_at = now;
        }
        done(())
    }

    fn end_session(&mut self, session: SessionId, seen_seq: u64) -> impl Future<Output = StoreResult<()>> + Send {
        let seen = |beat: SessionBeat| beat.seq == seen_seq || !enabled(Guard::EndSeen);
        if let Some(found) = self.data.sessions.get_mut(&session).filter(|found| seen(found.beat)) {
            found.beat.state = SessionState::Ended;
        }
        done(())
    }

    fn note_written_back(&mut self, id: SessionId, until: Timestamp) -> impl Future<Output = StoreResult<()>> + Send {
        self.data.note_written_back(id, until);
        done(())
    }

    fn spend_session(&mut self, session: SessionId) -> impl Future<Output = StoreResult<()>> + Send {
        let now = self.now();
        if let Some(gone) = self.data.sessions.remove(&session) {
            self.data.spent.insert(session, (gone.beat.seq, now));
        }
        done(())
    }

    fn standing(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Standing>> + Send {
        let own = self.data.sessions.get(&session).map(|view| KnownSession {
            beat: view.beat,
            node: view.node.clone(),
            heartbeat_at: view.heartbeat_at,
        });
        let windows = &self.data.windows;
        let open = windows.iter().find(|window| window.accepted_at.is_none()).map(|window| window.window);
        let losses_until = windows.iter().map(|window| window.window.until_at).max();
        done(Standing { session: own, open, losses_until })
    }

    fn spent_seq(&mut self, session: SessionId) -> impl Future<Output = StoreResult<Option<u64>>> + Send {
        done(self.data.spent.get(&session).map(|(seq, _)| *seq))
    }

    fn last_spent_at(&mut self) -> impl Future<Output = StoreResult<Option<Timestamp>>> + Send {
        done(self.data.spent.values().map(|(_, ended_at)| *ended_at).max())
    }

    fn note_window(&mut self, window: &RecordedLoss) -> impl Future<Output = StoreResult<()>> + Send {
        match self.data.windows.iter_mut().find(|known| known.accepted_at.is_none()) {
            Some(open) => open.window = open.window.with(window.window),
            None => self.data.windows.push(window.clone()),
        }
        done(())
    }

    fn windows(&mut self, accepted_since: Timestamp) -> impl Future<Output = StoreResult<Vec<RecordedLoss>>> + Send {
        let shown = |window: &&RecordedLoss| window.accepted_at.is_none_or(|at| at >= accepted_since);
        done(self.data.windows.iter().filter(shown).cloned().collect())
    }

    fn accept_windows(&mut self, until: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send {
        done(self.data.accept_open(until, Timestamp::from_ms(self.now_us.div_euclid(1000))))
    }

    fn sessions(&mut self, with_counts: bool) -> impl Future<Output = StoreResult<Vec<SessionView>>> + Send {
        let mut sessions: Vec<SessionView> = self.data.sessions.values().cloned().collect();
        if with_counts {
            let phases = self.data.states.values().map(|state| &state.phase);
            let phases: Vec<&Phase> = phases.chain(self.data.concurrent.values().map(|row| &row.phase)).collect();
            for session in &mut sessions {
                let mine =
                    phases.iter().filter(|phase| phase.held().is_some_and(|held| held.session == session.beat.id));
                let (executing, prepared): (Vec<&Phase>, Vec<&Phase>) =
                    mine.partition(|phase| matches!(phase, Phase::Executing(_)));
                (session.prepared, session.executing) = (prepared.len() as u64, executing.len() as u64);
            }
        }
        done(sessions)
    }

    fn create_jobs(&mut self, jobs: &[Arc<Job>]) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send {
        let mut ids = Vec::with_capacity(jobs.len());
        for job in jobs {
            self.data.last_id += 1;
            let key = JobKey { namespace: job.namespace.clone(), name: job.name.clone() };
            self.data.names.insert(key, JobId(self.data.last_id));
            ids.push(JobId(self.data.last_id));
        }
        done(ids)
    }

    fn write(&mut self, changes: WriteSet) -> impl Future<Output = StoreResult<()>> + Send {
        ready(self.data.check(&changes).map(|()| self.data.apply(changes)))
    }
}

fn matches(row: &JobRow, query: &JobQuery) -> bool {
    let job = &row.definition.job;
    query.namespace.as_ref().is_none_or(|namespace| job.namespace == *namespace)
        && query.scope.includes(&job.namespace)
        && query.prefix.as_ref().is_none_or(|prefix| job.name.starts_with(prefix.as_str()))
        && query.contains.as_ref().is_none_or(|text| job.name.to_lowercase().contains(&text.to_lowercase()))
        && query.last_status.is_none_or(|status| row.state.last_end.is_some_and(|end| end.status == status))
        && query.state.as_ref().is_none_or(|state| row.state.phase.as_str() == state)
        && query.paused.is_none_or(|paused| row.state.pause.is_some() == paused)
        && query.label.as_ref().is_none_or(|(label, value)| {
            job.labels.get(label).is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
        })
}
