//! The statement of an optimistic start: an UPDATE that commits by itself and confirms everything that the caller assumes.

use carillon_domain::firing::JobState;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;

use crate::cluster::port::SingleStart;
use crate::mysql::encoding::list::list;
use crate::mysql::write::update::assignments;
use crate::tables::Write;

/// The text; `None` if a write is not the update of a row.
pub(in crate::mysql) fn statement(start: &SingleStart<'_>) -> Option<String> {
    let set = assignments(start.writes)?;
    let standing = if enabled(Guard::OptimisticStanding) { standing(start) } else { String::new() };
    let rows = rows(start.me.session, start.writes);
    Some(format!("UPDATE job_state FORCE INDEX (PRIMARY) SET {set} WHERE {rows}{standing}"))
}

/// The condition that a transaction would read the same. The session is not ended and has not lost a heartbeat. No loss window is open or
/// new. None of the jobs has a concurrent run, and the estimated time has come.
fn standing(start: &SingleStart<'_>) -> String {
    let (session, acked) = (start.me.session.as_u64(), start.me.acked);
    let until = start.losses_until.map_or("NULL".to_owned(), |until| until.as_ms().to_string());
    let time = start.not_before.map_or(String::new(), |at| {
        format!(" AND TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) >= {}000", at.as_ms())
    });
    let jobs = ids_of(start.writes);
    format!(
        " AND EXISTS (SELECT 1 FROM session WHERE id = {session} AND state <> 'ended' AND seq >= {acked}) \
         AND NOT EXISTS (SELECT 1 FROM loss_window WHERE is_open = 1) \
         AND (SELECT MAX(until_at) FROM loss_window) <=> {until} \
         AND NOT EXISTS (SELECT 1 FROM concurrent_run WHERE job_id IN ({jobs})){time}"
    )
}

fn ids_of(writes: &[Write<JobState>]) -> String {
    list(&writes.iter().filter_map(|write| write.before.as_ref()).map(|row| row.id.0).collect::<Vec<_>>())
}

/// The rows, each as it was cached.
fn rows(session: SessionId, writes: &[Write<JobState>]) -> String {
    let before = writes.iter().filter_map(|write| write.before.as_ref());
    let versions: Vec<String> = before.map(|row| format!("({},{})", row.id.0, row.version)).collect();
    let as_cached = match enabled(Guard::UpdateVersion) {
        true => format!(" AND (id, version) IN ({}) AND held_session = {}", versions.join(","), session.as_u64()),
        false => String::new(),
    };
    format!("id IN ({}){as_cached}", ids_of(writes))
}
