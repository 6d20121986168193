//! Facts of a step: what the rows of both journals, and of jobs, mean.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carillon_domain::alert::{
    CronMail, Ended, Fact, HeldCall, Incident, JobSubject, Route, Subject, SubjectKey, What, When, retry_of,
};
use carillon_domain::crontab::MAIL_LABEL;
use carillon_domain::firing::{ConcurrentRun, FiringKey};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::job::Job;
use carillon_domain::run::{RunRecord, Status};
use carillon_domain::time::Timestamp;

use super::document::{StoredFact, StoredSubject, StoredWhat};
use super::port::{AlertRows, Among, RunHead};
use crate::feed::{Fresh, JournalAsk, Numbered, Span, Tail};
use crate::tables::{JobRow, RecordQuery, Recorded, Tables};
use crate::{JobKey, StoreError, StoreResult};

/// The facts of a step.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub facts: Vec<Fact>,
    /// Jobs that are gone: their incidents are forgotten.
    pub gone: BTreeSet<JobId>,
}

/// A job of which a row is looked at, and the failures that wait there for their next attempts.
pub(super) struct LookedAt {
    job: JobId,
    held: Vec<Held>,
}

struct Held {
    firing: FiringKey,
    attempt: u32,
    at: Timestamp,
    look_at: Timestamp,
}

impl LookedAt {
    /// An incident of a job; `None` for one of the cluster.
    pub fn incident(incident: &Incident) -> Option<Self> {
        let SubjectKey::Job(job) = incident.key.subject else { return None };
        let held = incident.held_back.iter().map(|held| Held {
            firing: held.firing,
            attempt: held.attempt,
            at: held.at,
            look_at: held.look_at,
        });
        Some(Self { job, held: held.collect() })
    }

    /// The calls of a job's monitor that wait.
    pub fn calls(job: JobId, calls: &[HeldCall]) -> Self {
        let held = calls.iter().map(|held| Held {
            firing: held.firing,
            attempt: held.attempt,
            at: held.call.at,
            look_at: held.look_at,
        });
        Self { job, held: held.collect() }
    }
}

impl Found {
    /// The facts, and that jobs are gone.
    pub fn with_those_that_are_gone(&self, now: Timestamp) -> Vec<Fact> {
        let gone = |job: &JobId| {
            let key = JobKey { namespace: String::new(), name: String::new() };
            Fact { at: now, subject: Subject::Job(subject(*job, &key, None)), what: What::Gone }
        };
        self.facts.iter().cloned().chain(self.gone.iter().map(gone)).collect()
    }
}

/// The new rows of a journal, in the order of their numbers. A journal that ends below what was judged is followed from its end on.
pub(super) fn fresh<R>(tail: &mut Tail, found: Numbered<R>, at: Timestamp, within: Duration) -> Vec<(u64, R)> {
    let Numbered { newest, mut rows } = found;
    rows.sort_by_key(|(number, _)| *number);
    let numbers: Vec<u64> = rows.iter().map(|(number, _)| *number).collect();
    let at = Duration::from_millis(u64::try_from(at.as_ms()).unwrap_or(0));
    match tail.take(at, &numbers, newest, within) {
        Fresh::Rows(fresh) => rows.into_iter().zip(fresh).filter(|(_, fresh)| *fresh).map(|(row, _)| row).collect(),
        Fresh::WentBack => {
            *tail = Tail::after(newest);
            Vec::new()
        }
    }
}

/// The numbers of rows of history that may mean something to somebody.
pub(super) async fn that_matter<T: Tables>(
    tables: &mut T,
    heads: Vec<(u64, RunHead)>,
    routes: &[Route],
) -> StoreResult<Vec<u64>> {
    if routes.iter().any(|route| route.when.contains(&When::Output)) {
        return Ok(heads.into_iter().map(|(number, _)| number).collect());
    }
    let is_trouble = |head: &RunHead| !matches!(head.status, Status::Succeeded | Status::Cancelled);
    // A trouble of this step may be over in this step.
    let mut matter: BTreeSet<JobId> =
        heads.iter().filter(|(_, head)| is_trouble(head)).map(|(_, head)| head.job).collect();
    let others: BTreeSet<JobId> = heads.iter().map(|(_, head)| head.job).filter(|job| !matter.contains(job)).collect();
    let others: Vec<JobId> = others.into_iter().collect();
    if !others.is_empty() {
        for which in [Among::Troubled, Among::Monitored] {
            matter.extend(tables.alerts().among(&others, which).await?);
        }
    }
    Ok(heads.into_iter().filter(|(_, head)| matter.contains(&head.job)).map(|(number, _)| number).collect())
}

