//! Lost commits: a restore from a backup or a failover can take acknowledged commits away.
//!
//! A node detects it by its heartbeat: the database acknowledged a sequence and no longer knows it. Starts were lost too
//! then, so rows of firings that ran say Idle again. These rows look like any other, and a start of one would run its
//! firing twice.
//!
//! So the time from the last known heartbeat to the detection is recorded as a [`LossWindow`]. While a window is open,
//! scheduling is suspended: nothing is claimed or started. After a person has accepted the window, firings that may have
//! started in it are recorded as lost. Only jobs with `on_lost = rerun` start them again, because they prefer twice to
//! never.

use std::fmt;

use crate::job::{Job, OnLost};
use crate::time::Timestamp;

/// The time whose commits may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LossWindow {
    /// The last heartbeat or session end that the database still knows. Earlier commits are safe.
    pub from_at: Timestamp,
    /// When the loss was last detected. Every lost commit was made before.
    pub until_at: Timestamp,
    /// When the loss was first detected.
    pub noticed_at: Timestamp,
}

impl LossWindow {
    /// One window that covers both, after another node has detected the loss too.
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

/// Whether the database has lost commits. `acked` is the highest heartbeat sequence that it acknowledged to a session, 0
/// before the first. `known` is the sequence that it has for that session now, live, ended or swept.
pub fn commits_were_lost(acked: u64, known: Option<u64>) -> bool {
    acked > 0 && known.is_none_or(|known| known < acked)
}

/// Whether a read that seems to show lost commits was only behind. `seen` is the sequence of the session in that read, `current` the one on a
/// connection that is known to miss nothing that was acknowledged. A read that is behind proves nothing.
pub fn was_behind(seen: Option<u64>, current: Option<u64>) -> bool {
    current > seen
}

/// Whether a firing may have started in lost commits and must not start again. `until` is the end of the newest loss
/// window: every firing that was due by then could have started.
pub fn may_have_started(job: &Job, due_at: Timestamp, until: Option<Timestamp>) -> bool {
    job.on_lost == OnLost::Skip && until.is_some_and(|until| due_at <= until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledged_sequence_that_is_unknown_means_lost_commits() {
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
    fn a_read_that_a_current_one_contradicts_was_behind() {
        let table = [
            (Some(4), Some(5), true),
            (None, Some(1), true),
            (Some(4), Some(4), false),
            (None, None, false),
            // The database lost even more meanwhile.
            (Some(4), Some(3), false),
            (Some(4), None, false),
        ];
        for (seen, current, expected) in table {
            assert_eq!(was_behind(seen, current), expected, "seen {seen:?}, current {current:?}");
        }
    }

    #[test]
    fn only_firings_due_by_the_window_end_may_have_started_and_rerun_starts_them_again() {
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
    fn two_detections_make_one_window_that_spans_both_and_tells_its_times() {
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
