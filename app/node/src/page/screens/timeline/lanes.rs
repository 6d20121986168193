//! The runs of many jobs within a range: past ones, living ones, and coming ones by their usual duration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use carillon_store::{JobKey, JobQuery, JobSort, JobView, Page};

use crate::http::state::ApiState;
use crate::page::outcome::Mark;
use crate::page::screens::parts::{coming, due_times, key_of};
use crate::page::usual;
use crate::page::visit::{Fault, Visit};

/// How many lanes there are at the most.
pub(super) const LANES: usize = 200;
/// How many records of a job are drawn, and how many coming due times.
const PER_JOB: usize = 200;
/// How many runs tell the usual duration, and are drawn of a dense job.
const RECENT: usize = 20;
/// A job is dense if [`PER_JOB`] runs take less than such a part of the range. All of them would be a dot then, and 200 such
/// jobs have 40,000 records to read.
const DENSE_PART: u32 = 40;
/// So many intervals tell the pace of a job.
const PACE: usize = 3;
/// How long lanes are good without followers.
const GOOD_FOR: Duration = Duration::from_secs(1);
/// A coming run without any past one is drawn as if it took so long.
const UNKNOWN: Duration = Duration::from_secs(1);
/// A run that was due so long before the range may still be seen in it.
const LONGEST_SEEN: Duration = Duration::from_secs(6 * 3_600);

/// The records of jobs, newest first.
type Records = BTreeMap<JobId, Vec<RunRecord>>;

/// A run, or a due time that did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bar {
    /// `Waiting` for one that is to come.
    pub mark: Mark,
    pub from: Timestamp,
    pub until: Timestamp,
}

/// A job.
#[derive(Debug)]
pub(super) struct Lane {
    pub key: JobKey,
    /// In the order of time.
    pub bars: Vec<Bar>,
    /// Whether more ran than is drawn.
    pub more: bool,
}

/// The range that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub from: Timestamp,
    pub until: Timestamp,
}

impl Range {
    pub fn length(self) -> Duration {
        self.until.since(self.from)
    }

    /// Where an instant lies, as a share of the range.
    pub fn share(self, at: Timestamp) -> f64 {
        let length_ms = (self.until.as_ms() - self.from.as_ms()).max(1);
        (at.as_ms() - self.from.as_ms()) as f64 / length_ms as f64
    }

    fn touches(self, bar: &Bar) -> bool {
        bar.from < self.until && bar.until >= self.from
    }
}

/// The lanes of a range.
#[derive(Debug)]
pub(super) struct Lanes {
    pub lanes: Vec<Lane>,
    /// Whether there are more jobs than lanes.
    pub more: bool,
}

/// The lanes of a range, shared by all who look at the same.
pub(super) async fn lanes(visit: &Visit, range: Range) -> Result<Arc<Lanes>, Fault> {
    let query = query(visit)?;
    let question = format!("lanes {query:?} {range:?}");
    let read = || read(Arc::clone(&visit.api), query, (range, visit.now));
    visit.ahead((GOOD_FOR, visit.api.events.version()), question, read).await
}

async fn read(api: Arc<ApiState>, query: JobQuery, (range, now): (Range, Timestamp)) -> Result<Lanes, Fault> {
    let store = &api.store;
    let Page { items: views, next } = store.jobs(&query).await?;
    let due = (range.from - LONGEST_SEEN)..range.until;
    let (dense, others): (Vec<&JobView>, Vec<&JobView>) = views.iter().partition(|view| is_dense(view, range));
    let dense = ids(dense);
    let (recent, records) = if range.until > now {
        let (sparse, whole): (Vec<&JobView>, Vec<&JobView>) =
            others.into_iter().partition(|view| is_sparse(view, now.since(due.start)));
        let (sparse, mut whole) = (ids(sparse), ids(whole));
        // The newest records tell the usual duration of runs to come, and mostly they are all that is drawn.
        let recent = store.recent_runs(&[&dense[..], &sparse].concat(), RECENT).await?;
        whole.extend(sparse.into_iter().filter(|job| recent.get(job).is_some_and(|found| is_cut(found, due.start))));
        let records = store.runs_between(&whole, due, PER_JOB).await?;
        (recent, records)
    } else {
        let recent = store.runs_between(&dense, due.clone(), RECENT).await?;
        (recent, store.runs_between(&ids(others), due, PER_JOB).await?)
    };
    let lane = |view: &JobView| {
        let of = |records: &Records| records.get(&view.state.id).cloned();
        let drawn = of(&records).or_else(|| of(&recent)).unwrap_or_default();
        let usual = usual::usual(recent.get(&view.state.id).unwrap_or(&drawn));
        let most = if dense.contains(&view.state.id) { RECENT } else { PER_JOB };
        lane(view, (&drawn, usual), most, (range, now))
    };
    let mut lanes: Vec<Lane> = views.iter().map(lane).collect();
    lanes.sort_by(|one, other| (one.bars.is_empty(), &one.key).cmp(&(other.bars.is_empty(), &other.key)));
    Ok(Lanes { lanes, more: next.is_some() })
}

