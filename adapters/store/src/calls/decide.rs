//! Runs a decision of the domain inside one transaction: read the rows that it needs, ask again, write the result.

use std::collections::BTreeSet;

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::{RowKey, RunRef};
use carillon_domain::run::RunRecord;
use carillon_domain::store::{ConcurrentJob, Decision, JobRow, Need, Rows, SessionWrite, WriteSet};
use carillon_domain::time::Timestamp;

use crate::alerts::calls::Consequences;
use crate::tables::{RecordQuery, Tables};
use crate::{ClaimRequest, StoreResult};

/// Asks `decide` until it has all rows, then writes.
pub(crate) async fn decide<T: Tables, A>(tables: &mut T, decision: impl Fn(&Rows) -> Decision<A>) -> StoreResult<A> {
    decide_on(tables, Vec::new(), decision).await
}

/// The same, where some rows of jobs were read before.
pub(crate) async fn decide_on<T: Tables, A>(
    tables: &mut T,
    known: Vec<JobRow>,
    decision: impl Fn(&Rows) -> Decision<A>,
) -> StoreResult<A> {
    let mut rows = Rows::at(tables.now(), tables.now_us());
    known.into_iter().for_each(|row| _ = rows.add_job(row));
    loop {
        match decision(&rows) {
            Err(need) => read(tables, &mut rows, need).await?,
            Ok(decided) => {
                write(tables, decided.write).await?;
                return Ok(decided.answer);
            }
        }
    }
}

/// The decision under the locks of all partitions.
pub(crate) async fn decide_locked<T: Tables, A>(
    tables: &mut T,
    decision: impl Fn(&Rows) -> Decision<A>,
) -> StoreResult<A> {
    let all: Vec<u16> = (0..tables.partitions()).collect();
    tables.lock_partitions(&all).await?;
    decide(tables, decision).await
}

async fn read<T: Tables>(tables: &mut T, rows: &mut Rows, need: Need) -> StoreResult<()> {
    match need {
        Need::Standing(session) => rows.standing = Some(tables.standing(session).await?),
        Need::SpentSeq(session) => rows.spent_seq = Some(tables.spent_seq(session).await?),
        Need::LastHeard => rows.last_heard = Some(last_heard(tables).await?),
        Need::Held(runs) => {
            let (jobs, concurrent) = keys_of(&runs);
            add_jobs(rows, tables.jobs_of_runs(&jobs, &runs).await?);
            add_concurrent(rows, tables.concurrent_by_key(&concurrent).await?);
            rows.note_missing(&runs);
        }
        Need::Stored(runs) => {
            let (jobs, concurrent) = keys_of(&runs);
            add_jobs(rows, tables.jobs_by_id(&jobs).await?);
            add_concurrent(rows, tables.concurrent_by_key(&concurrent).await?);
            rows.note_missing(&runs);
        }
        Need::Jobs(ids) => {
            add_jobs(rows, tables.jobs_by_id(&ids).await?);
            ids.into_iter().for_each(|id| _ = rows.jobs.entry(id).or_default());
        }
        Need::Named(keys) => {
            for (key, row) in keys.iter().zip(tables.jobs_by_key(&keys).await?) {
                rows.names.insert(key.clone(), row.as_ref().map(|row| row.state.id));
                add_jobs(rows, vec![row]);
            }
        }
        Need::ConcurrentRun(run) => {
            let found = tables.concurrent_by_run(run).await?.map(|found| rows.add_concurrent(found));
            rows.runs.insert(run, found);
        }
        Need::ConcurrentRunsOf(jobs) => {
            let found = tables.live_concurrent(Some(&jobs)).await?;
            add_concurrent(rows, found.into_iter().map(Some).collect());
            rows.with_concurrent.extend(jobs);
        }
        Need::Run(run) => {
            let found = match tables.job_by_run(run).await? {
                Some(row) => Some(rows.add_job(row)),
                None => tables.concurrent_by_run(run).await?.map(|found| rows.add_concurrent(found)),
            };
            rows.runs.insert(run, found);
        }
        Need::Due(request) => rows.due = Some(due(tables, rows, &request).await?),
        Need::HeldBy(session, limit) => rows.held = Some(held(tables, rows, session, limit).await?),
        Need::Sessions(after) => {
            write_session(tables, after).await?;
            rows.sessions = Some(tables.sessions(false).await?.into_iter().map(|view| view.known()).collect());
        }
        Need::SessionState(session, after) => {
            write_session(tables, after).await?;
            rows.session_state = Some(tables.session_state(session).await?);
        }
        Need::NewJobs(jobs) => rows.new_jobs = Some(tables.create_jobs(&jobs).await?),
        Need::History(jobs, since) => {
            let records = history(tables, &jobs, since).await?;
            rows.add_history(jobs, since, records);
        }
        Need::Losses(since) => {
            let until = tables.windows(since).await?.iter().map(|loss| loss.window.until_at).max();
            rows.losses = Some((since, until));
        }
        Need::Recorded(runs) => {
            let recorded: BTreeSet<RunId> = tables.recorded_runs(&runs).await?.into_iter().collect();
            rows.recorded.extend(runs.into_iter().map(|run| (run, recorded.contains(&run))));
        }
        Need::HighestVersion => rows.highest_version = Some(tables.highest_version().await?),
    }
    Ok(())
}

