//! The output of running runs, on its way to readers at other nodes.
//!
//! A reader asks in the table, again and again while it reads. The node of the run finds that at its next peek and publishes the newest
//! part while it is asked for. Rows that nobody asks for are purged.

use std::time::Duration;

use carillon_domain::time::Timestamp;

use super::LivePart;

/// How long after a question an output is published.
const WANTED_FOR: Duration = Duration::from_secs(5);
/// A reader writes at most this often, however often it looks.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Rows without a question for so long are purged.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// Outputs asked for since then are published.
pub fn wanted_since(now: Timestamp) -> Timestamp {
    now - WANTED_FOR
}

/// Outputs asked for before then are purged.
pub fn kept_since(now: Timestamp) -> Timestamp {
    now - KEPT_FOR
}

/// The row of one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LiveRow {
    /// When a reader asked last.
    pub asked_at: Timestamp,
    /// The part that the node has published.
    pub published: Option<LivePart>,
}

impl LiveRow {
    /// Whether the question is to be written again.
    pub fn is_asked_again(&self, now: Timestamp) -> bool {
        !(now - ASKED_AGAIN_AFTER <= self.asked_at && self.asked_at <= now)
    }

    /// The published part, unless it is from before the last questions: the run has gone on since.
    pub fn into_fresh(self, now: Timestamp) -> Option<LivePart> {
        self.published.filter(|_| self.asked_at >= wanted_since(now))
    }
}
