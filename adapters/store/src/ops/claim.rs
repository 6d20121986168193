//! Idle -> Prepared, for all that comes up in some partitions; what is due already starts in the same commit.

use std::collections::VecDeque;

use carillon_domain::firing::{Event, TransitionKind};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::RunId;
use carillon_domain::node::port::{Claimed, RowKey};
use carillon_domain::time::Timestamp;

use super::lost_commits;
use super::transit::{load_concurrent, start_along};
use crate::tables::{Standing, Tables};
use crate::work::Work;
use crate::{ClaimRequest, Me, SessionState, StoreError};

/// Takes the locks, then reads its own session: one that is not live any more gets nothing, and nobody does while the loss
/// of commits is not accepted.
pub(crate) async fn claim<T: Tables>(tables: &mut T, request: &ClaimRequest) -> Result<Vec<Claimed>, StoreError> {
    tables.lock_partitions(if enabled(Guard::ClaimLocks) { &request.partitions } else { &[] }).await?;
    let Some(standing) = standing_to_claim(tables, request.me).await? else { return Ok(Vec::new()) };
    let mut work = Work::new(tables.now());
    let rows = due_rows(tables, &mut work, request).await?;
    let mut ids: VecDeque<RunId> = request.runs.iter().copied().collect();
    let mut places = request.places;
    if places > 0 {
        load_concurrent(tables, &mut work).await?;
    }
    let mut claimed = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(run) = ids.front().copied() else { break };
        let (session, losses_until) = (request.me.session, standing.losses_until);
        let event = Event::Claim { session, run, until: request.until, losses_until };
        if !matches!(work.apply_to(&row, &event), Ok(applied) if applied.kind == TransitionKind::Claimed) {
            continue;
        }
        let Some(mut answer) = work.claimed(&row) else { continue };
        // A manual run has an id of its own: recovery, which does not know it before this is answered, may give it back meanwhile.
        if answer.held.run == run {
            ids.pop_front();
            if places > 0 {
                answer = start_along(&mut work, session, answer, losses_until);
                places -= usize::from(answer.held.started_at.is_some());
            }
        }
        claimed.push(answer);
    }
    tables.write(work.into_changes()).await?;
    Ok(claimed)
}

/// How a session stands that may claim now; `None` where it may not.
pub(super) async fn standing_to_claim<T: Tables>(tables: &mut T, me: Me) -> Result<Option<Standing>, StoreError> {
    let standing = tables.standing(me.session).await?;
    let lost = enabled(Guard::ClaimDetectsLoss) && lost_commits::notice(tables, me, &standing).await?.is_some();
    let withheld = lost || standing.open.is_some() && enabled(Guard::SuspendClaims);
    let alive = standing.state() == Some(SessionState::Live) || !enabled(Guard::ClaimAlive);
    Ok((alive && !withheld).then_some(standing))
}

/// The rows of both tables that come up first, as many as there are ids.
async fn due_rows<T: Tables>(
    tables: &mut T,
    work: &mut Work,
    request: &ClaimRequest,
) -> Result<Vec<RowKey>, StoreError> {
    let mut rows: Vec<(Timestamp, RowKey)> = Vec::new();
    for row in tables.due_jobs(request).await? {
        let at = row.state.claim_at().unwrap_or(Timestamp::MAX);
        rows.push((at, RowKey::Job(work.add_job(row))));
    }
    for row in tables.due_concurrent(request).await? {
        let at = row.row.claim_at().unwrap_or(Timestamp::MAX);
        rows.push((at, RowKey::Concurrent(work.add_concurrent(row))));
    }
    rows.sort_unstable();
    rows.truncate(request.runs.len());
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}
