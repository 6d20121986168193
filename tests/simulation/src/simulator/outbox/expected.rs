//! The facts that must be told, worked out from the commits alone: from history, from the rows that went to Executing, and from how far
//! due times were judged. Nothing here asks the rules of alerts but for the limits of expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use carillon_domain::alert::When;
use carillon_domain::alert::expect::SETTLE;
use carillon_domain::firing::{FiringKey, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::job::{Job, Overlap};
use carillon_domain::run::{RunRecord, Status, Trigger};
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;
use carillon_doubles::innodb::Commit;
use carillon_store::alerts::port::WatchRow;

use crate::world::phases;

/// The knowledge of the commits.
#[derive(Default)]
pub(in crate::simulator) struct Facts {
    /// The latest time that the database's clock has shown.
    latest: Timestamp,
    jobs: BTreeMap<JobId, Known>,
    records: Vec<Seen<RunRecord>>,
    /// The starts of due times that became visible.
    starts: BTreeMap<(JobId, Timestamp), Vec<Seen<Timestamp>>>,
    judged: Vec<Judged>,
    /// Every due time that was judged.
    dues: BTreeSet<(JobId, When, Timestamp)>,
    /// Sessions that were ended because they were silent.
    pub silent: Vec<SessionId>,
}

/// Something that a commit showed, and the database's latest time by then.
struct Seen<T> {
    what: T,
    shown_at: Timestamp,
}

struct Known {
    job: Arc<Job>,
    timeline: Timeline,
    judged: Option<WatchRow>,
    deleted: bool,
}

/// Due times in a row that one look judged, with their limits.
struct Judged {
    job: JobId,
    when: When,
    dues: Vec<(Timestamp, Timestamp)>,
    at: Timestamp,
}

/// The subject of a message about a job: its run, or due times of which it names one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum About {
    Run(RunId),
    /// A due time that did not run, or the last one of several.
    Skipped(Timestamp),
    /// It names the last one.
    Dues(Vec<Timestamp>),
}

/// A fact of a job.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub name: String,
    pub when: When,
    pub about: About,
    pub at: Timestamp,
    /// Whether it must be told where somebody asks for it; otherwise it may be.
    pub sure: bool,
}

/// How a due time came out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Kept,
    Broken,
    /// It was kept, but not visibly so when it was judged.
    Either,
}

impl Facts {
    /// Takes in a commit that has just become visible; the database's clock shows `now`.
    pub fn committed(&mut self, commit: &Commit, now: Timestamp) -> Verdict {
        self.latest = self.latest.max(now);
        let shown_at = self.latest;
        for (id, job, timeline) in &commit.defined {
            let judged = self.jobs.get(id).and_then(|known| known.judged);
            let known = Known { job: job.clone(), timeline: timeline.clone(), judged, deleted: false };
            self.jobs.insert(*id, known);
        }
        for id in &commit.deleted {
            if let Some(known) = self.jobs.get_mut(id) {
                known.deleted = true;
            }
        }
        for (job, _, after) in phases(commit) {
            if let Some(Phase::Executing(held)) = after
                && held.firing.trigger != Trigger::Manual
                && let Some(started_at) = held.started_at
            {
                self.starts.entry((job, held.firing.due_at)).or_default().push(Seen { what: started_at, shown_at });
            }
        }
        self.records.extend(commit.records.iter().map(|record| Seen { what: record.clone(), shown_at }));
        if commit.by == "expire" {
            self.silent.extend(&commit.ended);
        }
        commit.judged.iter().try_for_each(|(before, after)| self.judged(*before, *after, commit.now))
    }

