//! A job's row: the held, the armed and the waiting firing, and the cursor up to which the schedule is complete.

use super::{LastEnd, Rejected, control};
use crate::guard::{Guard, enabled};
use crate::id::{JobId, RunId, SessionId};
use crate::job::{Job, Overlap};
use crate::policy::{self, Selection};
use crate::run::{Reason, RunRecord, Trigger};
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// One occurrence of a job that should start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Firing {
    /// The due time. With the job and the trigger it identifies the firing.
    pub due_at: Timestamp,
    /// When it should start: the due time, or the end of a backoff.
    pub start_at: Timestamp,
    /// Why it starts.
    pub trigger: Trigger,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Whether it starts however late it is, because the policies have decided already. True of retries, reruns, manual
    /// runs, and firings that a policy delayed or selected.
    pub misfire_exempt: bool,
}

impl Firing {
    /// A due time of the schedule. The misfire policy has not decided on it.
    pub const fn regular(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Schedule, attempt: 1, misfire_exempt: false }
    }

    /// A due time that was missed and that the misfire policy runs.
    pub const fn misfired(due_at: Timestamp) -> Self {
        Self { due_at, start_at: due_at, trigger: Trigger::Misfire, attempt: 1, misfire_exempt: true }
    }

    /// A due time that waited for the previous run to end. It is late, but not a misfire.
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

    /// Whether it is an attempt of the firing with this due time and trigger. A manual run is a firing of its own, whatever the schedule says.
    /// Misfires, retries and reruns are attempts of the schedule's firing.
    pub fn is_attempt_of(&self, due_at: Timestamp, trigger: Trigger) -> bool {
        self.due_at == due_at && (self.trigger == Trigger::Manual) == (trigger == Trigger::Manual)
    }
}

/// A firing that a session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Held {
    /// Which firing.
    pub firing: Firing,
    /// The id of its run, drawn before the claim was sent.
    pub run: RunId,
    /// The session that holds it.
    pub session: SessionId,
    /// When it started; `None` while Prepared.
    pub started_at: Option<Timestamp>,
    /// The run's fencing token: the version of the job's row at the start, 0 while Prepared.
    pub fencing_token: u64,
}

/// The state of a row. A claim moves it on from Idle, the holder's start from Prepared, and the holder's finish from
/// Executing. Where the holder cannot, recovery or a sweep does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// No session holds it.
    Idle,
    /// Claimed, not started.
    Prepared(Held),
    /// Started, not finished.
    Executing(Held),
}

impl Held {
    /// The firing as it waits after a release. It keeps its run id, which a caller may know.
    pub(super) const fn waiting(&self) -> Waiting {
        Waiting { run: Some(self.run), firing: self.firing }
    }
}

impl Phase {
    /// The held firing, if there is one.
    pub const fn held(&self) -> Option<&Held> {
        match self {
            Phase::Idle => None,
            Phase::Prepared(held) | Phase::Executing(held) => Some(held),
        }
    }

    /// The name as stores keep it and users read it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Prepared(_) => "prepared",
            Phase::Executing(_) => "executing",
        }
    }
}

/// A firing that waits outside the schedule and is not held: a manual run, or the next attempt of a concurrent run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Waiting {
    /// The id that the caller was told; `None` for a retry, whose claim draws a new one.
    pub run: Option<RunId>,
    /// The waiting firing.
    pub firing: Firing,
}

/// A pause. Due times during it are recorded and never fired.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pause {
    /// When it began.
    pub since: Timestamp,
    /// When it ends by itself.
    pub until: Option<Timestamp>,
    /// The reason that the person gave.
    pub reason: Option<String>,
}

/// Who asked an executing run to end.
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

