//! The job state machine: Idle -> Prepared -> Executing -> Idle (go-crontab), each rule once.
//!
//! [`apply`] takes the definition, the row as it stands, one event and the time, and answers the row as it must be
//! written, or why the event does not apply. Stores call it inside their transaction; they add guards on the version that
//! was read, never a rule of their own. Each transition is one function with a [`TransitionKind`].
//!
//! A row knows three firings at most: the one it *holds* (Prepared or Executing), the one that is *armed* (next on the
//! schedule) and a *manual* one that waits. Everything on the schedule up to `cursor` has run, is recorded, or is one of
//! those three.

mod claim;
mod concurrent;
mod control;
mod diagram;
mod finish;
mod lost_commits;
mod pause;
mod recover;
mod start;
mod state;

pub use concurrent::{ConcurrentRun, ConcurrentTransition, FiringKey, apply_concurrent, start_concurrent};
pub use diagram::states_as_mermaid;
pub use state::{CancelledBy, Firing, Held, JobState, Pause, Phase, Waiting};

use crate::guard::{Guard, enabled};
use crate::id::{RunId, SessionId};
use crate::job::Job;
use crate::run::{Ending, RunRecord};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// What may happen to a row.
#[derive(Debug, Clone)]
pub enum Event {
    /// The scheduler takes what comes up until `until`. A manual run keeps the id that its caller was told.
    Claim {
        /// Who claims.
        session: SessionId,
        /// The id for the run, unless the firing has one.
        run: RunId,
        /// The claim horizon.
        until: Timestamp,
        /// The end of the newest time of which the database lost commits, if it ever did ([`crate::lost_commits`]).
        losses_until: Option<Timestamp>,
    },
    /// The holder starts what it prepared. Of a run beside the row, see [`start_concurrent`].
    Start {
        /// Who starts.
        session: SessionId,
        /// Which run.
        run: RunId,
    },
    /// The holder would start what it prepared, but runs of the job live that it must not overlap, from a time when the job
    /// allowed them: for a row of its own any run beside it, for a run beside it any other that executes.
    Defer {
        /// Who would start.
        session: SessionId,
        /// Which run.
        run: RunId,
    },
    /// A newer firing takes the place of what runs beside the row (`overlap = replace`).
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
    /// The holder gives back what it never spawned: drain, recovery, a start that is not to happen.
    Reset {
        /// Who held it.
        session: SessionId,
        /// Which run.
        run: RunId,
    },
    /// The holder's session is over: it was fenced, and its children are dead.
    Sweep {
        /// Whose session is over.
        session: SessionId,
    },
    /// Stop starting it.
    Pause {
        /// When it ends by itself.
        until: Option<Timestamp>,
        /// Free text.
        reason: Option<String>,
    },
    /// Start it again.
    Resume,
    /// A new definition was stored; `apply` gets the new one.
    Update {
        /// The definition before, and its due times.
        previous: Box<(Job, Timeline)>,
    },
    /// Remove it.
    Delete,
    /// A person wants a run now.
    Trigger {
        /// The id that the caller is told.
        run: RunId,
    },
    /// End that run, or do not start it.
    Cancel {
        /// Which run.
        run: RunId,
    },
}

/// Why a row was written: one for each legal transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransitionKind {
    /// Idle -> Prepared: it comes up within the horizon.
    Claimed,
    /// Idle -> Idle: the due times that passed were dealt with, nothing is due yet.
    Rearmed,
    /// Prepared -> Executing.
    Started,
    /// Prepared -> Idle: it came up too late to start as it is, and the misfire policy makes nothing good at once.
    Misfired,
    /// Prepared -> Idle (`allow`): the run lives on in the table `concurrent_run`.
    StartedConcurrently,
    /// Prepared -> Idle: runs that it must not overlap live beside it.
    Deferred,
    /// Executing -> Idle: the run ended.
    Finished,
    /// Executing -> Idle: the run failed and is tried again.
    Retried,
    /// Executing -> gone: the run ended and the job had been deleted.
    FinishedDeleted,
    /// Prepared or Executing -> Idle: never spawned.
    Reset,
    /// Prepared -> Idle: its session ended before the start.
    SweptUnstarted,
    /// Executing -> Idle: its session ended while it ran.
    SweptLost,
    /// The pause is set.
    Paused,
    /// The pause is over.
    Resumed,
    /// The definition changed.
    Updated,
    /// Idle or Prepared -> gone.
    Deleted,
    /// Executing stays until the run ends.
    DeletedLater,
    /// A manual run waits.
    Triggered,
    /// A manual run is recorded as skipped: the job is running.
    TriggerSkipped,
    /// A manual run goes to the table `concurrent_run` (`allow`).
    TriggeredConcurrently,
    /// The running run is asked to end.
    CancelRequested,
    /// It will not start.
    CancelledUnstarted,
    /// Idle -> gone (beside the job's row): it may have started in commits that were lost.
    GivenUp,
}

/// The row as it must be written, and what goes with it in the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The row; `None` when it goes.
    pub next: Option<JobState>,
    /// Which transition this is.
    pub kind: TransitionKind,
    /// History rows.
    pub records: Vec<RunRecord>,
    /// A row for the table `concurrent_run` (`overlap = allow`).
    pub concurrent: Option<ConcurrentRun>,
}

/// Why an event does not apply to a row as it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Nothing is due within the horizon.
    #[error("nothing of this job comes up within the horizon")]
    NothingDue,
    /// Somebody holds it already.
    #[error("the job is held by run {0}")]
    AlreadyHeld(RunId),
    /// The row does not carry that run, or not for that session.
    #[error("the job does not hold run {0}")]
    NotHeld(RunId),
    /// It would start before its time.
    #[error("the run is not due before {0}")]
    Early(Timestamp),
    /// A manual run waits already.
    #[error("run {0} was asked for before and has not started yet; wait for it or cancel it")]
    ManualWaiting(RunId),
    /// The job was deleted; its last run is still ending.
    #[error("the job was deleted")]
    Deleted,
    /// The schedule has no due time to come.
    #[error("the schedule has no due time to come")]
    NeverFires,
    /// The definition's schedule cannot be read.
    #[error("the stored schedule cannot be read: {0}")]
    BadSchedule(String),
}

/// Applies `event` to a row. `job` is the definition as it stands (after an update, the new one), `timeline` its due
/// times.
///
/// # Errors
/// [`Rejected`] when the event does not apply; nothing is to be written then.
pub fn apply(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    event: &Event,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    // A pause whose end has come is over, whoever looks first.
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
        next.version = state.version.max(highest_lost(event)) + 1;
    }
    Ok(transition)
}

/// The highest version that the row may have had in commits that the database lost: versions begin at its clock in
/// microseconds and grow more slowly than that. Tokens that were given out then must stay smaller than those to come.
fn highest_lost(event: &Event) -> u64 {
    match event {
        Event::Claim { losses_until: Some(until), .. } if enabled(Guard::VersionLift) => {
            u64::try_from(until.as_ms()).unwrap_or(0).saturating_add(1).saturating_mul(1_000)
        }
        _ => 0,
    }
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

/// Whose run an event speaks of.
type Owner = (SessionId, RunId);

fn held_by(phase: &Phase, (session, run): Owner) -> Result<&Held, Rejected> {
    let mine = |held: &&Held| held.session == session || !enabled(Guard::Owner);
    let this = |held: &&Held| held.run == run || !enabled(Guard::RunId);
    phase.held().filter(mine).filter(this).ok_or(Rejected::NotHeld(run))
}
