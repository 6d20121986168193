//! The job state machine: Idle -> Prepared -> Executing -> Idle (go-crontab), each rule once.
//!
//! [`apply`] takes the definition, the row as it stands, one event and the time, and answers the row as it must be
//! written, or why the event does not apply. Stores call it inside their transaction; they add guards on the version that
//! was read, never a rule of their own. Each transition is one function with a [`Why`].
//!
//! A row knows three firings at most: the one it *holds* (Prepared or Executing), the one that is *armed* (next on the
//! schedule) and a *manual* one that waits. Everything on the schedule up to `cursor` has run, is recorded, or is one of
//! those three.

mod active;
mod claim;
mod control;
mod finish;
mod pause;
mod recover;
mod start;

pub use active::{ActiveRow, ActiveTransition, FiringKey, apply_active};

use crate::id::{JobId, RunId, SessionId};
use crate::job::Job;
use crate::policy::{self, Selection};
use crate::run::{Ending, Reason, RunRecord, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// One due occurrence on its way to a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Firing {
    /// The due time, which with the job identifies it.
    pub due_at: Timestamp,
    /// When it should start: the due time, or the end of a backoff.
    pub start_at: Timestamp,
    /// What made it come up.
    pub trigger: Trigger,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The policies have spoken: it starts however late. True of retries, reruns, delayed and made-good firings and of
    /// those that a person asked for.
    pub settled: bool,
}

impl Firing {
    /// A due time of the schedule, still subject to the misfire policy.
    pub const fn regular(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Schedule, attempt: 1, settled: false }
    }

    /// A due time that the misfire policy makes good.
    pub const fn made_good(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Misfire, attempt: 1, settled: true }
    }

    /// A due time that waited for the previous run to end: not a misfire.
    pub const fn waited(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Schedule, attempt: 1, settled: true }
    }

    /// A run that a person asked for at `due_at`.
    pub const fn manual(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Manual, attempt: 1, settled: true }
    }

    /// The next attempt of the same firing, not before `start_at`.
    pub const fn again(self, start_at: Timestamp) -> Self {
        Self { start_at, attempt: self.attempt + 1, settled: true, ..self }
    }
}

/// A firing that a session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// What is held.
    pub firing: Firing,
    /// The run that starts it, drawn before the claim was sent.
    pub run: RunId,
    /// Whose it is.
    pub session: SessionId,
    /// When it was started; `None` while Prepared.
    pub started_at: Option<Timestamp>,
    /// The token that the run carries; the row's version at the start, 0 while Prepared.
    pub fencing_token: u64,
}

/// Where a row stands. Who moves it on: the scheduler (Idle), the holder's start (Prepared), the holder's finish
/// (Executing); recovery or a sweep when the holder cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nobody holds it.
    Idle,
    /// Claimed, not started.
    Prepared(Held),
    /// Started, not finished.
    Executing(Held),
}

impl Held {
    /// As it waits when it goes back unstarted.
    const fn waiting(&self) -> Waiting {
        Waiting { run: Some(self.run), firing: self.firing }
    }
}

impl Phase {
    /// What is held, if anything is.
    pub const fn held(&self) -> Option<&Held> {
        match self {
            Phase::Idle => None,
            Phase::Prepared(held) | Phase::Executing(held) => Some(held),
        }
    }

    /// The name in SPEC section 3.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Prepared(_) => "prepared",
            Phase::Executing(_) => "executing",
        }
    }
}

/// A firing that waits outside the schedule and that nobody holds yet: a manual run, or a further attempt beside the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The id that the caller was told; a further attempt draws a new one.
    pub run: Option<RunId>,
    /// What waits.
    pub firing: Firing,
}

/// A pause. Due times during it are recorded, never fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// When it began.
    pub since: Timestamp,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// What the person who paused it said.
    pub reason: Option<String>,
}

/// Who asked a running run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelledBy {
    /// A person.
    Person,
    /// A newer firing (`overlap = replace`).
    NewerFiring,
}

impl CancelledBy {
    /// The reason that history keeps.
    pub const fn reason(self) -> Reason {
        match self {
            CancelledBy::Person => Reason::Cancelled,
            CancelledBy::NewerFiring => Reason::Replaced,
        }
    }
}

/// The hot row of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// Whose row it is.
    pub id: JobId,
    /// Grows by one with every write; every write is guarded by the one that was read. Starts at the database's
    /// microseconds, so that a fencing token never goes back when a name is used again.
    pub version: u64,
    /// The definition's generation, 1 for the first.
    pub generation: u64,
    /// Where `@every` counts from: when the job was created or its timing last changed.
    pub anchor_at: Timestamp,
    /// Every due time up to here is dealt with.
    pub cursor: Timestamp,
    /// Who holds it.
    pub phase: Phase,
    /// Next on the schedule; `None` while that very firing is held, and when the schedule has ended.
    pub armed: Option<Firing>,
    /// Asked for by a person and waiting.
    pub manual: Option<Waiting>,
    /// The due time of the latest manual run: the next one gets a later one.
    pub last_manual_at: Option<Timestamp>,
    /// Due times up to here are a backlog that `catch_up` works off.
    pub catch_up_until: Option<Timestamp>,
    /// Set while paused.
    pub pause: Option<Pause>,
    /// Set when the running run is to end early.
    pub cancel: Option<CancelledBy>,
    /// Deleted while Executing: the row goes when the run ends.
    pub deleted: bool,
}

