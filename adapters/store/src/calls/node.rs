//! The calls of nodes.

use std::sync::Arc;

use carillon_domain::firing::{Firing, FiringKey, JobState};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;
use carillon_domain::node::call::{BeatAnswer, WriteBackRequest};
use carillon_domain::node::port::{Claimed, FinishAnswer, RowKey, RunRef, SettleAnswer, StartAnswer, WriteBackAnswer};
use carillon_domain::run::Trigger;
use carillon_domain::store::{self, AfterRefusal, JobRow, Rows, SplitFinish, Write};

use super::decide::{decide, decide_locked};
use super::run_params;
use crate::alerts::calls as alerts;
use crate::cache::clock_estimate::Estimate;
use crate::tables::Tables;
use crate::{ClaimRequest, Finished, Me, NewSession, Opened, StoreError, StoreResult};

pub(crate) async fn claim<T: Tables>(tables: &mut T, request: &ClaimRequest) -> StoreResult<Vec<Claimed>> {
    tables.lock_partitions(if enabled(Guard::ClaimLocks) { &request.partitions } else { &[] }).await?;
    let mut claimed = decide(tables, |rows| store::claim(request, rows)).await?;
    lay_run_params_over(tables, claimed.iter_mut().collect()).await?;
    Ok(claimed)
}

/// Gives manual runs their own params. Firings of the schedule have none, so nothing is read for them.
async fn lay_run_params_over<T: Tables>(tables: &mut T, claimed: Vec<&mut Claimed>) -> StoreResult<()> {
    let firing = |claimed: &Claimed| {
        let Firing { due_at, trigger, .. } = claimed.held.firing;
        let job = match claimed.at.row {
            RowKey::Job(job) => job,
            RowKey::Concurrent(key) => key.job,
        };
        FiringKey { job, due_at, trigger }
    };
    let manual = claimed.into_iter().filter(|claimed| claimed.held.firing.trigger == Trigger::Manual);
    let manual: Vec<(FiringKey, &mut Claimed)> = manual.map(|claimed| (firing(claimed), claimed)).collect();
    if manual.is_empty() {
        return Ok(());
    }
    let firings: Vec<FiringKey> = manual.iter().map(|(firing, _)| *firing).collect();
    for ((_, claimed), params) in manual.into_iter().zip(tables.run_params(&firings).await?) {
        if let Some(params) = params {
            claimed.job = Arc::new(run_params::of_run(&claimed.job, &params));
        }
    }
    Ok(())
}

pub(crate) async fn write_back<T: Tables>(
    tables: &mut T,
    request: &WriteBackRequest,
) -> StoreResult<Option<Vec<WriteBackAnswer>>> {
    decide(tables, |rows| store::write_back(request, rows)).await
}

pub(crate) async fn start<T: Tables>(tables: &mut T, me: Me, runs: &[RunRef]) -> StoreResult<Vec<StartAnswer>> {
    decide(tables, |rows| store::start(me, runs, rows)).await
}

/// The writes and answers of a start on cached rows, for one statement that confirms them; see
/// [`store::optimistic_start`].
pub(crate) fn optimistic_start(
    known: Estimate,
    session: SessionId,
    runs: &[RunRef],
    cached: Vec<JobRow>,
) -> Option<(Vec<Write<JobState>>, Vec<StartAnswer>)> {
    let mut rows = Rows::at(known.now, 0);
    cached.into_iter().for_each(|row| _ = rows.add_job(row));
    let decided = store::optimistic_start(session, runs, known.losses_until, &rows)?;
    Some((decided.write.jobs, decided.answer))
}

/// One part of a batch, see [`SplitFinish`].
pub(crate) async fn finish<T: Tables>(
    tables: &mut T,
    me: Me,
    runs: &[Finished],
    executors: &[String],
) -> StoreResult<Vec<FinishAnswer>> {
    let mut answers = decide(tables, |rows| store::finish(me, runs, executors, rows)).await?;
    let claimed = answers.iter_mut().filter_map(|answer| match answer {
        FinishAnswer::RecordedAndClaimed(claimed) => Some(claimed.as_mut()),
        FinishAnswer::Recorded { .. } | FinishAnswer::AlreadyGone => None,
    });
    lay_run_params_over(tables, claimed.collect()).await?;
    Ok(answers)
}

/// Takes in the outcome of one part of a batch of finishes.
///
/// # Errors
/// Those that no smaller part helps against.
pub(crate) fn take_part<'a>(
    batch: &mut SplitFinish<'a>,
    part: std::borrow::Cow<'a, [Finished]>,
    outcome: StoreResult<Vec<FinishAnswer>>,
) -> StoreResult<()> {
    match outcome {
        Ok(answers) => batch.recorded(answers),
        Err(StoreError::Permanent(problem)) => match batch.refused(part) {
            AfterRefusal::Split => {}
            AfterRefusal::WithoutOutput(run) => {
                tracing::error!(%run, problem, "a run is recorded without its output");
            }
            AfterRefusal::GiveUp => return Err(StoreError::Permanent(problem)),
        },
        Err(error) => return Err(error),
    }
    Ok(())
}

pub(crate) async fn release<T: Tables>(tables: &mut T, session: SessionId, runs: &[RunRef]) -> StoreResult<()> {
    decide(tables, |rows| store::release(session, runs, rows)).await
}

pub(crate) async fn settle<T: Tables>(
    tables: &mut T,
    session: SessionId,
    runs: &[RunRef],
) -> StoreResult<Vec<SettleAnswer>> {
    let mut answers = decide(tables, |rows| store::settle(session, runs, rows)).await?;
    let prepared = answers.iter_mut().filter_map(|answer| match answer {
        SettleAnswer::Prepared(claimed) => Some(claimed),
        SettleAnswer::Executing { .. } | SettleAnswer::Gone => None,
    });
    lay_run_params_over(tables, prepared.collect()).await?;
    Ok(answers)
}

pub(crate) async fn open<T: Tables>(tables: &mut T, new: &NewSession) -> StoreResult<Opened> {
    decide(tables, |rows| store::open(new, rows)).await?;
    Ok(Opened { now: tables.now(), partitions: tables.partitions() })
}

pub(crate) async fn heartbeat<T: Tables>(tables: &mut T, me: Me, seq: u64, draining: bool) -> StoreResult<BeatAnswer> {
    decide(tables, |rows| store::heartbeat(me, seq, draining, rows)).await
}

pub(crate) async fn close<T: Tables>(tables: &mut T, session: SessionId) -> StoreResult<()> {
    match decide_locked(tables, |rows| store::close(session, rows)).await? {
        true => Ok(()),
        false => Err(StoreError::Retryable(format!("a heartbeat of session {session} came between"))),
    }
}

pub(crate) async fn expire<T: Tables>(
    tables: &mut T,
    by: Option<Me>,
    session: SessionId,
    seen_seq: u64,
) -> StoreResult<bool> {
    let silent = if by.is_some() { alerts::silent(tables, session).await? } else { None };
    let is_over = decide(tables, |rows| store::expire(by, session, seen_seq, rows)).await?;
    if let Some(silent) = silent.filter(|_| is_over) {
        alerts::node_lost(tables, silent).await?;
    }
    Ok(is_over)
}

pub(crate) async fn sweep<T: Tables>(tables: &mut T, session: SessionId, limit: usize) -> StoreResult<usize> {
    let decision = |rows: &Rows| store::sweep(session, limit, rows);
    if enabled(Guard::SweepLocks) { decide_locked(tables, decision).await } else { decide(tables, decision).await }
}
