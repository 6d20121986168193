//! Why a due time ran, did not run, or has not run yet, in one sentence.
//!
//! People ask this first when a job surprises them. [`explain`] answers from the job's row, its due times and the records
//! of that due time. It reads nothing itself and decides nothing: the same row and records always give the same sentence.

mod pending;
mod recorded;
pub(crate) mod words;

use crate::firing::{Firing, JobState};
use crate::id::RunId;
use crate::job::Job;
use crate::lost_commits::LossWindow;
use crate::run::{RunRecord, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

use self::words::Clock;

/// How a due time stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DueState {
    /// A run of it started and ended, however it ended.
    Ran,
    /// A run of it executes.
    Running,
    /// It did not run, and a record tells why.
    Skipped,
    /// It may have run: its node or the commits about it were lost.
    Lost,
    /// It has come, or an attempt of it failed, and it is still to run or to be recorded.
    Waiting,
    /// It comes later.
    Upcoming,
    /// The job is paused then, so it will not run.
    Paused,
    /// It passed, and no record of it is kept.
    Unrecorded,
    /// It is not a due time of the job.
    NotDue,
}

impl DueState {
    /// Every value.
    pub const ALL: [DueState; 9] = [
        DueState::Ran,
        DueState::Running,
        DueState::Skipped,
        DueState::Lost,
        DueState::Waiting,
        DueState::Upcoming,
        DueState::Paused,
        DueState::Unrecorded,
        DueState::NotDue,
    ];

    /// The name that users read.
    pub const fn as_str(self) -> &'static str {
        match self {
            DueState::Ran => "ran",
            DueState::Running => "running",
            DueState::Skipped => "skipped",
            DueState::Lost => "lost",
            DueState::Waiting => "waiting",
            DueState::Upcoming => "upcoming",
            DueState::Paused => "paused",
            DueState::Unrecorded => "unrecorded",
            DueState::NotDue => "not_due",
        }
    }
}

/// A run of the due time that executes, or that waits under an id of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveRun {
    /// Its id.
    pub run: RunId,
    /// The trigger of its firing.
    pub trigger: Trigger,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// When it started; `None` while it waits.
    pub started_at: Option<Timestamp>,
    /// The name of its node, if one holds it.
    pub node: Option<String>,
    /// Whether it was asked to end.
    pub cancelling: bool,
}

/// The nodes, as far as they matter to a firing that nobody has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nodes {
    /// How many nodes claim firings.
    pub claiming: usize,
    /// Whether the node that is asked has the job's executor.
    pub has_executor: bool,
    /// How many runs the node that is asked executes and may execute, if it is the only one and has no place left.
    pub full: Option<(usize, usize)>,
}

/// Everything that the sentence follows from.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The definition.
    pub job: &'a Job,
    /// Its due times.
    pub timeline: &'a Timeline,
    /// Its row.
    pub state: &'a JobState,
    /// When the job was created.
    pub created_at: Timestamp,
    /// The database's time.
    pub now: Timestamp,
    /// The name of the node that holds the row.
    pub node: Option<&'a str>,
    /// Every record that stands for the due time, in any order.
    pub records: &'a [RunRecord],
    /// The runs of the due time that live, in any order.
    pub live: &'a [LiveRun],
    /// The last run before the due time that started.
    pub previous: Option<&'a RunRecord>,
    /// The nodes.
    pub nodes: Nodes,
    /// The loss of commits that nobody has accepted yet.
    pub loss: Option<LossWindow>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The time that was asked about.
    pub due_at: Timestamp,
    /// How it stands.
    pub state: DueState,
    /// The reason, as an English sentence. Its times are those of the job's zone.
    pub sentence: String,
    /// The run that the sentence speaks of.
    pub run: Option<RunId>,
    /// The next due time after now, whatever was asked about.
    pub next_due_at: Option<Timestamp>,
}

/// The due time to explain if none is given: the latest that has passed, or the first one.
pub fn latest_due(timeline: &Timeline, state: &JobState, now: Timestamp) -> Option<Timestamp> {
    let passed = timeline.last_until(now).filter(|due| *due > state.anchor_at);
    passed.or_else(|| timeline.next_after(now.max(state.anchor_at)))
}