/// The facts of these rows of history and of `alert_fact`, and of failures whose next attempt is looked for.
pub(super) async fn of_journals<T: Tables>(
    tables: &mut T,
    numbers: &[u64],
    stored: Vec<(Timestamp, StoredFact)>,
    looked_at: &[LookedAt],
) -> StoreResult<Found> {
    let recorded = records(tables, numbers).await?;
    let mut ids: BTreeSet<JobId> = recorded.iter().map(|recorded| recorded.record.job).collect();
    ids.extend(stored.iter().filter_map(|(_, fact)| match fact.subject {
        StoredSubject::Job(job) => Some(job),
        StoredSubject::Cluster(_) => None,
    }));
    ids.extend(looked_at.iter().map(|one| one.job));
    let jobs = jobs(tables, ids.into_iter().collect()).await?;

    let mut found = Found::default();
    let with_output: Vec<RunId> = recorded.iter().map(|recorded| recorded.record.id).collect();
    let with_output: BTreeSet<RunId> = tables.runs_with_output(&with_output).await?.into_iter().collect();
    for recorded in &recorded {
        let Recorded { record, key, .. } = recorded;
        let row = jobs.get(&record.job);
        if row.is_none_or(|row| row.state.deleted) {
            found.gone.insert(record.job);
        }
        let ended = Ended { record: record.clone(), has_output: with_output.contains(&record.id), retry_at: None };
        let retry_at = match may_be_tried_again(row, record) {
            true => next_attempt(tables, row, ended.firing(), record.attempt).await?,
            false => None,
        };
        let subject = Subject::Job(subject(record.job, key, row));
        found.facts.push(Fact { at: record.finished_at, subject, what: What::Ended(Ended { retry_at, ..ended }) });
    }
    for (at, StoredFact { subject: about, what }) in stored {
        let about = match about {
            StoredSubject::Cluster(part) => Subject::Cluster(part),
            StoredSubject::Job(job) => match jobs.get(&job).filter(|_| what != StoredWhat::Gone) {
                Some(row) => Subject::Job(subject(job, &row.definition.key(), Some(row))),
                None => {
                    found.gone.insert(job);
                    continue;
                }
            },
        };
        let what = match what {
            StoredWhat::Judged(verdict) => What::Judged(verdict),
            StoredWhat::Trouble(trouble) => What::Trouble(trouble),
            StoredWhat::Over(when) => What::Over(when),
            StoredWhat::Gone => continue,
        };
        found.facts.push(Fact { at, subject: about, what });
    }
    dropped(tables, &jobs, looked_at, &mut found).await?;
    let seen: BTreeSet<JobId> = looked_at.iter().map(|one| one.job).collect();
    for (id, row) in seen.into_iter().filter_map(|id| Some((id, jobs.get(&id)?))) {
        let expect = row.definition.job.expect;
        let starts = expect.is_some_and(|expect| expect.start_within.is_some());
        let ends = expect.is_some_and(|expect| expect.finish_within.is_some() || expect.finish_by.is_some());
        let subject = Subject::Job(subject(id, &row.definition.key(), Some(row)));
        found.facts.push(Fact { at: tables.now(), subject, what: What::Seen { starts, ends } });
    }
    Ok(found)
}

/// Failures that were held back for an attempt that does not wait any more, and has no record.
async fn dropped<T: Tables>(
    tables: &mut T,
    jobs: &BTreeMap<JobId, JobRow>,
    looked_at: &[LookedAt],
    found: &mut Found,
) -> StoreResult<()> {
    let now = tables.now();
    for LookedAt { job, held } in looked_at {
        for held in held.iter().filter(|held| held.look_at <= now) {
            let Some(row) = jobs.get(job) else {
                found.gone.insert(*job);
                continue;
            };
            if next_attempt(tables, Some(row), held.firing, held.attempt).await?.is_none() {
                let subject = Subject::Job(subject(*job, &row.definition.key(), Some(row)));
                let fact = Fact { at: held.at, subject, what: What::RetryDropped(held.firing) };
                // Several routes and the monitor hold it back, and each is told by the one fact.
                if !found.facts.contains(&fact) {
                    found.facts.push(fact);
                }
            }
        }
    }
    Ok(())
}