/// A job's row: everything about the job that changes while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobState {
    /// The job.
    pub id: JobId,
    /// Grows with every write, and guards every write against a row that has changed since it was read. It starts at the
    /// database's time in microseconds, so that fencing tokens still grow when a deleted name is used again.
    pub version: u64,
    /// The generation of the definition, 1 for the first.
    pub generation: u64,
    /// Where `@every` counts from: the job's creation, or the last change of its timing.
    pub anchor_at: Timestamp,
    /// Every due time up to here has run, has a record, or is held, armed or part of the backlog.
    pub cursor: Timestamp,
    /// Whether a session holds the row, and which firing.
    pub phase: Phase,
    /// The next firing of the schedule; `None` while that firing is held, and once the schedule has ended.
    pub armed: Option<Firing>,
    /// A manual run that waits.
    pub manual: Option<Waiting>,
    /// The due time of the latest manual run. The next one gets a later one, so that no two share a key.
    pub last_manual_at: Option<Timestamp>,
    /// Due times after the armed one and up to here are a backlog that `catch_up` runs.
    pub catch_up_until: Option<Timestamp>,
    /// Set while paused.
    pub pause: Option<Pause>,
    /// Set when the executing run must end early.
    pub cancel: Option<CancelledBy>,
    /// Deleted while Executing: the row goes when the run ends.
    pub deleted: bool,
    /// How the last run ended; `None` before the first one.
    pub last_end: Option<LastEnd>,
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
            last_end: None,
        })
    }

    /// When the row may be claimed; stores index it. `None` exactly while the row is held, so that no claim reads it.
    /// [`Timestamp::MAX`] when no firing is to come: the job is paused without end, or its schedule has ended.
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

    /// The next due time on the schedule, as users see it: that of the held firing until it has started.
    pub fn next_due_at(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Prepared(held) if held.firing.trigger != Trigger::Manual => Some(held.firing.due_at),
            _ => self.armed.map(|armed| armed.due_at),
        }
    }

    /// When a newer firing replaces the executing run, or has replaced it; `None` unless `overlap = replace`. Due times
    /// of a pause replace no run. During a pause this is the next due time after `now`, because the pause may have
    /// ended by then.
    pub fn replace_at(&self, job: &Job, timeline: &Timeline, now: Timestamp) -> Option<Timestamp> {
        let paused = |pause: &Pause| pause.until.map_or(now, |until| now.min(until - Timestamp::TICK));
        let dealt_with = self.pause.as_ref().map_or(self.cursor, |pause| self.cursor.max(paused(pause)));
        let replaces = job.overlap == Overlap::Replace && !self.deleted;
        replaces.then(|| timeline.next_after(dealt_with))?
    }

    /// Whether the schedule has ended, and no firing is held or waits.
    pub fn is_completed(&self) -> bool {
        self.armed.is_none() && self.manual.is_none() && self.phase == Phase::Idle
    }

    /// Whether a firing of the schedule waits for its next attempt. Backoff counts as running, except during a pause.
    pub(super) fn in_backoff(&self) -> bool {
        self.pause.is_none() && self.armed.is_some_and(|armed| armed.attempt > 1)
    }

    /// Adopts what a policy has selected. The cursor never goes back.
    pub(super) fn take(&mut self, selection: Selection) {
        self.armed = selection.armed;
        self.cursor = if enabled(Guard::CursorForward) { selection.cursor.max(self.cursor) } else { selection.cursor };
        self.catch_up_until = selection.catch_up_until;
    }

    /// Arms the next firing after `due_at`: from the backlog if it has one, otherwise from the schedule.
    pub(super) fn arm_after(&mut self, timeline: &Timeline, due_at: Timestamp) {
        match policy::next_of_backlog(timeline, due_at, self.catch_up_until) {
            Some(firing) => self.armed = Some(firing),
            None => self.take(policy::next_regular(timeline, self.cursor.max(due_at))),
        }
    }

    /// Releases a held firing: it waits again where the claim took it from. Only one manual run may wait, so a later one
    /// that waits there by now is recorded as an overlap, which this returns.
    #[must_use]
    pub(super) fn release(&mut self, held: &Held, now: Timestamp) -> Option<RunRecord> {
        self.phase = Phase::Idle;
        if held.firing.trigger != Trigger::Manual {
            // Later due times may have run or have a record already, other than as its backlog. Then it forms no batch
            // with them and starts however late. Otherwise the policy decides again on a misfire run, with all that
            // passed since.
            let later_is_complete = self.cursor > held.firing.due_at && self.catch_up_until != Some(self.cursor);
            let first_misfire_run = held.firing.trigger == Trigger::Misfire && held.firing.attempt == 1;
            let misfire_exempt = later_is_complete || (held.firing.misfire_exempt && !first_misfire_run);
            self.armed = Some(Firing { misfire_exempt, ..held.firing });
            return None;
        }
        let later = self.manual.replace(held.waiting());
        later.and_then(|later| control::waiting_record(self.id, later, Reason::Overlap, now))
    }
}
