//! What becomes of due times that passed: the misfire policy and the overlap policy (SPEC section 3).
//!
//! Both answer the same two questions: which firing comes next, and which due times are recorded as skipped. Between them
//! they see every due time exactly once, because everything up to the *cursor* has been dealt with.

use std::time::Duration;

use crate::firing::Firing;
use crate::job::{CATCH_UP_LIMIT, Misfire, MisfirePolicy, Overlap};
use crate::run::DueRange;
use crate::schedule::Timeline;
use crate::time::Timestamp;

const INSTANT: Duration = Duration::from_millis(1);

/// What comes next on the schedule, and what was passed over on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The firing to start next; `None` when the schedule has ended.
    pub armed: Option<Firing>,
    /// Every due time up to here is dealt with, or is `armed`.
    pub cursor: Timestamp,
    /// Due times up to here belong to a backlog that `catch_up` works off.
    pub catch_up_until: Option<Timestamp>,
    /// Due times that do not run.
    pub skipped: Option<DueRange>,
}

/// The next regular firing after `cursor`, nothing skipped.
pub fn next_regular(timeline: &Timeline, cursor: Timestamp) -> Selection {
    let armed = timeline.next_after(cursor).map(Firing::regular);
    Selection { armed, cursor, catch_up_until: None, skipped: None }
}

/// The due times in `(after, until]` as one range.
pub fn due_range(timeline: &Timeline, after: Timestamp, until: Timestamp) -> Option<DueRange> {
    let first = timeline.next_after(after).filter(|first| *first <= until)?;
    let last = timeline.last_until(until)?;
    Some(DueRange { count: timeline.count(after, until), first, last })
}

/// Looks at the due time `due` at the moment `now`. `None`: start it, it is not late. Otherwise it and all that passed
/// with it form one batch, and this is what the policy makes of them.
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
        MisfirePolicy::FireOnce => made_good(timeline, all, 1),
        MisfirePolicy::CatchUp => made_good(timeline, all, CATCH_UP_LIMIT),
    })
}

/// The newest `limit` of a batch run, oldest first; the others are skipped.
fn made_good(timeline: &Timeline, batch: DueRange, limit: usize) -> Selection {
    let surplus = batch.count.saturating_sub(limit as u64);
    let oldest_kept = match surplus {
        0 => batch.first,
        _ => timeline.until(batch.last).nth(limit - 1).unwrap_or(batch.last),
    };
    let skipped = (surplus > 0).then(|| DueRange {
        count: surplus,
        first: batch.first,
        last: timeline.last_until(oldest_kept - INSTANT).unwrap_or(batch.first).max(batch.first),
    });
    Selection {
        armed: Some(Firing::misfired(oldest_kept)),
        cursor: batch.last,
        catch_up_until: (oldest_kept < batch.last).then_some(batch.last),
        skipped,
    }
}

/// What comes next after a run that lived until `lived_until`, when everything up to `cursor` has been dealt with.
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
            skipped: due_range(timeline, cursor, passed.last - INSTANT),
        },
        // Its runs live beside the row; what a backlog's run held up is part of the backlog at the next claim.
        Overlap::Allow => next_regular(timeline, cursor),
    }
}

/// The next firing of a backlog that `catch_up` works off, if `due` was not its last.
pub fn next_of_backlog(timeline: &Timeline, due: Timestamp, catch_up_until: Option<Timestamp>) -> Option<Firing> {
    let until = catch_up_until?;
    timeline.next_after(due).filter(|next| *next <= until).map(Firing::misfired)
}
