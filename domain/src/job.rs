//! The definition of a job: what a user stores (SPEC section 3).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::schedule::{Dst, Options, Schedule, ScheduleError, Timeline, jitter_offset};
use crate::time::Timestamp;

/// A stored definition. Pausing is not part of it: a pause belongs to the job's state and survives a new definition.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Job {
    /// 1-128 of `[A-Za-z0-9._-]`.
    pub namespace: String,
    /// 1-128 of `[A-Za-z0-9._-]`, unique among the living jobs of its namespace.
    pub name: String,
    /// The schedule as the user wrote it.
    pub schedule: String,
    /// An IANA zone name; UTC when neither this nor a `CRON_TZ=` prefix is given.
    pub timezone: Option<String>,
    /// What to do with the two nights a year in which the clock is changed.
    pub dst: Dst,
    /// Every due time is shifted by one stable offset between zero and this.
    pub jitter: Duration,
    /// Nothing is due before this.
    pub start_at: Option<Timestamp>,
    /// Nothing is due after this.
    pub end_at: Option<Timestamp>,
    /// Which executor runs it.
    pub executor: String,
    /// The executor's parameters: JSON text, opaque to the domain.
    pub params: String,
    /// What happens when it comes due while its previous run lives.
    pub overlap: Overlap,
    /// What happens to due times that passed unstarted.
    pub misfire: Misfire,
    /// A run that takes longer is ended as `timed_out`.
    pub timeout: Option<Duration>,
    /// How long after the polite end a run is killed.
    pub kill_grace: Duration,
    /// Further attempts of a firing that failed.
    pub retry: Retry,
    /// What happens to a run whose node died.
    pub on_lost: OnLost,
    /// Free labels for finding jobs.
    pub labels: BTreeMap<String, String>,
}

impl Job {
    /// `kill_grace` where the user gave none (SPEC section 3).
    pub const DEFAULT_KILL_GRACE: Duration = Duration::from_secs(10);

    /// A job of the three things that are required, everything else as SPEC section 3 has it by default.
    pub fn new(key: (&str, &str), schedule: &str, params: &str) -> Self {
        let (namespace, name) = key;
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            schedule: schedule.to_owned(),
            timezone: None,
            dst: Dst::default(),
            jitter: Duration::ZERO,
            start_at: None,
            end_at: None,
            executor: "shell".to_owned(),
            params: params.to_owned(),
            overlap: Overlap::default(),
            misfire: Misfire::default(),
            timeout: None,
            kill_grace: Self::DEFAULT_KILL_GRACE,
            retry: Retry::default(),
            on_lost: OnLost::default(),
            labels: BTreeMap::new(),
        }
    }

    /// `namespace/name`, which hashes, spreads and messages are made from.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The job's due times; `@every` counts from `anchor`.
    ///
    /// # Errors
    /// [`ScheduleError`] when the schedule, or its zone, is not one.
    pub fn timeline(&self, anchor: Timestamp) -> Result<Timeline, ScheduleError> {
        let key = self.key();
        let options = Options { timezone: self.timezone.as_deref(), dst: self.dst, hash_key: &key };
        let schedule = Schedule::parse(&self.schedule, &options)?;
        Ok(Timeline {
            start_at: self.start_at,
            end_at: self.end_at,
            jitter: jitter_offset(&key, self.jitter),
            ..Timeline::new(schedule, anchor)
        })
    }

    /// Whether the due times of the two definitions differ: only then are they computed anew (SPEC section 3).
    pub fn timing_differs(&self, other: &Job) -> bool {
        self.schedule != other.schedule
            || self.timezone != other.timezone
            || self.dst != other.dst
            || self.jitter != other.jitter
            || self.start_at != other.start_at
            || self.end_at != other.end_at
    }
}

/// What happens when a firing comes due while the previous run lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Overlap {
    /// The firing is recorded as skipped.
    #[default]
    Skip,
    /// One firing waits for the end; further ones are recorded as skipped.
    Delay,
    /// The running one is cancelled, the newest firing starts.
    Replace,
    /// Both run.
    Allow,
}

impl Overlap {
    /// Every value, in the order of SPEC.
    pub const ALL: [Overlap; 4] = [Overlap::Skip, Overlap::Delay, Overlap::Replace, Overlap::Allow];

    /// The name in SPEC section 3.
    pub const fn as_str(self) -> &'static str {
        match self {
            Overlap::Skip => "skip",
            Overlap::Delay => "delay",
            Overlap::Replace => "replace",
            Overlap::Allow => "allow",
        }
    }
}

/// How late a firing may start, and what becomes of those that are later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Misfire {
    /// What becomes of misfires.
    pub policy: MisfirePolicy,
    /// A due time later than this is a misfire.
    pub grace: Duration,
}

impl Default for Misfire {
    fn default() -> Self {
        Self { policy: MisfirePolicy::FireOnce, grace: Duration::from_secs(30) }
    }
}

/// What becomes of due times that passed unstarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum MisfirePolicy {
    /// They are recorded as skipped.
    Skip,
    /// One run carries the latest of them; the others are recorded as skipped.
    #[default]
    FireOnce,
    /// The newest [`CATCH_UP_LIMIT`] run, oldest first, one at a time; older ones are recorded as skipped.
    CatchUp,
}

