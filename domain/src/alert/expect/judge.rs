//! Judging the due times of one job against its expectations.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::id::RunId;
use crate::run::{DueRange, Reason, RunRecord, Status, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

use super::super::when::When;
use super::{Because, Broken, Expect, Verdict};

/// How long after a limit a due time is judged. A start or an end that was in time may be in a commit that is still on its way.
pub const SETTLE: Duration = Duration::from_secs(5);

/// The most due times of one kind that one look judges. The rest waits for the next look, which is due at once.
const MOST_AT_ONCE: usize = 10_000;

/// The kinds of expectations.
const KINDS: [When; 2] = [When::LateStart, When::LateFinish];

/// How far the due times of a job have been judged: every due time up to here, once for each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// For starts.
    pub starts: Timestamp,
    /// For ends.
    pub ends: Timestamp,
}

/// The facts about due times, as the store has them in one snapshot.
#[derive(Debug, Clone, Copy, Default)]
pub struct DueFacts<'a> {
    /// Every record whose due times touch the range of [`needed`], in any order.
    pub records: &'a [RunRecord],
    /// The runs of the job that have started and not ended.
    pub live: &'a [LiveRun],
    /// The pause of the job.
    pub pause: Option<&'a Paused>,
}

/// A run that has started and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRun {
    /// Its id.
    pub run: RunId,
    /// Its due time.
    pub due_at: Timestamp,
    /// Its trigger.
    pub trigger: Trigger,
    /// When it started.
    pub started_at: Timestamp,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paused {
    /// When it began.
    pub since: Timestamp,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// The reason that the person gave.
    pub reason: Option<String>,
}

/// The answer of a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// How far the due times are judged now.
    pub judged: Judged,
    /// The verdicts in the order of due times, starts first.
    pub verdicts: Vec<Verdict>,
    /// When the next due time is to be judged; `None` if the schedule has ended.
    pub next_look: Option<Timestamp>,
}

impl Judged {
    /// The begin of a job's expectations: due times later than `now` are judged.
    pub const fn from(now: Timestamp) -> Self {
        Self { starts: now, ends: now }
    }

    const fn of(self, when: When) -> Timestamp {
        match when {
            When::LateStart => self.starts,
            _ => self.ends,
        }
    }

    const fn set(&mut self, when: When, due_at: Timestamp) {
        match when {
            When::LateStart => self.starts = due_at,
            _ => self.ends = due_at,
        }
    }
}

/// The first and last due time that a look at `now` judges; `None` if there is nothing to judge yet. Due times before the timeline's
/// anchor belong to another schedule and are never judged.
pub fn needed(expect: &Expect, timeline: &Timeline, judged: Judged, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let ranges = KINDS.map(|when| {
        let mut due = passed(expect, timeline, judged, when, now);
        let first = due.next()?;
        Some((first, due.last().unwrap_or(first)))
    });
    ranges.into_iter().flatten().reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}

/// Judges every due time whose limit has passed. Each is judged once: the answer's `judged` is stored in the commit that uses the
/// verdicts.
pub fn judge(expect: &Expect, timeline: &Timeline, judged: Judged, facts: &DueFacts<'_>, now: Timestamp) -> Judgement {
    let seen = Seen::of(facts);
    let mut answer = Judgement { judged, verdicts: Vec::new(), next_look: None };
    for when in KINDS {
        let mut in_a_row: Vec<Verdict> = Vec::new();
        for due_at in passed(expect, timeline, judged, when, now) {
            let Some(limit) = limit(expect, timeline, when, due_at) else { break };
            answer.judged.set(when, due_at);
            append(&mut in_a_row, seen.verdict(when, due_at, limit));
        }
        answer.verdicts.extend(in_a_row);
        let next = timeline.next_after(begin(timeline, answer.judged, when));
        let next_look = next.and_then(|due_at| limit(expect, timeline, when, due_at)).map(|limit| limit + SETTLE);
        answer.next_look = answer.next_look.into_iter().chain(next_look).min();
    }
    answer
}

/// The due times of one kind that may be judged at `now`, in order.
fn passed(
    expect: &Expect,
    timeline: &Timeline,
    judged: Judged,
    when: When,
    now: Timestamp,
) -> impl Iterator<Item = Timestamp> {
    let may =
        move |due_at: &Timestamp| limit(expect, timeline, when, *due_at).is_some_and(|limit| limit + SETTLE <= now);
    timeline.after(begin(timeline, judged, when)).take_while(may).take(MOST_AT_ONCE)
}

fn begin(timeline: &Timeline, judged: Judged, when: When) -> Timestamp {
    judged.of(when).max(timeline.anchor)
}

