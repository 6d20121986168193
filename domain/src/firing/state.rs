//! What a job's row says: what is held, what is armed, what waits, and until where the schedule has been dealt with.

use std::time::Duration;

use super::{Rejected, control};
use crate::guard::{Guard, enabled};
use crate::id::{JobId, RunId, SessionId};
use crate::job::{Job, Overlap};
use crate::policy::{self, Selection};
use crate::run::{Reason, RunRecord, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

const INSTANT: Duration = Duration::from_millis(1);

/// One due occurrence on its way to a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    pub misfire_exempt: bool,
}

impl Firing {
    /// A due time of the schedule, still subject to the misfire policy.
    pub const fn regular(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Schedule, attempt: 1, misfire_exempt: false }
    }

    /// A due time that the misfire policy makes good.
    pub const fn misfired(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Misfire, attempt: 1, misfire_exempt: true }
    }

    /// A due time that waited for the previous run to end: not a misfire.
    pub const fn delayed(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Schedule, attempt: 1, misfire_exempt: true }
    }

    /// A run that a person asked for at `due_at`.
    pub const fn manual(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Manual, attempt: 1, misfire_exempt: true }
    }

    /// The next attempt of the same firing, not before `start_at`.
    pub const fn next_attempt(self, start_at: Timestamp) -> Self {
        Self { start_at, attempt: self.attempt + 1, misfire_exempt: true, ..self }
    }
}

/// A firing that a session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    pub(super) const fn waiting(&self) -> Waiting {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// The id that the caller was told; a further attempt draws a new one.
    pub run: Option<RunId>,
    /// What waits.
    pub firing: Firing,
}

/// A pause. Due times during it are recorded, never fired.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pause {
    /// When it began.
    pub since: Timestamp,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// What the person who paused it said.
    pub reason: Option<String>,
}

/// Who asked a running run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
        if self.phase.held().is_some() && enabled(Guard::HeldNotDue) {
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

    /// With `overlap = replace`: when a newer firing takes the place of what runs, or has taken it. Due times of a pause take
    /// nobody's place; while one lasts this is the next after `now`, in case that it has ended by then.
    pub fn replace_at(&self, job: &Job, timeline: &Timeline, now: Timestamp) -> Option<Timestamp> {
        let paused = |pause: &Pause| pause.until.map_or(now, |until| now.min(until - INSTANT));
        let dealt_with = self.pause.as_ref().map_or(self.cursor, |pause| self.cursor.max(paused(pause)));
        let replaces = job.overlap == Overlap::Replace && !self.deleted;
        replaces.then(|| timeline.next_after(dealt_with))?
    }

    /// Whether the schedule has ended and nothing is held or waits.
    pub fn is_completed(&self) -> bool {
        self.armed.is_none() && self.manual.is_none() && self.phase == Phase::Idle
    }

    /// Whether a further attempt of a firing of the schedule is to come; that counts as running. A pause drops it.
    pub(super) fn in_backoff(&self) -> bool {
        self.pause.is_none() && self.armed.is_some_and(|armed| armed.attempt > 1)
    }

    pub(super) fn take(&mut self, selection: Selection) {
        self.armed = selection.armed;
        self.cursor = if enabled(Guard::CursorForward) { selection.cursor.max(self.cursor) } else { selection.cursor };
        self.catch_up_until = selection.catch_up_until;
    }

    /// Arms what follows the firing of `due_at`, nothing having been held up: the backlog first, then the schedule.
    pub(super) fn arm_after(&mut self, timeline: &Timeline, due_at: Timestamp) {
        match policy::next_of_backlog(timeline, due_at, self.catch_up_until) {
            Some(firing) => self.armed = Some(firing),
            None => self.take(policy::next_regular(timeline, self.cursor.max(due_at))),
        }
    }

    /// Puts a held firing back to where the claim took it from. A manual run that waits there has lost its place: only one
    /// waits, and that is the earlier.
    #[must_use]
    pub(super) fn put_back(&mut self, held: &Held, now: Timestamp) -> Option<RunRecord> {
        self.phase = Phase::Idle;
        if held.firing.trigger != Trigger::Manual {
            // Where due times after it have been dealt with otherwise than as its backlog, it is part of no batch any more
            // and starts however late. What was to be made good is looked at again with what passed since.
            let dealt_with_after = self.cursor > held.firing.due_at && self.catch_up_until != Some(self.cursor);
            let made_good = held.firing.trigger == Trigger::Misfire && held.firing.attempt == 1;
            let misfire_exempt = dealt_with_after || (held.firing.misfire_exempt && !made_good);
            self.armed = Some(Firing { misfire_exempt, ..held.firing });
            return None;
        }
        let later = self.manual.replace(held.waiting());
        later.and_then(|later| control::waiting_record(self.id, later, Reason::Overlap, now))
    }
}
