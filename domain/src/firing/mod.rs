//! The state machine of a job: Idle -> Prepared -> Executing -> Idle. Every rule about a job's row is here, once.
//!
//! [`apply`] takes the definition, the row, one event and the time. It returns the row to write, or the reason why the
//! event does not apply. Stores call it inside their transaction and write under a guard on the version that they read.
//! They add no rule of their own.
//!
//! A row knows at most three firings. One is *held* (Prepared or Executing), one is *armed* (next on the schedule), and
//! a *manual* one waits. Every due time up to `cursor` has run, has a record, or is one of those three. This is why no
//! due time is lost and none counts twice.

mod claim;
mod concurrent;
mod control;
mod diagram;
mod finish;
mod last_end;
mod lost_commits;
mod pause;
mod recover;
mod start;
mod state;

pub use concurrent::{ConcurrentRun, ConcurrentTransition, FiringKey, apply_concurrent, start_concurrent};
pub use diagram::states_as_mermaid;
pub use finish::{goes_on, record_of_end};
pub use last_end::LastEnd;
pub use lost_commits::KnownDue;
pub use state::{CancelledBy, Firing, Held, JobState, Pause, Phase, Waiting};

use crate::guard::{Guard, enabled};
use crate::id::{RunId, SessionId};
use crate::job::Job;
use crate::run::{Ending, RunRecord};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// Something that happens to a row.
#[derive(Debug, Clone)]
pub enum Event {
    /// A session takes the next firing, if it starts by `until`. A manual run keeps the id that its caller was told.
    Claim {
        /// Who claims.
        session: SessionId,
        /// The id for the run, unless the firing has one.
        run: RunId,
        /// The claim horizon.
        until: Timestamp,
        /// The end of the newest loss window, if the database ever lost commits ([`crate::lost_commits`]).
        losses_until: Option<Timestamp>,
    },
    /// The holder starts what it prepared. Concurrent runs start by [`start_concurrent`].
    Start {
        /// Who starts.
        session: SessionId,
        /// Which run.
        run: RunId,
    },
    /// The holder cannot start yet, because older runs live that the firing must not overlap. They began while the job
    /// allowed overlap. Every concurrent run defers the job's own row; any executing run defers a concurrent one.
    Defer {
        /// Who would start.
        session: SessionId,
        /// Which run.
        run: RunId,
    },
    /// A newer firing replaces a concurrent run (`overlap = replace`).
    Supersede,
    /// The run ended.
    Finish {
        /// Who ran it.
        session: SessionId,
        /// Which run.
        run: RunId,
        /// How it ended.
        ending: Ending,
    },
    /// The holder releases a firing that it never spawned: at a drain, in recovery, or because it must not start.
    Reset {
        /// Who held it.
        session: SessionId,
        /// Which run.
        run: RunId,
    },
    /// The holder's session has ended and its children are dead.
    Sweep {
        /// Which session.
        session: SessionId,
    },
    /// The database has lost the start of a run that its node knows ([`crate::lost_commits`]). The run gets a row again, under its token.
    /// Nothing of the job starts meanwhile.
    WriteBack {
        /// The run as it was started.
        held: Held,
        /// The end of the open loss window.
        losses_until: Timestamp,
    },
    /// Some due times from the armed one on have a run or a record that the row does not know: commits were lost.
    Reconcile {
        /// Which, in ascending order.
        known: Vec<KnownDue>,
    },
    /// A person pauses the job: nothing on its schedule starts any more.
    Pause {
        /// When it ends by itself.
        until: Option<Timestamp>,
        /// Free text.
        reason: Option<String>,
    },
    /// A person ends the pause.
    Resume,
    /// A new definition was stored; [`apply`] takes that one.
    Update {
        /// The definition before, and its due times.
        previous: Box<(Job, Timeline)>,
    },
    /// A person deletes the job.
    Delete,
    /// A person wants a run now.
    Trigger {
        /// The id that the caller is told.
        run: RunId,
    },
    /// A person ends that run, or keeps it from starting.
    Cancel {
        /// Which run.
        run: RunId,
    },
}

