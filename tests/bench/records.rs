//! The history of the runs of a load. The only place of the bench that knows how history is stored.

use crate::lab::Scratch;
use crate::lags::Lags;

/// A part of history: what started within some time, in ms since 1970.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// From when.
    pub from: i64,
    /// Until when.
    pub until: i64,
}

/// How late runs began.
pub struct Lateness {
    /// As recorded: when the start was committed.
    pub recorded: Lags,
    /// As the jobs themselves said.
    pub executor: Lags,
}

/// When the first run of all started and the last one ended, in ms since 1970, and how many succeeded.
pub fn span(scratch: &Scratch<'_>) -> (i64, i64, u64) {
    let sql = "SELECT COALESCE(MIN(started_at), 0), COALESCE(MAX(finished_at), 0), COUNT(*) FROM run \
               WHERE status = 'succeeded'";
    scratch.rows(sql).pop().unwrap_or_default()
}

/// How late the runs of a stretch began. They print a time in microseconds, or in seconds with six digits.
pub fn lateness(scratch: &Scratch<'_>, stretch: Stretch) -> Lateness {
    let sql = format!(
        "SELECT r.due_at, r.lag_ms, COALESCE(CAST(o.bytes AS CHAR), '') FROM run r LEFT JOIN output o ON o.run = r.id \
         WHERE r.status = 'succeeded' AND r.started_at BETWEEN {} AND {}",
        stretch.from, stretch.until
    );
    let mut lateness = Lateness { recorded: Lags::new(), executor: Lags::new() };
    for (due_ms, lag_ms, said) in scratch.rows::<(i64, i64, String)>(&sql) {
        lateness.recorded.add(lag_ms * 1_000);
        if let Ok(began_us) = said.trim().replace('.', "").parse::<i64>() {
            lateness.executor.add(began_us - due_ms * 1_000);
        }
    }
    lateness
}

/// When, after a moment, the last of all jobs that ran before had started on another node than `dead`, in ms since 1970, and
/// how many jobs have.
pub fn elsewhere(scratch: &Scratch<'_>, dead: &str, after: i64) -> (i64, u64) {
    let sql = format!(
        "SELECT COALESCE(MAX(first), 0), COUNT(*) FROM (SELECT MIN(started_at) first FROM run \
         WHERE started_at > {after} AND node <> '{dead}' GROUP BY job_id) firsts"
    );
    scratch.rows(&sql).pop().unwrap_or_default()
}
