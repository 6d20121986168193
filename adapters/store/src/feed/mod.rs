//! Looks of a feed: everything that was committed since the last look, in one read of the database.
//!
//! A journal is a table whose rows get ascending numbers and never change: history, and the audit log. A number is drawn before its commit, so rows
//! become visible out of order, and some numbers never do. [`Tail`] follows a journal without missing a row.

mod tail;

use std::time::Duration;

use carillon_domain::time::Timestamp;

pub use tail::{Fresh, Tail};

use crate::{JobKey, RunView, SessionView};

/// How many statements of a transaction may follow the one that draws a number, the COMMIT included.
const STATEMENTS_AFTER: u32 = 8;

/// How long after a number was drawn its row may become visible.
///
/// A call writes its rows in at most eight statements after the record, each of at most `statement_timeout`. A client that falls silent
/// in between is thrown out by the server after `holder_timeout`.
pub fn commits_within(statement_timeout: Duration, holder_timeout: Duration) -> Duration {
    statement_timeout * STATEMENTS_AFTER + holder_timeout
}

/// The journals. Each has a tail of its own; marks of readers name a number of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// History.
    Runs,
    /// The audit log.
    Audit,
}

impl Journal {
    /// Every journal.
    pub const ALL: [Self; 2] = [Self::Runs, Self::Audit];

    /// Its place in [`PerJournal`].
    pub const fn place(self) -> usize {
        self as usize
    }
}

/// Something of each journal, in the order of [`Journal::ALL`].
pub type PerJournal<T> = [T; Journal::ALL.len()];

/// A row of a journal.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// Of [`Journal::Runs`]: a run that ended, or due times that did not run.
    Run(RunView),
    /// Of [`Journal::Audit`]: a change that somebody asked for.
    Audit(AuditLine),
}

/// An entry of the audit log as the feed tells it: without the documents, which a look does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLine {
    /// The database's time in the transaction of the change.
    pub at: Timestamp,
    /// The name of the token.
    pub who: String,
    /// The name of the action in the API, also one of a newer binary.
    pub action: String,
    /// The job that was changed, or whose run was; `None` for a change of the cluster.
    pub job: Option<JobKey>,
    /// The job's generation after a change of the job; `None` where the entry is about a run or the cluster.
    pub generation: Option<u64>,
}

/// Successive numbers of a journal, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first number.
    pub first: u64,
    /// The last number; not below the first.
    pub last: u64,
}

/// Which rows of a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalAsk {
    /// Up to `limit` rows with numbers above this one, in ascending order.
    pub after: u64,
    /// How many of those at the most.
    pub limit: usize,
    /// All rows with these numbers, none of them above `after`; ascending.
    pub gaps: Vec<Span>,
}

impl JournalAsk {
    /// Asks for no row, only for the newest number.
    pub const fn newest() -> Self {
        Self { after: u64::MAX, limit: 0, gaps: Vec::new() }
    }
}

/// Rows of a journal, each with its number, ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered<T> {
    /// The highest number that is visible; 0 where there is none.
    pub newest: u64,
    /// The rows asked for.
    pub rows: Vec<(u64, T)>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { newest: 0, rows: Vec::new() }
    }
}

impl<T> Numbered<T> {
    /// The same rows, shown otherwise.
    pub fn map<U>(self, show: impl Fn(T) -> U) -> Numbered<U> {
        let rows = self.rows.into_iter().map(|(number, row)| (number, show(row))).collect();
        Numbered { newest: self.newest, rows }
    }
}

/// The question of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedRequest {
    /// Rows of each journal.
    pub journals: PerJournal<JournalAsk>,
    /// Whether runs that execute and sessions are asked for.
    pub present: bool,
}

/// The present state, as far as no journal tells it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Present {
    /// Every run that executes.
    pub running: Vec<RunView>,
    /// Every session. How many rows each holds is not counted.
    pub sessions: Vec<SessionView>,
}

/// The answer to one look, from one state of the database.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedLook {
    /// The database's time.
    pub now: Timestamp,
    /// How long after a number was drawn its row may become visible; zero where numbers become visible in order.
    pub commits_within: Duration,
    /// The rows of each journal that were asked for.
    pub journals: PerJournal<Numbered<Entry>>,
    /// The present state, if it was asked for.
    pub present: Option<Present>,
}
