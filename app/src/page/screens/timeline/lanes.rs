//! The runs of many jobs within a range: past ones, living ones, and coming ones by their usual duration.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::time::Timestamp;
use carillon_store::{JobCursor, JobKey, JobQuery, JobSort, JobView, Page};

use crate::page::outcome::Mark;
use crate::page::screens::parts::{coming, key_of, scope};
use crate::page::usual;
use crate::page::visit::{Fault, Visit};

/// How many lanes there are at the most.
pub(super) const LANES: usize = 200;
/// How many records of a job are drawn, and how many coming due times.
const PER_JOB: usize = 200;
/// How many runs tell the usual duration.
const RECENT: usize = 20;
/// A coming run without any past one is drawn as if it took so long.
const UNKNOWN: Duration = Duration::from_secs(1);
/// A run that was due so long before the range may still be seen in it.
const LONGEST_SEEN: Duration = Duration::from_secs(6 * 3_600);

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

/// The lanes of a range, and whether there are more jobs than lanes.
pub(super) async fn lanes(visit: &Visit, range: Range) -> Result<(Vec<Lane>, bool), Fault> {
    let Page { items: views, next } = jobs(visit).await?;
    let ids: Vec<_> = views.iter().map(|view| view.state.id).collect();
    if ids.is_empty() {
        return Ok((Vec::new(), false));
    }
    let due = (range.from - LONGEST_SEEN)..range.until;
    let mut records = visit.api.store.runs_between(&ids, due, PER_JOB).await?;
    let recent =
        if range.until > visit.now { visit.api.store.recent_runs(&ids, RECENT).await? } else { BTreeMap::new() };
    let lane = |view: JobView| {
        let records = records.remove(&view.state.id).unwrap_or_default();
        let more = records.len() >= PER_JOB;
        let mut bars: Vec<Bar> = records
            .iter()
            .map(|record| Bar {
                mark: record.status.into(),
                from: record.started_at.unwrap_or(record.due_at),
                until: record.finished_at.max(record.due_at),
            })
            .collect();
        // A due time that did not run is an instant, however late that was recorded.
        bars.iter_mut().filter(|bar| bar.mark == Mark::Skipped).for_each(|bar| bar.until = bar.from);
        if let Phase::Executing(held) = &view.state.phase {
            bars.push(Bar {
                mark: Mark::Running,
                from: held.started_at.unwrap_or(held.firing.due_at),
                until: visit.now,
            });
        }
        let usual = recent.get(&view.state.id).and_then(|records| usual::usual(records)).unwrap_or(UNKNOWN);
        if view.pause().is_none() {
            let to_come = coming(&view, PER_JOB).into_iter().filter(|due| *due > visit.now);
            bars.extend(to_come.map(|due| Bar { mark: Mark::Waiting, from: due, until: due + usual }));
        }
        bars.retain(|bar| range.touches(bar));
        bars.sort_by_key(|bar| (bar.from, bar.until));
        Lane { key: key_of(&view), bars, more }
    };
    let mut lanes: Vec<Lane> = views.into_iter().map(lane).collect();
    lanes.sort_by(|one, other| (one.bars.is_empty(), &one.key).cmp(&(other.bars.is_empty(), &other.key)));
    Ok((lanes, next.is_some()))
}

/// The jobs that come up first, as the filters choose them.
async fn jobs(visit: &Visit) -> Result<Page<JobView, JobCursor>, Fault> {
    let (params, scope) = (&visit.params, scope(visit));
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
    let query = JobQuery { namespace, scope, label, contains, sort, limit, ..JobQuery::default() };
    Ok(visit.api.store.jobs(&query).await?)
}
