//! Prepared -> Executing.

use crate::firing::{Phase, Rejected};
use crate::guard::{Guard, enabled};
use crate::id::{JobId, SessionId};
use crate::lost_commits::may_have_started;
use crate::node::call::Me;
use crate::node::port::{Claimed, RowKey, RunRef, StartAnswer};
use crate::store::unit_of_work::UnitOfWork;
use crate::store::{Decided, Decision, Need, Rows, SessionState, WriteSet, losses};
use crate::time::Timestamp;

/// Starts runs. A session that was ended starts nothing, and nobody does while a loss of commits is not accepted. A firing
/// that may have started in lost commits goes back; the next claim records it.
pub fn start(me: Me, runs: &[RunRef], rows: &Rows) -> Decision<Vec<StartAnswer>> {
    let standing = rows.standing.as_ref().ok_or(Need::Standing(me.session))?;
    if enabled(Guard::StartDetectsLoss)
        && let Some(loss) = losses::notice(me, standing, rows)?
    {
        let write = WriteSet { loss: Some(loss), ..WriteSet::default() };
        return Ok(Decided { write, answer: vec![StartAnswer::Suspended; runs.len()] });
    }
    if matches!(standing.state(), None | Some(SessionState::Ended)) && enabled(Guard::StartAlive) {
        return Ok(Decided::answer(vec![StartAnswer::Gone; runs.len()]));
    }
    if standing.open.is_some() && enabled(Guard::SuspendStarts) {
        return Ok(Decided::answer(vec![StartAnswer::Suspended; runs.len()]));
    }
    rows.require(runs, Need::Held)?;
    // A concurrent run takes its token from the job's row.
    rows.require_jobs(jobs_of_concurrent(runs))?;
    let mut work = UnitOfWork::of(rows);
    rows.require_concurrent_of(work.jobs_without_overlap())?;
    let answers = runs.iter().map(|at| start_one(&mut work, me.session, at, standing.losses_until)).collect();
    Ok(work.decided(answers))
}

/// Starts runs on rows that were not read but cached, for one statement that writes and confirms everything it relies on.
/// `None` where the start is more than an update of the jobs' rows: then [`start`] decides on rows that were read.
pub fn optimistic_start(
    session: SessionId,
    runs: &[RunRef],
    losses_until: Option<Timestamp>,
    rows: &Rows,
) -> Option<Decided<Vec<StartAnswer>>> {
    let mut work = UnitOfWork::of(rows);
    let started = |at: &RunRef| match start_one(&mut work, session, at, losses_until) {
        started @ StartAnswer::Started { at: RunRef { row: RowKey::Job(_), .. }, .. } => Some(started),
        _ => None,
    };
    let answers = runs.iter().map(started).collect::<Option<Vec<_>>>()?;
    let decided = work.decided(answers);
    (decided.write.has_only_jobs() && decided.write.jobs.len() == runs.len()).then_some(decided)
}

fn jobs_of_concurrent(runs: &[RunRef]) -> Vec<JobId> {
    let job = |at: &RunRef| match at.row {
        RowKey::Concurrent(key) => Some(key.job),
        RowKey::Job(_) => None,
    };
    runs.iter().filter_map(job).collect()
}

fn start_one(work: &mut UnitOfWork, session: SessionId, at: &RunRef, losses_until: Option<Timestamp>) -> StartAnswer {
    let Some((Phase::Prepared(held), version, definition)) = work.phase(&at.row) else { return StartAnswer::Gone };
    if held.run != at.run || held.session != session {
        return StartAnswer::Gone;
    }
    // A stray start must match nothing; a holder that still waits settles.
    if version != at.version && enabled(Guard::StartVersion) {
        return StartAnswer::Moved;
    }
    if may_have_started(&definition.job, held.firing.due_at, losses_until) && enabled(Guard::LostCommitsStart) {
        return StartAnswer::Suspended;
    }
    match work.start(&at.row, session, at.run) {
        Err(Rejected::Early(start_at)) => StartAnswer::Early { start_at },
        Ok(applied) => {
            let row = applied.concurrent.map_or(at.row, RowKey::Concurrent);
            match work.phase(&row) {
                Some((Phase::Executing(held), version, _)) => StartAnswer::Started {
                    at: RunRef { row, run: at.run, version },
                    held,
                    replace_at: work.replace_at(&row),
                },
                // It was deferred, or recorded as missed.
                _ => StartAnswer::Gone,
            }
        }
        Err(_) => StartAnswer::Gone,
    }
}

/// Starts a firing in the commit that claims it, where it is due and no other run is in its way. Otherwise it stays
/// prepared, and its own start defers it or gives the reason.
pub(super) fn claim_and_start(
    work: &mut UnitOfWork,
    session: SessionId,
    claimed: Claimed,
    losses_until: Option<Timestamp>,
) -> Claimed {
    let RowKey::Job(job) = claimed.at.row else { return claimed };
    if claimed.held.firing.start_at > work.now() || work.must_wait(job, &claimed.at.row) {
        return claimed;
    }
    match start_one(work, session, &claimed.at, losses_until) {
        StartAnswer::Started { at, held, replace_at } => Claimed { at, held, replace_at, ..claimed },
        _ => claimed,
    }
}