/// Which of the legal transitions wrote a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransitionKind {
    /// Idle -> Prepared: a firing starts within the horizon.
    Claimed,
    /// Idle -> Idle: due times that passed have their records, and the next firing is beyond the horizon.
    Rearmed,
    /// Prepared -> Executing.
    Started,
    /// Idle or Prepared -> Executing: the database had lost the start.
    WrittenBack,
    /// The run executes in the table `concurrent_run`: the database had lost the start, and the row stands elsewhere.
    WrittenBackBeside,
    /// Prepared -> Idle: it is too late to start, and the misfire policy starts nothing in its place right now.
    Misfired,
    /// Prepared -> Idle (`allow`): the run executes in the table `concurrent_run`.
    StartedConcurrently,
    /// Prepared -> Idle: older runs live that it must not overlap.
    Deferred,
    /// Executing -> Idle: the run ended.
    Finished,
    /// Executing -> Idle: the run failed, and its next attempt is armed.
    Retried,
    /// Executing -> gone: the run ended and the job had been deleted.
    FinishedDeleted,
    /// Prepared or Executing -> Idle: never spawned.
    Reset,
    /// Prepared -> Idle: its session ended before the start.
    SweptUnstarted,
    /// Executing -> Idle: its session ended while it ran.
    SweptLost,
    /// The row is paused from now on.
    Paused,
    /// The pause has ended.
    Resumed,
    /// The definition changed.
    Updated,
    /// Idle or Prepared -> gone.
    Deleted,
    /// Executing stays until its run ends; then the row goes.
    DeletedLater,
    /// A manual run waits.
    Triggered,
    /// A manual run is recorded as skipped, because the job is running.
    TriggerSkipped,
    /// A manual run waits in the table `concurrent_run` (`allow`).
    TriggeredConcurrently,
    /// An executing run is asked to end.
    CancelRequested,
    /// A firing was cancelled before its start.
    CancelledUnstarted,
    /// Idle -> gone (concurrent runs only): it may have started in lost commits, so it is recorded as lost.
    GivenUp,
}

/// The row to write, and everything that belongs to the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The row; `None` to delete it.
    pub next: Option<JobState>,
    /// Which transition this is.
    pub kind: TransitionKind,
    /// New rows of history.
    pub records: Vec<RunRecord>,
    /// A new row for the table `concurrent_run` (`overlap = allow`).
    pub concurrent: Option<ConcurrentRun>,
}

/// The reason why an event does not apply to a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Nothing is due within the horizon.
    #[error("no firing of this job starts within the horizon")]
    NothingDue,
    /// A session holds the row already.
    #[error("the job is held by run {0}")]
    AlreadyHeld(RunId),
    /// The row does not hold that run for that session.
    #[error("the job does not hold run {0}")]
    NotHeld(RunId),
    /// It would start before its time.
    #[error("the run is not due before {0}")]
    Early(Timestamp),
    /// Another manual run waits already.
    #[error("run {0} was asked for before and has not started yet; wait for it or cancel it")]
    ManualWaiting(RunId),
    /// The job was deleted, and its last run has not ended yet.
    #[error("the job was deleted")]
    Deleted,
    /// The schedule has no future due time.
    #[error("the schedule has no due time to come")]
    NeverFires,
    /// The definition's schedule cannot be read.
    #[error("the stored schedule cannot be read: {0}")]
    BadSchedule(String),
}

