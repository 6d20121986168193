//! Calls of monitors that wait, as rows among incidents: one for each job, under a route without a name. They are looked at as incidents
//! are, and a job that is gone is looked up in the same way.

use carillon_domain::alert::{HeldCall, NoticeId};
use carillon_domain::id::JobId;

use super::document::held_calls_text;
use super::port::IncidentRow;

/// The route of these rows. No route has this name.
const ROUTE: &str = "";

/// The id of a job's row.
pub(super) fn id_of(job: JobId) -> String {
    NoticeId::derived(&["held calls of job", &job.to_string()]).to_string()
}

/// Whether a row is such a one, and no incident.
pub(super) fn is_one(row: &IncidentRow) -> bool {
    row.route == ROUTE
}

/// The row of a job; `None` if none of its calls waits.
pub(super) fn row_of(job: JobId, held: &[HeldCall]) -> Option<IncidentRow> {
    let since = held.iter().map(|held| held.call.at).min()?;
    Some(IncidentRow {
        id: id_of(job),
        route: ROUTE.to_owned(),
        job: Some(job),
        namespace: None,
        since,
        next_look: held.iter().map(|held| held.look_at).min(),
        document: held_calls_text(held),
    })
}