/// Rows of history by their numbers.
async fn records<T: Tables>(tables: &mut T, numbers: &[u64]) -> StoreResult<Vec<Recorded>> {
    let mut gaps: Vec<Span> = Vec::new();
    for number in numbers {
        match gaps.last_mut() {
            Some(span) if span.last + 1 == *number => span.last = *number,
            _ => gaps.push(Span { first: *number, last: *number }),
        }
    }
    if gaps.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = tables.runs_numbered(&JournalAsk { gaps, ..JournalAsk::newest() }).await?.rows;
    rows.sort_by_key(|(number, _)| *number);
    Ok(rows.into_iter().map(|(_, recorded)| recorded).collect())
}

/// The rows of jobs; those that are gone, or that this binary cannot read, are left out.
async fn jobs<T: Tables>(tables: &mut T, ids: Vec<JobId>) -> StoreResult<BTreeMap<JobId, JobRow>> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = match tables.jobs_by_id(&ids).await {
        Err(StoreError::Permanent(_)) => {
            let mut rows = Vec::with_capacity(ids.len());
            for id in &ids {
                match tables.jobs_by_id(&[*id]).await {
                    Ok(found) => rows.extend(found),
                    Err(StoreError::Permanent(problem)) => {
                        tracing::error!(job = %id, problem, "nobody is told of a job that cannot be read");
                        rows.push(None);
                    }
                    Err(error) => return Err(error),
                }
            }
            rows
        }
        rows => rows?,
    };
    Ok(ids.into_iter().zip(rows).filter_map(|(id, row)| Some((id, row?))).collect())
}

/// Whether another attempt may follow. Nobody knows it of a job that is gone by now.
fn may_be_tried_again(row: Option<&JobRow>, record: &RunRecord) -> bool {
    let allows = |row: &JobRow| row.definition.job.retry.max_attempts > record.attempt;
    matches!(record.status, Status::Failed | Status::TimedOut) && row.is_none_or(allows)
}

/// When the next attempt of a firing comes or came.
async fn next_attempt<T: Tables>(
    tables: &mut T,
    row: Option<&JobRow>,
    firing: FiringKey,
    attempt: u32,
) -> StoreResult<Option<Timestamp>> {
    if let Some(at) = retry_of(firing, attempt, row.map(|row| &*row.state), &[], &[]) {
        return Ok(Some(at));
    }
    let beside = tables.concurrent_by_key(&[firing]).await?;
    let beside: Vec<ConcurrentRun> = beside.into_iter().flatten().map(|found| found.row).collect();
    // After the rows: an attempt that ended in between has its record by now.
    let later = tables.records(&of_due_time(firing)).await?;
    let later: Vec<RunRecord> = later.into_iter().map(|found| found.record).collect();
    Ok(retry_of(firing, attempt, None, &beside, &later))
}

fn of_due_time(firing: FiringKey) -> RecordQuery {
    RecordQuery { covering: Some(firing.due_at), ..RecordQuery::of(vec![firing.job], 1_000) }
}

/// A job as far as notices need it. Of one that is gone, history knows the name.
fn subject(id: JobId, key: &JobKey, row: Option<&JobRow>) -> JobSubject {
    let JobKey { namespace, name } = key.clone();
    match row {
        None => JobSubject {
            id,
            namespace,
            name,
            labels: BTreeMap::new(),
            zone: "UTC".to_owned(),
            executor: String::new(),
            ping: None,
            cron: None,
        },
        Some(row) => {
            let job = &row.definition.job;
            JobSubject {
                id,
                namespace,
                name,
                labels: job.labels.clone(),
                zone: row.definition.timeline.schedule.timezone().to_owned(),
                executor: job.executor.clone(),
                ping: job.ping.clone(),
                cron: cron(job),
            }
        }
    }
}

/// The mail of a job that a crontab asks mail for: cron's users know its subject.
fn cron(job: &Job) -> Option<CronMail> {
    job.labels.get(MAIL_LABEL)?;
    let params: serde_json::Value = serde_json::from_str(&job.params).ok()?;
    let command = params["command"].as_str()?.to_owned();
    let user = params["user"].as_str().or(job.labels.get("user").map(String::as_str)).unwrap_or("carillon");
    Some(CronMail { user: user.to_owned(), command })
}
