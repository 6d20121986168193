//! A database that went back in time: restored from a backup, or failed over with commits lost.
//!
//! Whoever was acknowledged a heartbeat sequence that the database does not know any more knows that acknowledged commits
//! are gone, and starts with them: rows say Idle again of firings that ran. Nobody can tell which. So what lies between the
//! last known heartbeat and the moment at which it was noticed is recorded as a [`LossWindow`]; while one is open nothing is
//! claimed or started, and once somebody has accepted it, a firing that may have started in it starts at most once: it is
//! recorded as lost, unless its job prefers twice to never (`on_lost = rerun`).

use std::fmt;

use crate::job::{Job, OnLost};
use crate::time::Timestamp;

/// The time of which nobody knows what was committed in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LossWindow {
    /// The last heartbeat, or end of a session, that the database still knows.
    pub from_at: Timestamp,
    /// When it was noticed last; what was lost had been committed before.
    pub until_at: Timestamp,
    /// When it was noticed first.
    pub noticed_at: Timestamp,
}

impl LossWindow {
    /// Noticed again: one window for both.
    #[must_use]
    pub fn with(self, later: LossWindow) -> Self {
        Self {
            from_at: self.from_at.min(later.from_at),
            until_at: self.until_at.max(later.until_at),
            noticed_at: self.noticed_at.min(later.noticed_at),
        }
    }
}

impl fmt::Display for LossWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from_at, until_at, noticed_at } = self;
        write!(
            f,
            "the database went back in time (noticed at {noticed_at}): what was committed between {from_at} and {until_at} \
             may be lost"
        )
    }
}

/// Whether the database has lost commits: `acked` is the highest heartbeat sequence that it acknowledged to a session (0
/// before the first), `known` the one that it knows of that session now, be it live, ended or swept.
pub fn commits_were_lost(acked: u64, known: Option<u64>) -> bool {
    acked > 0 && known.is_none_or(|known| known < acked)
}

/// Whether a firing may have started in commits that were lost, and must not be started again. `until` is the end of the
/// newest window: before it was noticed, anything that was due could have been started.
pub fn may_have_started(job: &Job, due_at: Timestamp, until: Option<Timestamp>) -> bool {
    job.on_lost == OnLost::Skip && until.is_some_and(|until| due_at <= until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_that_was_acknowledged_and_is_not_known_was_lost() {
        let table = [
            (0, None, false),
            (0, Some(0), false),
            (5, Some(5), false),
            (5, Some(6), false),
            (5, Some(4), true),
            (5, Some(0), true),
            (1, None, true),
        ];
        for (acked, known, expected) in table {
            assert_eq!(commits_were_lost(acked, known), expected, "acknowledged {acked}, known {known:?}");
        }
    }

    #[test]
    fn only_what_was_due_by_then_may_have_started_and_only_skip_minds() {
        let at = Timestamp::from_secs;
        for on_lost in OnLost::ALL {
            let job = Job { on_lost, ..Job::new(("default", "job"), "@every 60s", "{}") };
            let skip = on_lost == OnLost::Skip;
            for (due, until, expected) in
                [(60, None, false), (60, Some(59), false), (60, Some(60), skip), (60, Some(90), skip)]
            {
                let found = may_have_started(&job, at(due), until.map(at));
                assert_eq!(found, expected, "{on_lost:?}, due at {due}, until {until:?}");
            }
        }
    }

    #[test]
    fn a_window_that_is_noticed_again_spans_both_and_says_from_when_to_when() {
        let at = Timestamp::from_secs;
        let window =
            |from, until, noticed| LossWindow { from_at: at(from), until_at: at(until), noticed_at: at(noticed) };
        for (one, other) in [((10, 30, 31), (20, 40, 41)), ((20, 40, 41), (10, 30, 31)), ((10, 40, 31), (20, 30, 41))] {
            let joined = window(one.0, one.1, one.2).with(window(other.0, other.1, other.2));
            assert_eq!(joined, window(10, 40, 31), "{one:?} and {other:?}");
        }
        let said = window(10, 40, 31).to_string();
        for time in [10, 40, 31].map(|secs| at(secs).to_string()) {
            assert!(said.contains(&time), "{said}");
        }
    }
}
