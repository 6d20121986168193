//! Executing -> Idle, with history and output. The same commit may claim the job's next firing, and start it if it is due.

use super::claim::{MayClaim, may_claim};
use super::located;
use super::settle::found;
use super::start::claim_and_start;
use crate::firing::{Event, TransitionKind};
use crate::guard::{Guard, enabled};
use crate::node::call::Me;
use crate::node::port::{Claimed, FinishAnswer, Finished, Next, RowKey, RunRef, SettleAnswer};
use crate::run::Output;
use crate::store::unit_of_work::UnitOfWork;
use crate::store::{Decision, Need, Rows};
use crate::time::Timestamp;

/// Records runs that ended. `executors` are those whose next firings may be claimed.
pub fn finish(me: Me, runs: &[Finished], executors: &[String], rows: &Rows) -> Decision<Vec<FinishAnswer>> {
    let claims = runs.iter().any(|finished| finished.next.is_some());
    let (standing, loss) = match claims.then(|| may_claim(me, rows)).transpose()? {
        Some(MayClaim::Yes(standing)) => (Some(standing), None),
        Some(MayClaim::No(loss)) => (None, loss),
        None => (None, None),
    };
    let held: Vec<RunRef> = runs.iter().map(|finished| finished.at).collect();
    rows.require(&held, Need::Held)?;
    rows.require_jobs_of_concurrent(held.iter().map(|at| &at.row))?;
    let mut work = UnitOfWork::of(rows);
    if runs.iter().any(|finished| finished.next.is_some_and(|next| next.has_place)) {
        rows.require_concurrent_of(work.jobs_without_overlap())?;
    }
    let mut answers = Vec::with_capacity(runs.len());
    for finished in runs {
        let at = &finished.at;
        let row = located(rows, &work, at)?;
        let event = Event::Finish { session: me.session, run: at.run, ending: finished.ending.clone() };
        let ended = work.apply_to(&row, &event).is_ok();
        if ended && *finished.output != Output::default() {
            work.keep_output(at.run, finished.output.clone());
        }
        let next = match standing.filter(|_| ended) {
            Some(standing) => claim_successor(&mut work, me, &row, finished, (standing.losses_until, executors)),
            None => claimed_before(&mut work, me, &row, finished),
        };
        answers.push(match next {
            Some(claimed) => FinishAnswer::RecordedAndClaimed(Box::new(claimed)),
            None if ended => FinishAnswer::Recorded { claim_at: work.claim_at(&row) },
            None => FinishAnswer::AlreadyGone,
        });
    }
    let mut decided = work.decided(answers);
    decided.write.loss = loss;
    Ok(decided)
}

/// Claims the next firing of the job whose run has just ended in the job's own row, and starts it if it is due. The row as it
/// is now says whether a firing is due and whether the job is paused.
fn claim_successor(
    work: &mut UnitOfWork,
    me: Me,
    row: &RowKey,
    finished: &Finished,
    (losses_until, executors): (Option<Timestamp>, &[String]),
) -> Option<Claimed> {
    let (Some(Next { run, until, has_place }), RowKey::Job(id)) = (finished.next, row) else { return None };
    let (state, definition) = work.job(*id)?;
    // A manual run keeps its own id, which its node does not know before this answer. Recovery would release it, a claim take
    // it again, and this answer then speak of a row that has moved on. So a claim of its own takes it.
    // A firing that was due in lost commits may be known; a claim of its own looks.
    let may_be_known = state.armed.is_some_and(|armed| Some(armed.due_at) <= losses_until);
    if state.manual.is_some() || may_be_known || !executors.contains(&definition.job.executor) {
        return None;
    }
    let event = Event::Claim { session: me.session, run, until, losses_until };
    if !matches!(work.apply(*id, &event), Ok(applied) if applied.kind == TransitionKind::Claimed) {
        return None;
    }
    let claimed = work.claimed(row)?;
    Some(if has_place { claim_and_start(work, me.session, claimed, losses_until) } else { claimed })
}

/// The successor that an earlier attempt of unknown outcome has claimed. If that attempt started it, it is settled as a start
/// is. If it was withdrawn since, recovery releases it.
fn claimed_before(work: &mut UnitOfWork, me: Me, row: &RowKey, finished: &Finished) -> Option<Claimed> {
    let next = finished.next?;
    let is_next = |claimed: &Claimed| claimed.held.session == me.session && claimed.held.run == next.run;
    let claimed = work.claimed(row).filter(is_next)?;
    if claimed.held.started_at.is_some() && enabled(Guard::SettleDisarms) {
        work.disarm(row, claimed.at.version);
    }
    match found(work, me.session, &claimed.at, row) {
        SettleAnswer::Prepared(claimed) => Some(claimed),
        SettleAnswer::Executing { at, replace_at, withdrawn: false, .. } => Some(Claimed { at, replace_at, ..claimed }),
        SettleAnswer::Executing { .. } | SettleAnswer::Gone => None,
    }
}