fn keys_of(runs: &[RunRef]) -> (Vec<JobId>, Vec<FiringKey>) {
    let (mut jobs, mut concurrent) = (Vec::new(), Vec::new());
    for at in runs {
        match at.row {
            RowKey::Job(id) => jobs.push(id),
            RowKey::Concurrent(key) => concurrent.push(key),
        }
    }
    (jobs, concurrent)
}

fn add_jobs(rows: &mut Rows, found: Vec<Option<JobRow>>) {
    found.into_iter().flatten().for_each(|row| _ = rows.add_job(row));
}

fn add_concurrent(rows: &mut Rows, found: Vec<Option<ConcurrentJob>>) {
    found.into_iter().flatten().for_each(|run| _ = rows.add_concurrent(run));
}

async fn last_heard<T: Tables>(tables: &mut T) -> StoreResult<Option<Timestamp>> {
    let heard = tables.sessions(false).await?.iter().map(|session| session.heartbeat_at).max();
    Ok(heard.max(tables.last_spent_at().await?))
}

/// The rows of both tables that fall due first, as many as the request has ids.
async fn due<T: Tables>(tables: &mut T, rows: &mut Rows, request: &ClaimRequest) -> StoreResult<Vec<RowKey>> {
    let mut found: Vec<(Timestamp, RowKey)> = Vec::new();
    for row in tables.due_jobs(request).await? {
        found.push((row.state.claim_at().unwrap_or(Timestamp::MAX), rows.add_job(row)));
    }
    for run in tables.due_concurrent(request).await? {
        found.push((run.row.claim_at().unwrap_or(Timestamp::MAX), rows.add_concurrent(run)));
    }
    found.sort_unstable();
    found.truncate(request.runs.len());
    Ok(found.into_iter().map(|(_, row)| row).collect())
}

/// How much history a decision looks at: what all jobs of one call have recorded since commits were lost.
const MOST_HISTORY: usize = 100_000;

async fn history<T: Tables>(tables: &mut T, jobs: &[JobId], since: Timestamp) -> StoreResult<Vec<RunRecord>> {
    let query = RecordQuery { since: Some(since), ..RecordQuery::of(jobs.to_vec(), MOST_HISTORY) };
    Ok(tables.records(&query).await?.into_iter().map(|recorded| recorded.record).collect())
}

async fn held<T: Tables>(
    tables: &mut T,
    rows: &mut Rows,
    session: SessionId,
    limit: usize,
) -> StoreResult<Vec<RowKey>> {
    let jobs = tables.held_jobs(session, limit).await?;
    let mut found: Vec<RowKey> = jobs.into_iter().map(|row| rows.add_job(row)).collect();
    let concurrent = tables.held_concurrent(session, limit.saturating_sub(found.len())).await?;
    found.extend(concurrent.into_iter().map(|run| rows.add_concurrent(run)));
    Ok(found)
}

async fn write<T: Tables>(tables: &mut T, mut write: WriteSet) -> StoreResult<()> {
    let consequences = Consequences::of(&write, tables.now());
    if let Some(loss) = write.loss.take() {
        tables.note_window(&loss).await?;
    }
    let sessions = std::mem::take(&mut write.sessions);
    tables.write(write).await?;
    for session in sessions {
        write_session(tables, Some(session)).await?;
    }
    consequences.write(tables).await
}

async fn write_session<T: Tables>(tables: &mut T, write: Option<SessionWrite>) -> StoreResult<()> {
    match write {
        None => Ok(()),
        Some(SessionWrite::Register(new)) => tables.insert_session(&new).await,
        Some(SessionWrite::Beat { session, seq, state }) => tables.beat(session, seq, state).await,
        Some(SessionWrite::End { session, seen_seq }) => tables.end_session(session, seen_seq).await,
        Some(SessionWrite::WroteBack { session, until }) => tables.note_written_back(session, until).await,
        Some(SessionWrite::Spend(session)) => tables.spend_session(session).await,
    }
}
