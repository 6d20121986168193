//! A question about a schedule and its answer, whether it came as arguments or as a line of JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use carillon_domain::schedule::{Dst, Gap, Options, Overlap, Schedule, ScheduleError, Timeline};
use carillon_domain::time::Timestamp;

use super::{AskArgs, GapArg, OverlapArg};

/// When is it due?
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    pub schedule: String,
    pub timezone: Option<String>,
    /// Exclusive; `@every` counts from here.
    pub after: Timestamp,
    pub count: u64,
    pub key: String,
    pub dst: Dst,
}

/// Then.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ScheduleAnswer {
    pub timezone: &'static str,
    pub description: String,
    pub next: Vec<Timestamp>,
}

impl Question {
    pub fn of(args: &AskArgs, count: u64) -> Self {
        Self {
            schedule: args.schedule.clone(),
            timezone: args.timezone.clone(),
            after: args.after.unwrap_or_else(now),
            count,
            key: args.key.clone(),
            dst: Dst { gap: args.dst_gap.into(), overlap: args.dst_overlap.into() },
        }
    }

    pub fn answer(&self) -> Result<ScheduleAnswer, ScheduleError> {
        let options = Options { timezone: self.timezone.as_deref(), dst: self.dst, hash_key: &self.key };
        let schedule = Schedule::parse(&self.schedule, &options)?;
        let (timezone, description) = (schedule.timezone(), schedule.describe());
        let timeline = Timeline::new(schedule, self.after);
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        Ok(ScheduleAnswer { timezone, description, next: timeline.after(self.after).take(count).collect() })
    }
}

impl ScheduleAnswer {
    pub fn texts(&self) -> Vec<String> {
        self.next.iter().map(|due| due.to_rfc3339_short()).collect()
    }
}

impl From<GapArg> for Gap {
    fn from(gap: GapArg) -> Gap {
        match gap {
            GapArg::After => Gap::After,
            GapArg::Skip => Gap::Skip,
        }
    }
}

impl From<OverlapArg> for Overlap {
    fn from(overlap: OverlapArg) -> Overlap {
        match overlap {
            OverlapArg::First => Overlap::First,
            OverlapArg::Both => Overlap::Both,
        }
    }
}

/// This machine's idea of the time, without its fraction: good enough to look ahead from.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_secs(i64::try_from(since.as_secs()).unwrap_or_default())
}