    /// The due times between two standings were judged, each for the first time.
    fn judged(&mut self, before: WatchRow, after: WatchRow, at: Timestamp) -> Verdict {
        let Some(known) = self.jobs.get_mut(&before.job) else { return Ok(()) };
        known.judged = Some(after);
        let Some(expect) = known.job.expect else { return Ok(()) };
        let spans = [(When::LateStart, before.starts, after.starts), (When::LateFinish, before.ends, after.ends)];
        for (when, from, until) in spans {
            must::never_decreases("how far due times are judged", from, until)?;
            let timeline = &known.timeline;
            let limit = |due_at: Timestamp| match when {
                When::LateStart => expect.start_limit(due_at),
                _ => expect.finish_limit(timeline.schedule.timezone(), due_at),
            };
            let dues = timeline.after(from.max(timeline.anchor)).take_while(|due_at| *due_at <= until);
            let dues: Vec<_> = dues.filter_map(|due_at| Some((due_at, limit(due_at)?))).collect();
            for (due_at, _) in &dues {
                let judged_again = !self.dues.insert((before.job, when, *due_at));
                must::told_once(&(when, before.job, *due_at), 1 + usize::from(judged_again))?;
            }
            if !dues.is_empty() {
                self.judged.push(Judged { job: before.job, when, dues, at });
            }
        }
        Ok(())
    }

    /// L3: no due time of a living job is left unjudged whose limit has long passed.
    pub fn all_are_judged(&self) -> Verdict {
        for (id, known) in self.jobs.iter().filter(|(_, known)| !known.deleted) {
            let (Some(expect), Some(judged)) = (known.job.expect, known.judged) else { continue };
            let next = |from: Timestamp| known.timeline.next_after(from.max(known.timeline.anchor));
            let starts = next(judged.starts).and_then(|due_at| expect.start_limit(due_at));
            let zone = known.timeline.schedule.timezone();
            let ends = next(judged.ends).and_then(|due_at| expect.finish_limit(zone, due_at));
            let overdue = [starts, ends].into_iter().flatten().any(|limit| limit + SETTLE * 2 < self.latest);
            must::is_told(&("due times that nobody judged, of job", id), !overdue)?;
        }
        Ok(())
    }

    /// Every fact of a job, in the order of the commits.
    pub(super) fn of_jobs(&self) -> Vec<Fact> {
        let superseded = self.superseded();
        let of_records = self.records.iter().filter_map(|seen| self.of_record(&seen.what, &superseded));
        of_records.chain(self.judged.iter().flat_map(|judged| self.of_judged(judged))).collect()
    }

    /// The highest attempt of each firing that has a last word of its own. One that never ran leaves the word to the attempt before it.
    fn superseded(&self) -> BTreeMap<FiringKey, u32> {
        let mut last = BTreeMap::new();
        for record in self.records.iter().map(|seen| &seen.what) {
            let dropped = record.started_at.is_none() && matches!(record.status, Status::Skipped | Status::Cancelled);
            if !dropped {
                let attempt: &mut u32 = last.entry(firing(record)).or_default();
                *attempt = record.attempt.max(*attempt);
            }
        }
        last
    }

    fn of_record(&self, record: &RunRecord, superseded: &BTreeMap<FiringKey, u32>) -> Option<Fact> {
        let known = self.jobs.get(&record.job)?;
        let when = match record.status {
            Status::Failed => When::Failed,
            Status::TimedOut => When::TimedOut,
            Status::Lost => When::Lost,
            Status::Skipped => When::Skipped,
            Status::Running | Status::Succeeded | Status::Cancelled => return None,
        };
        let is_retried = is_retried(record, superseded);
        // A job that is deleted is forgotten with the failure that waits for another attempt.
        let forgotten = known.deleted && record.attempt < known.job.retry.max_attempts;
        let about = match when {
            When::Skipped => About::Skipped(record.due_at),
            _ => About::Run(record.id),
        };
        let (name, at, sure) = (known.job.name.clone(), record.finished_at, !forgotten);
        (!is_retried).then_some(Fact { name, when, about, at, sure })
    }

    /// Broken due times in a row are one fact.
    fn of_judged(&self, judged: &Judged) -> Vec<Fact> {
        let Some(known) = self.jobs.get(&judged.job) else { return Vec::new() };
        let mut facts: Vec<Fact> = Vec::new();
        let mut in_a_row = false;
        for (due_at, limit) in &judged.dues {
            let came = self.came(judged, *due_at, *limit);
            if came != Came::Kept {
                match facts.last_mut().filter(|_| in_a_row) {
                    Some(Fact { about: About::Dues(dues), sure, .. }) => {
                        dues.push(*due_at);
                        *sure |= came == Came::Broken;
                    }
                    _ => facts.push(Fact {
                        name: known.job.name.clone(),
                        when: judged.when,
                        about: About::Dues(vec![*due_at]),
                        at: judged.at,
                        sure: came == Came::Broken,
                    }),
                }
            }
            in_a_row = came != Came::Kept;
        }
        // A deleted job is told of or not: it depends on which comes first.
        facts.iter_mut().for_each(|fact| fact.sure &= !known.deleted);
        facts
    }