/// How many due times `catch_up` makes good (SPEC section 3).
pub const CATCH_UP_LIMIT: usize = 100;

impl MisfirePolicy {
    /// Every value, in the order of SPEC.
    pub const ALL: [MisfirePolicy; 3] = [MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::CatchUp];

    /// The name in SPEC section 3.
    pub const fn as_str(self) -> &'static str {
        match self {
            MisfirePolicy::Skip => "skip",
            MisfirePolicy::FireOnce => "fire_once",
            MisfirePolicy::CatchUp => "catch_up",
        }
    }
}

/// Attempts of the same firing, with exponential backoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retry {
    /// How many attempts in all; 1 is "no retry".
    pub max_attempts: u32,
    /// The wait before the second attempt; each further one is twice as long.
    pub backoff: Duration,
    /// No wait is longer than this.
    pub max_backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 1, backoff: Duration::from_secs(10), max_backoff: Duration::from_secs(300) }
    }
}

impl Retry {
    /// The wait after the `attempt`-th attempt failed, or `None` when that was the last.
    pub fn wait_after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.max_attempts {
            return None;
        }
        let doublings = attempt.saturating_sub(1).min(31);
        Some(self.backoff.saturating_mul(1 << doublings).min(self.max_backoff))
    }
}

/// What happens to a run whose node died or was fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum OnLost {
    /// It stays lost: at most one start per firing.
    #[default]
    Skip,
    /// The firing starts again: at least one start.
    Rerun,
}

impl OnLost {
    /// Every value, in the order of SPEC.
    pub const ALL: [OnLost; 2] = [OnLost::Skip, OnLost::Rerun];

    /// The name in SPEC section 3.
    pub const fn as_str(self) -> &'static str {
        match self {
            OnLost::Skip => "skip",
            OnLost::Rerun => "rerun",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_limit_and_ends_with_the_last_attempt() {
        let secs = Duration::from_secs;
        let retry = Retry { max_attempts: 6, backoff: secs(10), max_backoff: secs(60) };
        let waits: Vec<_> = (1..=6).map(|attempt| retry.wait_after(attempt)).collect();
        assert_eq!(waits, [Some(secs(10)), Some(secs(20)), Some(secs(40)), Some(secs(60)), Some(secs(60)), None]);
        assert_eq!(Retry::default().wait_after(1), None);
        let endless = Retry { max_attempts: u32::MAX, backoff: secs(1), max_backoff: secs(300) };
        assert_eq!(endless.wait_after(4_000_000_000), Some(secs(300)));
    }

    #[test]
    fn values_have_the_names_that_users_write() {
        assert_eq!(Overlap::ALL.map(Overlap::as_str), ["skip", "delay", "replace", "allow"]);
        assert_eq!(MisfirePolicy::ALL.map(MisfirePolicy::as_str), ["skip", "fire_once", "catch_up"]);
        assert_eq!(OnLost::ALL.map(OnLost::as_str), ["skip", "rerun"]);
    }

    fn hourly() -> Job {
        Job::new(("team", "report"), "0 * * * *", "{}")
    }

    #[test]
    fn due_times_come_of_the_whole_definition() {
        let at = Timestamp::from_secs;
        assert_eq!(hourly().key(), "team/report");
        let jitter = Duration::from_secs(600);
        let job = Job { start_at: Some(at(7_200)), end_at: Some(at(14_400)), jitter, ..hourly() };
        let offset = jitter_offset("team/report", jitter);
        assert!(!offset.is_zero());
        let due: Vec<_> = job.timeline(at(0)).unwrap().after(at(0)).collect();
        assert_eq!(due, [7_200, 10_800, 14_400].map(|secs| at(secs) + offset));
        let hashed = |name| Job { name: String::from(name), schedule: "H H * * *".into(), ..hourly() };
        let first = |job: Job| job.timeline(at(0)).unwrap().next_after(at(0));
        assert_ne!(first(hashed("report")), first(hashed("backup")), "`H` spreads jobs by their names");
    }

    #[test]
    fn a_definition_is_retimed_by_what_its_due_times_come_of_and_by_nothing_else() {
        let some = Some(Timestamp::from_secs(60));
        let dst = Dst { gap: crate::schedule::Gap::Skip, ..Dst::default() };
        let retimed = [
            Job { schedule: "1 * * * *".into(), ..hourly() },
            Job { timezone: Some("Europe/Berlin".into()), ..hourly() },
            Job { dst, ..hourly() },
            Job { jitter: Duration::from_secs(1), ..hourly() },
            Job { start_at: some, ..hourly() },
            Job { end_at: some, ..hourly() },
        ];
        for other in &retimed {
            assert!(hourly().timing_differs(other) && other.timing_differs(&hourly()), "{other:?}");
        }
        let rest = Job {
            executor: "http".into(),
            params: "other".into(),
            overlap: Overlap::Allow,
            timeout: Some(Duration::from_secs(1)),
            on_lost: OnLost::Rerun,
            ..hourly()
        };
        assert!(!hourly().timing_differs(&rest));
    }
}
