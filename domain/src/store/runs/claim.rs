//! Idle -> Prepared, for the rows of some partitions that fall due. A firing that is due already starts in the same commit.

use std::collections::VecDeque;

use super::start::claim_and_start;
use super::write_back::reconcile;
use crate::firing::{Event, TransitionKind};
use crate::guard::{Guard, enabled};
use crate::id::{JobId, RunId};
use crate::node::call::{ClaimRequest, Me};
use crate::node::port::{Claimed, RowKey};
use crate::store::unit_of_work::UnitOfWork;
use crate::store::{Decided, Decision, Need, RecordedLoss, Rows, SessionState, Standing, WriteSet, losses};
use crate::time::Timestamp;

/// Claims, under the locks of the request's partitions. A session that is not live gets nothing, and no session gets
/// anything while a loss of commits is not accepted.
pub fn claim(request: &ClaimRequest, rows: &Rows) -> Decision<Vec<Claimed>> {
    let standing = match may_claim(request.me, rows)? {
        MayClaim::Yes(standing) => standing,
        MayClaim::No(loss) => {
            return Ok(Decided { write: WriteSet { loss, ..WriteSet::default() }, answer: Vec::new() });
        }
    };
    let due = rows.due.as_ref().ok_or_else(|| Need::Due(request.clone()))?;
    let mut work = UnitOfWork::of(rows);
    if let Some(until) = standing.losses_until.filter(|_| enabled(Guard::LostCommitsKnown)) {
        let jobs = may_be_known(due, until, &work);
        reconcile(&mut work, &jobs, rows)?;
    }
    let mut places = request.places;
    if places > 0 {
        rows.require_concurrent_of(work.jobs_without_overlap())?;
    }
    let session = request.me.session;
    let mut ids: VecDeque<RunId> = request.runs.iter().copied().collect();
    let mut claimed = Vec::with_capacity(due.len());
    for row in due {
        let Some(run) = ids.front().copied() else { break };
        let event = Event::Claim { session, run, until: request.until, losses_until: standing.losses_until };
        if !matches!(work.apply_to(row, &event), Ok(applied) if applied.kind == TransitionKind::Claimed) {
            continue;
        }
        let Some(mut answer) = work.claimed(row) else { continue };
        // A manual run keeps its own id. Recovery does not know it before this answer and may release it, so it starts later.
        if answer.held.run == run {
            ids.pop_front();
            if places > 0 {
                answer = claim_and_start(&mut work, session, answer, standing.losses_until);
                places -= usize::from(answer.held.started_at.is_some());
            }
        }
        claimed.push(answer);
    }
    Ok(work.decided(claimed))
}

/// The jobs whose armed firing was due in lost commits, with its due time.
fn may_be_known(due: &[RowKey], until: Timestamp, work: &UnitOfWork) -> Vec<(JobId, Timestamp)> {
    let armed = |row: &RowKey| {
        let RowKey::Job(job) = row else { return None };
        let armed = work.job(*job)?.0.armed.filter(|armed| armed.due_at <= until)?;
        Some((*job, armed.due_at))
    };
    due.iter().filter_map(armed).collect()
}

/// Whether a session may claim.
pub(super) enum MayClaim<'a> {
    /// It may, standing like this.
    Yes(&'a Standing),
    /// It may not; if that is because it noticed a loss of commits, the loss is to be recorded.
    No(Option<RecordedLoss>),
}

/// Whether the session may claim now.
pub(super) fn may_claim(me: Me, rows: &Rows) -> Result<MayClaim<'_>, Need> {
    let standing = rows.standing.as_ref().ok_or(Need::Standing(me.session))?;
    if enabled(Guard::ClaimDetectsLoss)
        && let Some(loss) = losses::notice(me, standing, rows)?
    {
        return Ok(MayClaim::No(Some(loss)));
    }
    let suspended = standing.open.is_some() && enabled(Guard::SuspendClaims);
    let alive = standing.state() == Some(SessionState::Live) || !enabled(Guard::ClaimAlive);
    Ok(if alive && !suspended { MayClaim::Yes(standing) } else { MayClaim::No(None) })
}