impl JobState {
    /// The row of a new job.
    ///
    /// # Errors
    /// [`Rejected::NeverFires`] when the schedule has no due time after `now`.
    pub fn new(id: JobId, timeline: &Timeline, version: u64, now: Timestamp) -> Result<Self, Rejected> {
        let armed = timeline.next_after(now).map(Firing::regular).ok_or(Rejected::NeverFires)?;
        Ok(Self {
            id,
            version,
            generation: 1,
            anchor_at: now,
            cursor: now,
            phase: Phase::Idle,
            armed: Some(armed),
            manual: None,
            last_manual_at: None,
            catch_up_until: None,
            pause: None,
            cancel: None,
            deleted: false,
        })
    }

    /// When the row may be claimed, as stores index it: `None` exactly while it is held, [`Timestamp::MAX`] when nothing
    /// is to come (paused without end, schedule over).
    pub fn claim_at(&self) -> Option<Timestamp> {
        if self.phase.held().is_some() {
            return None;
        }
        let scheduled = match &self.pause {
            None => self.armed.map(|armed| armed.start_at),
            Some(pause) => pause.until,
        };
        let manual = self.manual.filter(|_| !self.in_backoff()).map(|manual| manual.firing.start_at);
        Some(scheduled.into_iter().chain(manual).min().unwrap_or(Timestamp::MAX))
    }

    /// The next due time on the schedule, as a person sees it: that of the held firing until it has started.
    pub fn next_due_at(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Prepared(held) if held.firing.trigger != Trigger::Manual => Some(held.firing.due_at),
            _ => self.armed.map(|armed| armed.due_at),
        }
    }

    /// Whether the schedule has ended and nothing is held or waits.
    pub fn is_completed(&self) -> bool {
        self.armed.is_none() && self.manual.is_none() && self.phase == Phase::Idle
    }

    /// Whether a further attempt of a firing of the schedule is to come; that counts as running. A pause drops it.
    fn in_backoff(&self) -> bool {
        self.pause.is_none() && self.armed.is_some_and(|armed| armed.attempt > 1)
    }

    fn take(&mut self, selection: Selection) {
        self.armed = selection.armed;
        self.cursor = selection.cursor.max(self.cursor);
        self.catch_up_until = selection.catch_up_until;
    }

    /// Arms what follows the firing of `due_at`, nothing having been held up: the backlog first, then the schedule.
    fn arm_after(&mut self, timeline: &Timeline, due_at: Timestamp) {
        match policy::next_of_backlog(timeline, due_at, self.catch_up_until) {
            Some(firing) => self.armed = Some(firing),
            None => self.take(policy::next_regular(timeline, self.cursor.max(due_at))),
        }
    }

    /// Puts a held firing back to where the claim took it from. A manual run that waits there has lost its place: only one
    /// waits, and that is the earlier.
    #[must_use]
    fn put_back(&mut self, held: &Held, now: Timestamp) -> Option<RunRecord> {
        self.phase = Phase::Idle;
        if held.firing.trigger != Trigger::Manual {
            // Where due times after it have been dealt with, it is part of no batch any more and starts however late.
            let settled = held.firing.settled || self.cursor > held.firing.due_at;
            self.armed = Some(Firing { settled, ..held.firing });
            return None;
        }
        let later = self.manual.replace(held.waiting());
        later.and_then(|later| control::waiting_record(self.id, later, Reason::Overlap, now))
    }
}

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
    },
    /// The holder starts what it prepared.
    Start {
        /// Who starts.
        session: SessionId,
        /// Which run.
        run: RunId,
    },
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
pub enum Why {
    /// Idle -> Prepared: it comes up within the horizon.
    Claimed,
    /// Idle -> Idle: the due times that passed were dealt with, nothing is due yet.
    Rearmed,
    /// Prepared -> Executing.
    Started,
    /// Prepared -> Idle: it came up too late to start as it is; the next claim applies the misfire policy.
    Misfired,
    /// Prepared -> Idle (`allow`): the run lives on in the active table.
    StartedBeside,
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
    /// A manual run goes to the active table (`allow`).
    TriggeredBeside,
    /// The running run is asked to end.
    CancelRequested,
    /// It will not start.
    CancelledUnstarted,
}

/// The row as it must be written, and what goes with it in the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The row; `None` when it goes.
    pub next: Option<JobState>,
    /// Which transition this is.
    pub why: Why,
    /// History rows.
    pub records: Vec<RunRecord>,
    /// A row for the active table (`overlap = allow`).
    pub active: Option<ActiveRow>,
}

/// Why an event does not apply to a row as it stands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// Nothing is due within the horizon.
    #[error("nothing of this job comes up within the horizon")]
    NothingDue,
    /// Somebody holds it already.
    #[error("the job is held by run {0}")]
    Held(RunId),
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
                    Transition::to(resumed, Why::Rearmed)
                }
                decided => decided?,
            };
            (decided, paused)
        }
    };
    transition.records.splice(0..0, paused);
    if let Some(next) = &mut transition.next {
        next.version = state.version + 1;
    }
    Ok(transition)
}

fn decide(
    job: &Job,
    timeline: &Timeline,
    state: &JobState,
    event: &Event,
    now: Timestamp,
) -> Result<Transition, Rejected> {
    match event {
        Event::Claim { session, run, until } => claim::claim(job, timeline, state, (*session, *run), *until, now),
        Event::Start { session, run } => start::start(job, timeline, state, (*session, *run), now),
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
    fn to(next: JobState, why: Why) -> Self {
        Self { next: Some(next), why, records: Vec::new(), active: None }
    }

    fn gone(why: Why) -> Self {
        Self { next: None, why, records: Vec::new(), active: None }
    }

    fn with(mut self, records: impl IntoIterator<Item = RunRecord>) -> Self {
        self.records.extend(records);
        self
    }
}

/// Whose run an event speaks of.
type Owner = (SessionId, RunId);

fn held_by(phase: &Phase, (session, run): Owner) -> Result<&Held, Rejected> {
    phase.held().filter(|held| held.session == session && held.run == run).ok_or(Rejected::NotHeld(run))
}