/// Applies `event` to a job's row at the database's time `now`.
///
/// `job` is the current definition (at an update, the new one) and `timeline` has its due times. The result is a value:
/// the caller writes it in one transaction, guarded by the version of `state`.
///
/// ```
/// use carillon_domain::firing::{Event, JobState, Phase, TransitionKind, apply};
/// use carillon_domain::id::{JobId, RunId, SessionId};
/// use carillon_domain::job::Job;
/// use carillon_domain::time::Timestamp;
///
/// let at = Timestamp::from_secs;
/// let job = Job::new(("default", "report"), "@every 60s", "{}");
/// let timeline = job.timeline(at(0)).unwrap();
/// let idle = JobState::new(JobId(1), &timeline, 1, at(0)).unwrap();
///
/// // A session claims the firing of second 60, thirty seconds ahead of it, and starts it when it is due.
/// let session = SessionId::from_random(7);
/// let run = RunId::drawn(session, 1);
/// let claim = Event::Claim { session, run, until: at(60), losses_until: None };
/// let prepared = apply(&job, &timeline, &idle, &claim, at(30)).unwrap().next.unwrap();
/// assert!(matches!(prepared.phase, Phase::Prepared(held) if held.run == run));
///
/// let start = Event::Start { session, run };
/// let started = apply(&job, &timeline, &prepared, &start, at(60)).unwrap();
/// assert_eq!(started.kind, TransitionKind::Started);
///
/// // Nothing starts before its time.
/// assert!(apply(&job, &timeline, &prepared, &start, at(59)).is_err());
/// ```
///
/// # Errors
/// [`Rejected`] when the event does not apply. Then nothing must be written.
pub fn apply(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    event: &Event,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    // No timer ends a pause: the first event after its end does.
    let in_force = if let Event::Update { previous } = event { &previous.1 } else { timeline };
    let (mut transition, paused) = match pause::lapsed(in_force, state, now) {
        None => (decide(job, timeline, state, event, now)?, Vec::new()),
        Some((resumed, paused)) => {
            let decided = match decide(job, timeline, &resumed, event, now) {
                Err(Rejected::NothingDue) if matches!(event, Event::Claim { .. }) => {
                    Transition::to(resumed, TransitionKind::Rearmed)
                }
                decided => decided?,
            };
            (decided, paused)
        }
    };
    transition.records.splice(0..0, paused);
    if let Some(next) = &mut transition.next {
        next.last_end = transition.records.iter().fold(next.last_end, LastEnd::after);
        next.version = state.version.max(highest_lost(event)) + 1;
        if let Some(beside) = &mut transition.concurrent {
            beside.version = next.version;
        }
    }
    Ok(transition)
}

/// The highest version that the row may have had in lost commits. Tokens given out there must stay below all later ones.
/// The bound holds because versions begin at the database's clock in microseconds and grow more slowly than that clock.
fn highest_lost(event: &Event) -> u64 {
    match event {
        Event::Claim { losses_until: Some(until), .. } | Event::WriteBack { losses_until: until, .. }
            if enabled(Guard::VersionLift) =>
        {
            highest_version_until(*until)
        }
        _ => 0,
    }
}

/// The highest version that any row had by then.
pub(crate) fn highest_version_until(until: Timestamp) -> u64 {
    u64::try_from(until.as_ms()).unwrap_or(0).saturating_add(1).saturating_mul(1_000)
}

fn decide(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    event: &Event,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    match event {
        Event::Claim { session, run, until, losses_until } => {
            claim::claim(job, timeline, state, (*session, *run), (*until, *losses_until), now)
        }
        Event::Start { session, run } => start::start(job, timeline, state, (*session, *run), now),
        Event::Defer { session, run } => start::defer(job, timeline, state, (*session, *run), now),
        Event::Supersede => Err(Rejected::NothingDue),
        Event::Finish { session, run, ending } => finish::finish(job, timeline, state, (*session, *run), ending, now),
        Event::Reset { session, run } => recover::reset(timeline, state, (*session, *run), now),
        Event::Sweep { session } => recover::sweep(job, timeline, state, *session, now),
        Event::WriteBack { held, .. } => lost_commits::write_back(job, timeline, state, *held),
        Event::Reconcile { known } => lost_commits::reconcile(timeline, state, known, now),
        Event::Pause { until, reason } => pause::pause(state, *until, reason.clone(), now),
        Event::Resume => pause::resume(timeline, state, now),
        Event::Update { previous } => control::update(job, timeline, state, previous, now),
        Event::Delete => control::delete(timeline, state, now),
        Event::Trigger { run } => control::trigger(job, timeline, state, *run, now),
        Event::Cancel { run } => control::cancel(timeline, state, *run, now),
    }
}

impl Transition {
    fn to(next: JobState, kind: TransitionKind) -> Self {
        Self { next: Some(next), kind, records: Vec::new(), concurrent: None }
    }

    fn gone(kind: TransitionKind) -> Self {
        Self { next: None, kind, records: Vec::new(), concurrent: None }
    }

    fn with(mut self, records: impl IntoIterator<Item = RunRecord>) -> Self {
        self.records.extend(records);
        self
    }
}

/// The session and the run that an event names.
type Owner = (SessionId, RunId);

fn held_by(phase: &Phase, (session, run): Owner) -> Result<&Held, Rejected> {
    let mine = |held: &&Held| held.session == session || !enabled(Guard::Owner);
    let this = |held: &&Held| held.run == run || !enabled(Guard::RunId);
    phase.held().filter(mine).filter(this).ok_or(Rejected::NotHeld(run))
}
