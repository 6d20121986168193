//! The output of runs that run, on its way from the node that runs them to readers at other nodes.
//!
//! A reader writes down that it asks, again and again while it reads. The node that runs it finds that at its next look and
//! publishes the newest part, again and again while it is asked. What nobody asks for any more is purged.

use std::time::Duration;

use carillon_domain::time::Timestamp;

use super::LivePart;

/// How long after it was asked for an output is published.
const WANTED_FOR: Duration = Duration::from_secs(5);
/// A reader writes no more often than this, however often it looks.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// What was not asked for that long is purged.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// What was asked for since then is published.
pub(super) fn wanted_since(now: Timestamp) -> Timestamp {
    now - WANTED_FOR
}

/// What was asked for before then is purged.
pub(super) fn kept_since(now: Timestamp) -> Timestamp {
    now - KEPT_FOR
}

/// The row of one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LiveRow {
    pub asked_at: Timestamp,
    pub published: Option<LivePart>,
}

impl LiveRow {
    /// Whether the asking is to be written down anew.
    pub fn is_asked_again(&self, now: Timestamp) -> bool {
        !(now - ASKED_AGAIN_AFTER <= self.asked_at && self.asked_at <= now)
    }

    /// What was published, unless it is from a time when nobody had asked for long: the run has gone on since.
    pub fn into_fresh(self, now: Timestamp) -> Option<LivePart> {
        self.published.filter(|_| self.asked_at >= wanted_since(now))
    }
}