fn ids(views: Vec<&JobView>) -> Vec<JobId> {
    views.into_iter().map(|view| view.state.id).collect()
}

/// The time from one due time to the next, as the schedule has it now.
fn pace(view: &JobView) -> Option<Duration> {
    match coming(view, PACE + 1).as_slice() {
        [first, .., last] => Some(last.since(*first) / PACE as u32),
        _ => None,
    }
}

/// Whether as many records as are drawn of a job would be a dot in this range.
fn is_dense(view: &JobView, range: Range) -> bool {
    pace(view).is_some_and(|pace| pace * (PER_JOB as u32) < range.length() / DENSE_PART)
}

/// Whether the newest records probably reach back so far.
fn is_sparse(view: &JobView, past: Duration) -> bool {
    pace(view).is_none_or(|pace| pace * (RECENT as u32) > past)
}

/// Whether a job has more records since then than the newest that were read.
fn is_cut(newest: &[RunRecord], since: Timestamp) -> bool {
    newest.len() >= RECENT && newest.last().is_some_and(|oldest| oldest.due_at > since)
}

/// The lane of a job: its records, newest first, the run that executes, and those to come.
fn lane(
    view: &JobView,
    (records, usual): (&[RunRecord], Option<Duration>),
    most: usize,
    (range, now): (Range, Timestamp),
) -> Lane {
    let bar = |record: &RunRecord| Bar {
        mark: record.status.into(),
        from: record.started_at.unwrap_or(record.due_at),
        until: record.finished_at.max(record.due_at),
    };
    let mut bars: Vec<Bar> = records.iter().map(bar).collect();
    // A due time that did not run is an instant, however late that was recorded.
    bars.iter_mut().filter(|bar| bar.mark == Mark::Skipped).for_each(|bar| bar.until = bar.from);
    if let Phase::Executing(held) = &view.state.phase {
        bars.push(Bar { mark: Mark::Running, from: held.started_at.unwrap_or(held.firing.due_at), until: now });
    }
    if view.pause().is_none() {
        let to_come = due_times(view).take_while(|due| *due < range.until).take(most).filter(|due| *due > now);
        bars.extend(to_come.map(|due| Bar { mark: Mark::Waiting, from: due, until: due + usual.unwrap_or(UNKNOWN) }));
    }
    bars.retain(|bar| range.touches(bar));
    bars.sort_by_key(|bar| (bar.from, bar.until));
    Lane { key: key_of(view), bars, more: records.len() >= most }
}

/// The jobs that come up first, as the filters choose them.
fn query(visit: &Visit) -> Result<JobQuery, Fault> {
    let (params, scope) = (&visit.params, visit.caller.scope());
    let namespace = params.get("namespace").filter(|name| *name != "*").map(str::to_owned);
    if let Some(namespace) = &namespace {
        visit.caller.enters(namespace)?;
    }
    let label = params.get("label").map(|label| match label.split_once('=') {
        Some((key, value)) => (key.trim().to_owned(), Some(value.trim().to_owned())),
        None => (label.trim().to_owned(), None),
    });
    let contains = params.get("q").map(|text| text.trim().chars().take(128).collect());
    let (sort, limit) = (JobSort::Next, LANES);
    Ok(JobQuery { namespace, scope, label, contains, sort, limit, ..JobQuery::default() })
}
