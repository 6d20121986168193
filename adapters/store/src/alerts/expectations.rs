//! Expectations: due times that nobody has started, or ended, in time.

use std::collections::BTreeSet;

use carillon_domain::alert::expect::{DueFacts, Judged, LiveRun, Paused, judge, needed};
use carillon_domain::alert::{NoticeId, Verdict};
use carillon_domain::firing::Phase;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;

use super::document::{Cursor, StoredFact, StoredSubject, StoredWhat, UNREADABLE_LATER};
use super::port::{AlertRows, AlertWrite, Among, FactRow, Looks, WatchRow};
use super::types::Watched;
use crate::feed::JournalAsk;
use crate::tables::{JobRow, RecordQuery, Tables};
use crate::{StoreError, StoreResult};

/// The most records that are read of one job for one look.
const RECORDS: usize = 20_000;

/// Whether any job is to be looked at.
pub(crate) async fn next_watch<T: Tables>(tables: &mut T) -> StoreResult<Result<(), Watched>> {
    let now = tables.now();
    let next_look = tables.alerts().first_look(Looks::Expectations).await?;
    let due = next_look.is_some_and(|at| at <= now);
    Ok(if due { Ok(()) } else { Err(Watched { next_look, ..Watched::default() }) })
}

/// See [`super::AlertStore::watch_expectations`].
///
/// Each job's row is changed where it is still as it was read, before its verdicts are written. So of two nodes that judge the same due
/// times one writes.
pub(crate) async fn watch<T: Tables>(tables: &mut T, limit: usize) -> StoreResult<Watched> {
    let (now, limit) = (tables.now(), limit.max(1));
    let mut rows = tables.alerts().watched_due(now, limit).await?;
    let mut watched = Watched { jobs: rows.len(), more: rows.len() == limit, ..Watched::default() };
    // Ascending, as every look locks them.
    rows.sort_by_key(|row| row.job);
    let jobs: Vec<JobId> = rows.iter().map(|row| row.job).collect();
    // Before the incidents: a step that opens one in between has moved the cursor.
    let troubled: BTreeSet<JobId> = if jobs.is_empty() {
        BTreeSet::new()
    } else if all_facts_are_judged(tables).await? {
        tables.alerts().among(&jobs, Among::Troubled).await?.into_iter().collect()
    } else {
        // A broken expectation that waits for its step opens one.
        jobs.iter().copied().collect()
    };
    for before in rows {
        let job = match tables.jobs_by_id(&[before.job]).await {
            Err(StoreError::Permanent(problem)) => {
                tracing::error!(job = %before.job, problem, "nobody is told of a job that cannot be read");
                let later = WatchRow { look_at: Some(now + UNREADABLE_LATER), ..before };
                tables.alerts_to_write().write_alert(&AlertWrite::Watched(before, later)).await?;
                continue;
            }
            found => found?.pop().flatten().filter(|row| !row.state.deleted),
        };
        let Some(job) = job else {
            tables.alerts_to_write().write_alert(&AlertWrite::WatchGone(vec![before.job])).await?;
            continue;
        };
        let (after, mut verdicts) = look(tables, &job, before, now).await?;
        // A kept expectation is news only where one was broken.
        if !troubled.contains(&before.job) && verdicts.iter().all(|verdict| matches!(verdict, Verdict::Kept { .. })) {
            verdicts.clear();
        }
        watched.more |= after.look_at.is_some_and(|at| at <= now);
        if tables.alerts_to_write().write_alert(&AlertWrite::Watched(before, after)).await? == 0 {
            continue;
        }
        if !verdicts.is_empty() {
            watched.verdicts += verdicts.len();
            let facts = verdicts.into_iter().map(|verdict| fact(&job, verdict, now)).collect();
            tables.alerts_to_write().write_alert(&AlertWrite::Facts(facts)).await?;
        }
    }
    watched.next_look = tables.alerts().first_look(Looks::Expectations).await?;
    Ok(watched)
}

/// Whether steps have judged every fact that is visible now.
async fn all_facts_are_judged<T: Tables>(tables: &mut T) -> StoreResult<bool> {
    let newest = tables.alerts().facts_numbered(&JournalAsk::newest()).await?.newest;
    let cursor = Cursor::read(tables.alerts().cursor(false).await?.as_deref())?;
    Ok(cursor.is_none_or(|cursor| cursor.facts.low() >= newest))
}

/// The row after a look at a job, and what is to be told.
async fn look<T: Tables>(
    tables: &mut T,
    job: &JobRow,
    before: WatchRow,
    now: Timestamp,
) -> StoreResult<(WatchRow, Vec<Verdict>)> {
    let Some(expect) = &job.definition.job.expect else {
        return Ok((WatchRow { look_at: None, ..before }, Vec::new()));
    };
    let (timeline, judged) = (&job.definition.timeline, Judged { starts: before.starts, ends: before.ends });
    let (live, records) = match needed(expect, timeline, judged, now) {
        None => (Vec::new(), Vec::new()),
        Some((first, _)) => {
            // Records come after the runs that live: one that ends in between is found among them.
            let live = live_runs(tables, job).await?;
            (live, records(tables, job, first).await?)
        }
    };
    let pause = job.state.pause.as_ref().map(|pause| Paused {
        since: pause.since,
        until: pause.until,
        reason: pause.reason.clone(),
    });
    let facts = DueFacts { records: &records, live: &live, pause: pause.as_ref() };
    let answer = judge(expect, timeline, judged, &facts, now);
    let Judged { starts, ends } = answer.judged;
    Ok((WatchRow { starts, ends, look_at: answer.next_look, ..before }, answer.verdicts))
}

async fn live_runs<T: Tables>(tables: &mut T, job: &JobRow) -> StoreResult<Vec<LiveRun>> {
    let beside = tables.live_concurrent(Some(&[job.state.id])).await?;
    // The row was read before: a run that has ended since has its record.
    let phases = std::iter::once(job.state.phase).chain(beside.into_iter().map(|run| run.row.phase));
    let live = phases.filter_map(|phase| match phase {
        Phase::Executing(held) => Some(LiveRun {
            run: held.run,
            due_at: held.firing.due_at,
            trigger: held.firing.trigger,
            started_at: held.started_at?,
        }),
        Phase::Idle | Phase::Prepared(_) => None,
    });
    Ok(live.collect())
}

async fn records<T: Tables>(tables: &mut T, job: &JobRow, first: Timestamp) -> StoreResult<Vec<RunRecord>> {
    let query = RecordQuery { since: Some(first), ..RecordQuery::of(vec![job.state.id], RECORDS) };
    Ok(tables.records(&query).await?.into_iter().map(|recorded| recorded.record).collect())
}

fn fact(job: &JobRow, verdict: Verdict, now: Timestamp) -> FactRow {
    let id = job.state.id;
    let (kind, when, due_at) = match &verdict {
        Verdict::Broken(broken) => ("broken", broken.when, broken.due.last),
        Verdict::Kept { when, due_at } => ("kept", *when, *due_at),
    };
    let key = NoticeId::derived(&[kind, &id.to_string(), when.as_str(), &due_at.to_string()]).to_string();
    let document = StoredFact { subject: StoredSubject::Job(id), what: StoredWhat::Judged(verdict) }.text();
    FactRow { key: Some(key), open: false, at: now, document }
}