/// Explains a due time of a job.
///
/// ```
/// use carillon_domain::explain::{Facts, Nodes, DueState, explain};
/// use carillon_domain::firing::JobState;
/// use carillon_domain::id::JobId;
/// use carillon_domain::job::Job;
/// use carillon_domain::time::Timestamp;
///
/// let at = |text| Timestamp::parse_rfc3339(text).unwrap();
/// let created_at = at("2027-01-01T00:30:00Z");
/// let job = Job::new(("default", "report"), "0 * * * *", "{}");
/// let timeline = job.timeline(created_at).unwrap();
/// let state = JobState::new(JobId(1), &timeline, 1, created_at).unwrap();
/// let facts = Facts {
///     job: &job,
///     timeline: &timeline,
///     state: &state,
///     created_at,
///     now: created_at,
///     node: None,
///     records: &[],
///     live: &[],
///     previous: None,
///     nodes: Nodes { claiming: 1, has_executor: true, full: None },
///     loss: None,
/// };
/// let upcoming = explain(&facts, at("2027-01-01T01:00:00Z"));
/// assert_eq!(upcoming.state, DueState::Upcoming);
/// assert_eq!(upcoming.sentence, "The firing of 01:00 comes up in 30 min.");
/// let no = explain(&facts, at("2027-01-01T01:10:00Z"));
/// assert_eq!(no.sentence, "01:10 is not a due time of this schedule: the nearest ones are 01:00 and 02:00.");
/// ```
pub fn explain(facts: &Facts<'_>, at: Timestamp) -> Explanation {
    let question = Question { facts, at, clock: Clock::of(facts.timeline, facts.now) };
    let (state, sentence, run) = question
        .of_live_run()
        .or_else(|| question.of_next_attempt())
        .or_else(|| question.of_record())
        .unwrap_or_else(|| question.of_pending());
    let next_due_at = facts.timeline.next_after(facts.now);
    Explanation { due_at: at, state, sentence, run, next_due_at }
}

/// A part of an [`Explanation`].
type Found = (DueState, String, Option<RunId>);

/// One due time and the facts about it.
struct Question<'a> {
    facts: &'a Facts<'a>,
    at: Timestamp,
    clock: Clock,
}

impl Question<'_> {
    /// Whether the schedule is due at the time that was asked about.
    fn is_due(&self) -> bool {
        self.facts.timeline.next_after(self.at - Timestamp::TICK) == Some(self.at)
    }

    /// The firing as a subject.
    fn firing(&self, trigger: Trigger) -> String {
        let at = self.clock.at(self.at);
        match trigger {
            Trigger::Schedule => format!("The firing of {at}"),
            Trigger::Manual => format!("The manual run of {at}"),
            Trigger::Misfire => format!("The missed firing of {at}"),
        }
    }

    /// Such as `, in attempt 2 of 3`; nothing where there is one attempt only.
    fn attempt(&self, attempt: u32) -> String {
        let most = self.facts.job.retry.max_attempts.max(attempt);
        if most > 1 { format!(", in attempt {attempt} of {most}") } else { String::new() }
    }

    fn of_live_run(&self) -> Option<Found> {
        let live = self.facts.live;
        let run = live.iter().find(|run| run.started_at.is_some()).or_else(|| live.first())?;
        let (firing, attempt) = (self.firing(run.trigger), self.attempt(run.attempt));
        let node = run.node.as_ref().map(|node| format!(" at node {node}")).unwrap_or_default();
        let Some(started_at) = run.started_at else {
            return Some((DueState::Waiting, format!("{firing} {}.", self.wait_of_a_run(run)), Some(run.run)));
        };
        let ends = if run.cancelling { ", and was asked to end" } else { "" };
        let since = self.clock.at(started_at);
        Some((
            DueState::Running,
            format!("{firing} has been running since {since}{node}{attempt}{ends}."),
            Some(run.run),
        ))
    }

    /// A retry of the due time that waits in the job's own row. The record of the attempt before it is there already.
    fn of_next_attempt(&self) -> Option<Found> {
        let state = self.facts.state;
        let held = state.phase.held().filter(|held| held.started_at.is_none()).map(|held| held.firing);
        let waiting = state.armed.into_iter().chain(state.manual.map(|manual| manual.firing)).chain(held);
        let Firing { start_at, trigger, attempt, .. } =
            waiting.into_iter().find(|firing| firing.due_at == self.at && firing.attempt > 1)?;
        let (firing, before) = (self.firing(trigger), attempt - 1);
        let most = self.facts.job.retry.max_attempts.max(attempt);
        let next = self.clock.at(start_at);
        let sentence = format!(
            "{firing} is tried again: attempt {before} did not succeed, and attempt {attempt} of {most} starts at {next}."
        );
        Some((DueState::Waiting, sentence, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_names_that_users_read() {
        let names = ["ran", "running", "skipped", "lost", "waiting", "upcoming", "paused", "unrecorded", "not_due"];
        assert_eq!(DueState::ALL.map(DueState::as_str), names);
    }
}
