//! The definition of a job, as a user stores it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::alert::{Expect, Ping};
use crate::schedule::{Dst, Options, Schedule, ScheduleError, Timeline, jitter_offset};
use crate::time::Timestamp;

/// A stored definition. A pause is not part of it: it belongs to the job's row, so that it survives a new definition.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Job {
    /// 1-128 characters of `[A-Za-z0-9._-]`.
    pub namespace: String,
    /// 1-128 characters of `[A-Za-z0-9._-]`, unique among the jobs of its namespace that are not deleted.
    pub name: String,
    /// The schedule as the user wrote it.
    pub schedule: String,
    /// An IANA zone name; UTC if neither this nor a `CRON_TZ=` prefix is given.
    pub timezone: Option<String>,
    /// The rule for the two nights a year in which the clock changes.
    pub dst: Dst,
    /// Shifts every due time of the job by one stable offset between zero and this, so that jobs of one schedule spread.
    pub jitter: Duration,
    /// No due time is before this.
    pub start_at: Option<Timestamp>,
    /// No due time is after this.
    pub end_at: Option<Timestamp>,
    /// The name of the executor that runs it.
    pub executor: String,
    /// The executor's parameters: JSON text, opaque to the domain.
    pub params: String,
    /// The policy for a firing that comes due while the previous run lives.
    pub overlap: Overlap,
    /// The policy for due times that no node started in time.
    pub misfire: Misfire,
    /// A run that takes longer is ended as `timed_out`.
    pub timeout: Option<Duration>,
    /// The time between the request to end (SIGTERM) and the kill.
    pub kill_grace: Duration,
    /// How often and when a failed firing is tried again.
    pub retry: Retry,
    /// The policy for a run whose node died.
    pub on_lost: OnLost,
    /// Free labels for finding jobs.
    pub labels: BTreeMap<String, String>,
    /// How soon each due time should have started and succeeded.
    pub expect: Option<Expect>,
    /// The monitor that is called at the start and the end of runs.
    pub ping: Option<Ping>,
}

impl Job {
    /// `kill_grace` if the user gave none.
    pub const DEFAULT_KILL_GRACE: Duration = Duration::from_secs(10);

    /// A job with the three required parts: its key (namespace, name), schedule and params. All else is at its default.
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
            expect: None,
            ping: None,
        }
    }

    /// `namespace/name`. Messages show it; partitions, `H` fields and jitter are hashes of it.
    pub fn key(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The job's due times; `@every` counts from `anchor`.
    ///
    /// # Errors
    /// [`ScheduleError`] if the schedule or its zone cannot be read.
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

    /// Whether the due times of the two definitions may differ. If not, an update keeps the future due times.
    pub fn timing_differs(&self, other: &Job) -> bool {
        self.schedule != other.schedule
            || self.timezone != other.timezone
            || self.dst != other.dst
            || self.jitter != other.jitter
            || self.start_at != other.start_at
            || self.end_at != other.end_at
    }
}

/// The policy for a firing that comes due while the previous run lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Overlap {
    /// The firing is recorded as skipped.
    #[default]
    Skip,
    /// One firing waits for the end of the run; later ones are recorded as skipped.
    Delay,
    /// The run is cancelled, and the newest firing starts.
    Replace,
    /// Both run.
    Allow,
}

impl Overlap {
    /// Every value.
    pub const ALL: [Overlap; 4] = [Overlap::Skip, Overlap::Delay, Overlap::Replace, Overlap::Allow];

    /// The name that users write.
    pub const fn as_str(self) -> &'static str {
        match self {
            Overlap::Skip => "skip",
            Overlap::Delay => "delay",
            Overlap::Replace => "replace",
            Overlap::Allow => "allow",
        }
    }
}

/// How late a firing may start, and the policy for those that are later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Misfire {
    /// The policy for misfires.
    pub policy: MisfirePolicy,
    /// A firing that is later than this is a misfire.
    pub grace: Duration,
}

impl Default for Misfire {
    fn default() -> Self {
        Self { policy: MisfirePolicy::FireOnce, grace: Duration::from_secs(30) }
    }
}

/// The policy for due times that no node started in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum MisfirePolicy {
    /// All are recorded as skipped.
    Skip,
    /// The latest runs; the others are recorded as skipped.
    #[default]
    FireOnce,
    /// The newest [`CATCH_UP_LIMIT`] run, oldest first, one at a time; older ones are recorded as skipped.
    CatchUp,
}

/// The most due times that `catch_up` runs.
pub const CATCH_UP_LIMIT: usize = 100;

impl MisfirePolicy {
    /// Every value.
    pub const ALL: [MisfirePolicy; 3] = [MisfirePolicy::Skip, MisfirePolicy::FireOnce, MisfirePolicy::CatchUp];

    /// The name that users write.
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
    /// The number of attempts in total; 1 means no retry.
    pub max_attempts: u32,
    /// The wait before the second attempt. Each later wait is twice as long.
    pub backoff: Duration,
    /// The longest wait.
    pub max_backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 1, backoff: Duration::from_secs(10), max_backoff: Duration::from_secs(300) }
    }
}

impl Retry {
    /// The wait after attempt number `attempt` has failed, or `None` if that was the last.
    pub fn wait_after(&self, attempt: u32) -> Option<Duration> {
        if attempt >= self.max_attempts {
            return None;
        }
        let doublings = attempt.saturating_sub(1).min(31);
        Some(self.backoff.saturating_mul(1 << doublings).min(self.max_backoff))
    }
}

/// The policy for a run whose node died or was fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum OnLost {
    /// It stays lost: at most one start per firing.
    #[default]
    Skip,
    /// The firing starts again: at least one start per firing.
    Rerun,
}

impl OnLost {
    /// Every value.
    pub const ALL: [OnLost; 2] = [OnLost::Skip, OnLost::Rerun];

    /// The name that users write.
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
    fn due_times_depend_on_the_whole_timing_of_the_definition() {
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
    fn only_the_timing_of_a_definition_counts_as_retimed() {
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