    fn came(&self, judged: &Judged, due_at: Timestamp, limit: Timestamp) -> Came {
        let of_due = |seen: &&Seen<RunRecord>| {
            let Seen { what: record, .. } = seen;
            record.job == judged.job && record.due_at == due_at && record.trigger != Trigger::Manual
        };
        let records = || self.records.iter().filter(of_due);
        let in_time = |at: Option<Timestamp>| at.is_some_and(|at| at <= limit);
        // A commit that came late enough was seen by no look that may judge.
        let seen_in_time = |shown_at: Timestamp| shown_at < limit + SETTLE;
        let (kept, seen) = match judged.when {
            When::LateStart => {
                let starts = self.starts.get(&(judged.job, due_at)).into_iter().flatten();
                let starts: Vec<_> = starts.filter(|seen| in_time(Some(seen.what))).collect();
                let by_record = records().any(|seen| in_time(seen.what.started_at));
                let seen = starts.iter().any(|seen| seen_in_time(seen.shown_at));
                // One that went to Executing and was taken back looked like a start.
                if !by_record && seen {
                    return Came::Either;
                }
                (by_record, seen || records().any(|seen| in_time(seen.what.started_at) && seen_in_time(seen.shown_at)))
            }
            _ => {
                let good = |seen: &&Seen<RunRecord>| {
                    seen.what.status == Status::Succeeded && in_time(Some(seen.what.finished_at))
                };
                let seen = records().filter(good).any(|seen| seen_in_time(seen.shown_at));
                (records().any(|seen| good(&seen)), seen)
            }
        };
        match (kept, seen) {
            (true, true) => Came::Kept,
            (true, false) => Came::Either,
            (false, _) => Came::Broken,
        }
    }

    /// How a job that runs once at a time and never tries again has come out last: whether its last run ended well. A name that had
    /// another job before is left out, because that one's alerts are under the same name.
    pub fn last_words(&self) -> BTreeMap<String, bool> {
        let deleted: BTreeSet<&str> =
            self.jobs.values().filter(|known| known.deleted).map(|known| &*known.job.name).collect();
        let plain = |known: &&Known| {
            let job = &known.job;
            job.retry.max_attempts <= 1 && job.overlap != Overlap::Allow && !deleted.contains(&*job.name)
        };
        let mut last = BTreeMap::new();
        for record in self.records.iter().map(|seen| &seen.what) {
            let ended_well = match record.status {
                Status::Succeeded => true,
                Status::Failed | Status::TimedOut | Status::Lost => false,
                Status::Running | Status::Skipped | Status::Cancelled => continue,
            };
            if let Some(known) = self.jobs.get(&record.job).filter(plain) {
                last.insert(known.job.name.clone(), ended_well);
            }
        }
        last
    }

    /// The records of jobs that have a monitor, whether the job lives, and whether no further attempt followed.
    pub fn monitored(&self) -> impl Iterator<Item = (&RunRecord, bool, bool)> {
        let superseded = self.superseded();
        self.records.iter().filter_map(move |seen| {
            let record = &seen.what;
            let known = self.jobs.get(&record.job).filter(|known| known.job.ping.is_some())?;
            Some((record, !known.deleted, !is_retried(record, &superseded)))
        })
    }
}

/// Whether it is a failed attempt that another one followed.
fn is_retried(record: &RunRecord, superseded: &BTreeMap<FiringKey, u32>) -> bool {
    matches!(record.status, Status::Failed | Status::TimedOut) && superseded[&firing(record)] > record.attempt
}

const fn firing(record: &RunRecord) -> FiringKey {
    FiringKey { job: record.job, due_at: record.due_at, trigger: record.trigger }
}