fn limit(expect: &Expect, timeline: &Timeline, when: When, due_at: Timestamp) -> Option<Timestamp> {
    match when {
        When::LateStart => expect.start_limit(due_at),
        _ => expect.finish_limit(timeline.schedule.timezone(), due_at),
    }
}

/// Appends a verdict; one that came out as the one before becomes one with it.
fn append(verdicts: &mut Vec<Verdict>, later: Verdict) {
    match (verdicts.last_mut(), later) {
        (Some(Verdict::Broken(before)), Verdict::Broken(later)) => {
            *before = Broken { due: before.due.join(later.due), ..later };
        }
        (Some(before @ Verdict::Kept { .. }), later @ Verdict::Kept { .. }) => *before = later,
        (_, later) => verdicts.push(later),
    }
}

/// The facts by due time. Runs of people have due times of their own, which no schedule expects.
struct Seen<'a> {
    runs: BTreeMap<Timestamp, Vec<&'a RunRecord>>,
    live: BTreeMap<Timestamp, &'a LiveRun>,
    /// Records of due times that did not run, by the last of them.
    not_run: BTreeMap<Timestamp, Vec<&'a RunRecord>>,
    pause: Option<&'a Paused>,
}

impl<'a> Seen<'a> {
    fn of(facts: &DueFacts<'a>) -> Self {
        let (mut runs, mut not_run) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for record in facts.records.iter().filter(|record| record.trigger != Trigger::Manual) {
            let records = if record.started_at.is_some() { &mut runs } else { &mut not_run };
            records.entry(record.due_at).or_default().push(record);
        }
        let live = facts.live.iter().filter(|live| live.trigger != Trigger::Manual);
        Self { runs, live: live.map(|live| (live.due_at, live)).collect(), not_run, pause: facts.pause }
    }

    fn verdict(&self, when: When, due_at: Timestamp, limit: Timestamp) -> Verdict {
        let broken = match when {
            When::LateStart => self.start(due_at, limit),
            _ => self.end(due_at, limit),
        };
        match broken {
            None => Verdict::Kept { when, due_at },
            Some((because, run)) => {
                let due = DueRange { count: 1, first: due_at, last: due_at };
                Verdict::Broken(Broken { when, due, limit, because, run })
            }
        }
    }

    /// Why the due time did not start by the limit; `None` if it did.
    fn start(&self, due_at: Timestamp, limit: Timestamp) -> Option<(Because, Option<RunId>)> {
        let of_records = self.runs_of(due_at).filter_map(|record| Some((record.started_at?, record.id)));
        let of_live = self.live.get(&due_at).map(|live| (live.started_at, live.run));
        match of_records.chain(of_live).min() {
            Some((started_at, _)) if started_at <= limit => None,
            Some((started_at, run)) => Some((Because::StartedLate(started_at), Some(run))),
            None => Some(self.not_started(due_at)),
        }
    }

    /// Why the due time did not succeed by the limit; `None` if it did.
    fn end(&self, due_at: Timestamp, limit: Timestamp) -> Option<(Because, Option<RunId>)> {
        let succeeded = self.runs_of(due_at).filter(|record| record.status == Status::Succeeded);
        if let Some(record) = succeeded.min_by_key(|record| record.finished_at) {
            let late = record.finished_at > limit;
            return late.then_some((Because::SucceededLate(record.finished_at), Some(record.id)));
        }
        if let Some(live) = self.live.get(&due_at) {
            return Some((Because::StillRuns(live.started_at), Some(live.run)));
        }
        match self.runs_of(due_at).max_by_key(|record| (record.attempt, record.finished_at)) {
            Some(record) => Some((Because::Ended(record.status, record.finished_at), Some(record.id))),
            None => Some(self.not_started(due_at)),
        }
    }

    fn runs_of(&self, due_at: Timestamp) -> impl Iterator<Item = &'a RunRecord> {
        self.runs.get(&due_at).into_iter().flatten().copied()
    }

    fn not_started(&self, due_at: Timestamp) -> (Because, Option<RunId>) {
        // Ranges are disjoint but for runs selected out of one, so the first few decide.
        let after = self.not_run.range(due_at..).flat_map(|(_, records)| records).take(8);
        if let Some(record) = after.into_iter().find(|record| record.first_due_at <= due_at) {
            let reason = record.reason.clone().unwrap_or_else(|| Reason::Said("it has no reason".into()));
            return (Because::NotRun(reason), Some(record.id));
        }
        let paused = self.pause.filter(|pause| pause.until.is_none_or(|until| due_at < until));
        (paused.map_or(Because::NotStarted, |pause| Because::Paused(pause.clone())), None)
    }
}
