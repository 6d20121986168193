//! The misfire policy and the overlap policy: they decide on due times that passed.
//!
//! Each decision is a [`Selection`]: the firing that comes next, and the due times that are recorded as skipped. Every
//! due time is decided exactly once, because decisions are only made about due times after the *cursor*.
//!
//! ```
//! use carillon_domain::job::{Job, MisfirePolicy};
//! use carillon_domain::policy::misfire;
//! use carillon_domain::time::Timestamp;
//!
//! let at = Timestamp::from_secs;
//! let mut job = Job::new(("default", "report"), "@every 60s", "{}");
//! let timeline = job.timeline(at(0)).unwrap();
//!
//! // Up to 30 s late is within the default grace: the policy has nothing to decide.
//! assert_eq!(misfire(&timeline, &job.misfire, at(60), at(75)), None);
//!
//! // No node started the firings of second 60, 120 and 180 in time. `fire_once` runs the latest.
//! let late = misfire(&timeline, &job.misfire, at(60), at(200)).unwrap();
//! assert_eq!(late.armed.unwrap().due_at, at(180));
//! assert_eq!(late.skipped.unwrap().count, 2);
//!
//! // `skip` runs none of them, and arms the next due time.
//! job.misfire.policy = MisfirePolicy::Skip;
//! let late = misfire(&timeline, &job.misfire, at(60), at(200)).unwrap();
//! assert_eq!(late.armed.unwrap().due_at, at(240));
//! assert_eq!(late.skipped.unwrap().count, 3);
//! ```

use crate::firing::Firing;
use crate::job::{CATCH_UP_LIMIT, Misfire, MisfirePolicy, Overlap};
use crate::run::DueRange;
use crate::schedule::Timeline;
use crate::time::Timestamp;

/// The decision of a policy: the next firing, and the due times before it that do not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The next firing; `None` when the schedule has ended.
    pub armed: Option<Firing>,
    /// Every due time up to here is decided: it has run, has a record, or is armed or in the backlog.
    pub cursor: Timestamp,
    /// Due times after `armed` and up to here are a backlog that `catch_up` runs.
    pub catch_up_until: Option<Timestamp>,
    /// The due times to record as skipped.
    pub skipped: Option<DueRange>,
}

/// Selects the next regular firing after `cursor` and skips nothing.
pub fn next_regular(timeline: &Timeline, cursor: Timestamp) -> Selection {
    let armed = timeline.next_after(cursor).map(Firing::regular);
    Selection { armed, cursor, catch_up_until: None, skipped: None }
}

/// The due times in `(after, until]`; `None` if there are none.
pub fn due_range(timeline: &Timeline, after: Timestamp, until: Timestamp) -> Option<DueRange> {
    let first = timeline.next_after(after).filter(|first| *first <= until)?;
    let last = timeline.last_until(until)?;
    Some(DueRange { count: timeline.count(after, until), first, last })
}

/// Applies the misfire policy to the due time `due` at the moment `now`. `None` if it may start, because it is within
/// its grace. Otherwise it forms one batch with all due times that passed since, and the policy decides on the batch.
/// A due time that equals `now` has passed too, as everywhere in these ranges.
pub fn misfire(timeline: &Timeline, misfire: &Misfire, due: Timestamp, now: Timestamp) -> Option<Selection> {
    if now <= due {
        return None;
    }
    let last = timeline.last_until(now).map_or(due, |last| last.max(due));
    if last == due && now.since(due) <= misfire.grace {
        return None;
    }
    let count = 1 + timeline.count(due, last);
    let all = DueRange { count, first: due, last };
    Some(match misfire.policy {
        MisfirePolicy::Skip => Selection { skipped: Some(all), ..next_regular(timeline, last) },
        MisfirePolicy::FireOnce => run_newest(timeline, all, 1),
        MisfirePolicy::CatchUp => run_newest(timeline, all, CATCH_UP_LIMIT),
    })
}

/// Runs the newest `limit` due times of a batch, oldest first, and skips the others.
fn run_newest(timeline: &Timeline, batch: DueRange, limit: usize) -> Selection {
    let surplus = batch.count.saturating_sub(limit as u64);
    let oldest_kept = match surplus {
        0 => batch.first,
        _ => timeline.until(batch.last).nth(limit - 1).unwrap_or(batch.last),
    };
    let skipped = (surplus > 0).then(|| DueRange {
        count: surplus,
        first: batch.first,
        last: timeline.last_until(oldest_kept - Timestamp::TICK).unwrap_or(batch.first).max(batch.first),
    });
    Selection {
        armed: Some(Firing::misfired(oldest_kept)),
        cursor: batch.last,
        catch_up_until: (oldest_kept < batch.last).then_some(batch.last),
        skipped,
    }
}

/// Applies the overlap policy after a run that lived until `lived_until`, to the due times after `cursor`.
pub fn after_run(timeline: &Timeline, overlap: Overlap, cursor: Timestamp, lived_until: Timestamp) -> Selection {
    let Some(passed) = due_range(timeline, cursor, lived_until) else {
        return next_regular(timeline, cursor);
    };
    match overlap {
        Overlap::Skip => Selection { skipped: Some(passed), ..next_regular(timeline, passed.last) },
        Overlap::Delay => Selection {
            armed: Some(Firing::delayed(passed.first)),
            cursor: passed.last,
            catch_up_until: None,
            skipped: due_range(timeline, passed.first, passed.last),
        },
        Overlap::Replace => Selection {
            armed: Some(Firing::delayed(passed.last)),
            cursor: passed.last,
            catch_up_until: None,
            skipped: due_range(timeline, cursor, passed.last - Timestamp::TICK),
        },
        // Concurrent runs hold up nothing. Due times that a run of a backlog held up join the backlog at the next claim.
        Overlap::Allow => next_regular(timeline, cursor),
    }
}

/// The next firing of a `catch_up` backlog after `due`; `None` if there is no backlog, or `due` was its last.
pub fn next_of_backlog(timeline: &Timeline, due: Timestamp, catch_up_until: Option<Timestamp>) -> Option<Firing> {
    let until = catch_up_until?;
    timeline.next_after(due).filter(|next| *next <= until).map(Firing::misfired)
}
