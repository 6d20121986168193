//! What a holder does to the rows that it holds: start, finish, give back, settle doubt.
//!
//! Start and reset apply only at the version that the caller saw, so that a stray one that lands after a settling write
//! matches nothing. Finish is guarded by its run id alone: a run ends once, whatever was written to its row meanwhile.

use carillon_domain::firing::{Event, JobState, Phase, Rejected, TransitionKind};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;
use carillon_domain::lost_commits::may_have_started;
use carillon_domain::node::port::{Claimed, FinishAnswer, Next, RowKey, RunRef, SettleAnswer, StartAnswer};
use carillon_domain::run::Trigger;
use carillon_domain::time::Timestamp;

use super::claim::standing_to_claim;
use super::{carries, load, load_held, located, lost_commits};
use crate::reckoning::Reckoned;
use crate::tables::{Changes, JobRow, Tables, Write};
use crate::work::Work;
use crate::{Finished, Me, Output, SessionState, StoreError};

/// Prepared -> Executing. A session that was ended starts nothing, and nobody does while the loss of commits is not accepted.
/// What may have started in them was claimed before that was noticed: the next claim records it.
pub(crate) async fn start<T: Tables>(tables: &mut T, me: Me, runs: &[RunRef]) -> Result<Vec<StartAnswer>, StoreError> {
    let standing = tables.standing(me.session).await?;
    if enabled(Guard::StartNotices) && lost_commits::notice(tables, me, &standing).await?.is_some() {
        return Ok(vec![StartAnswer::Suspended; runs.len()]);
    }
    if matches!(standing.state(), None | Some(SessionState::Ended)) && enabled(Guard::StartAlive) {
        return Ok(vec![StartAnswer::Gone; runs.len()]);
    }
    if standing.open.is_some() && enabled(Guard::WindowStart) {
        return Ok(vec![StartAnswer::Suspended; runs.len()]);
    }
    let mut work = Work::new(tables.now());
    load_held(tables, &mut work, runs).await?;
    load_other_rows(tables, &mut work, runs).await?;
    let answers = runs.iter().map(|at| start_one(&mut work, me.session, at, standing.losses_until)).collect();
    tables.write(work.into_changes()).await?;
    Ok(answers)
}

/// What a start writes where it is nothing but to start each of `rows`, and what is answered when it is written; `None` where it
/// is more than that. `rows` are the jobs' rows of all of `runs`, known and not read, and what is reckoned with is not certain
/// either, so that the one statement that writes must confirm all of it.
pub(crate) fn start_known(
    known: Reckoned,
    session: SessionId,
    runs: &[RunRef],
    rows: Vec<JobRow>,
) -> Option<(Vec<Write<JobState>>, Vec<StartAnswer>)> {
    let mut work = Work::new(known.now);
    for row in rows {
        work.add_job(row);
    }
    let start = |at: &RunRef| match start_one(&mut work, session, at, known.losses_until) {
        started @ StartAnswer::Started { at: RunRef { row: RowKey::Job(_), .. }, .. } => Some(started),
        _ => None,
    };
    let answers: Vec<StartAnswer> = runs.iter().map(start).collect::<Option<_>>()?;
    let Changes { jobs, concurrent, definitions, deleted, records, outputs } = work.into_changes();
    let nothing_else = concurrent.is_empty()
        && definitions.is_empty()
        && deleted.is_empty()
        && records.is_empty()
        && outputs.is_empty()
        && jobs.len() == runs.len();
    nothing_else.then_some((jobs, answers))
}

/// The job's row of each run beside it, and what stands beside those of jobs that allow no overlap.
async fn load_other_rows<T: Tables>(tables: &mut T, work: &mut Work, runs: &[RunRef]) -> Result<(), StoreError> {
    let jobs_of = |at: &RunRef| match at.row {
        RowKey::Concurrent(key) => Some(key.job),
        RowKey::Job(_) => None,
    };
    let beside: Vec<_> = runs.iter().filter_map(jobs_of).collect();
    super::add_jobs(work, tables.jobs_by_id(&beside).await?);
    load_concurrent(tables, work).await
}

/// Of the jobs read that allow no overlap, every run beside the row.
pub(super) async fn load_concurrent<T: Tables>(tables: &mut T, work: &mut Work) -> Result<(), StoreError> {
    let alone: Vec<_> = work.jobs_without_overlap().collect();
    if !alone.is_empty() {
        let rows = tables.live_concurrent(Some(&alone)).await?;
        super::add_concurrent(work, rows.into_iter().map(Some).collect());
    }
    Ok(())
}

fn start_one(work: &mut Work, session: SessionId, at: &RunRef, losses_until: Option<Timestamp>) -> StartAnswer {
    let Some((Phase::Prepared(held), version, definition)) = work.phase(&at.row) else { return StartAnswer::Gone };
    if held.run != at.run || held.session != session {
        return StartAnswer::Gone;
    }
    // A stray start must match nothing; a holder that is still there settles.
    if version != at.version && enabled(Guard::StartVersion) {
        return StartAnswer::Moved;
    }
    if may_have_started(&definition.job, held.firing.due_at, losses_until) && enabled(Guard::LostCommitsStart) {
        return StartAnswer::Suspended;
    }
    match work.start(&at.row, session, at.run) {
        Err(Rejected::Early(start_at)) => StartAnswer::Early { start_at },
        Ok(applied) if matches!(applied.why, TransitionKind::Started | TransitionKind::StartedConcurrently) => {
            let row = applied.beside.map_or(at.row, RowKey::Concurrent);
            match work.phase(&row) {
                Some((Phase::Executing(held), version, _)) => StartAnswer::Started {
                    at: RunRef { row, run: at.run, version },
                    held,
                    replace_at: replace_at(work, &row),
                },
                _ => StartAnswer::Gone,
            }
        }
        Ok(_) | Err(_) => StartAnswer::Gone,
    }
}

/// When a newer firing takes the place of the run in this row.
fn replace_at(work: &Work, row: &RowKey) -> Option<Timestamp> {
    let RowKey::Job(id) = row else { return None };
    let (state, definition) = work.job(*id)?;
    state.replace_at(&definition.job, &definition.timeline, work.now())
}

/// Starts what was claimed just now, where it is due and nothing stands in its way. What cannot start stays prepared: its own
/// start holds it back or withholds it.
pub(super) fn start_along(
    work: &mut Work,
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

/// Executing -> Idle, with history and output; then, of the same rows, Idle -> Prepared and, of what is due already, Prepared ->
/// Executing, where that was asked for.
pub(crate) async fn finish<T: Tables>(
    tables: &mut T,
    me: Me,
    runs: &[Finished],
    executors: &[String],
) -> Result<Vec<FinishAnswer>, StoreError> {
    let session = me.session;
    let asked = runs.iter().any(|finished| finished.next.is_some());
    let standing = if asked { standing_to_claim(tables, me).await? } else { None };
    let mut work = Work::new(tables.now());
    let held: Vec<RunRef> = runs.iter().map(|finished| finished.at).collect();
    load_held(tables, &mut work, &held).await?;
    if runs.iter().any(|finished| finished.next.is_some_and(|next| next.has_place)) {
        load_concurrent(tables, &mut work).await?;
    }
    let mut answers = Vec::with_capacity(runs.len());
    for finished in runs {
        let at = &finished.at;
        let row = located(tables, &mut work, at).await?;
        let event = Event::Finish { session, run: at.run, ending: finished.ending.clone() };
        let ended = work.apply_to(&row, &event).is_ok();
        if ended && *finished.output != Output::default() {
            work.keep_output(at.run, Output::clone(&finished.output));
        }
        let may_claim = standing.as_ref().filter(|_| ended);
        let claimed = match may_claim {
            Some(standing) => claim_next(&mut work, me, &row, finished, (standing.losses_until, executors)),
            None => claimed_before(&mut work, me, &row, finished),
        };
        answers.push(match claimed {
            Some(claimed) => FinishAnswer::RecordedAndClaimed(Box::new(claimed)),
            None if ended => FinishAnswer::Recorded { claim_at: claim_at(&work, &row) },
            None => FinishAnswer::AlreadyGone,
        });
    }
    tables.write(work.into_changes()).await?;
    Ok(answers)
}

/// Claims what comes up next of the job whose run has just ended in the job's own row, and starts it where it is due already. The
/// row as it is now says what is due, and whether the job is paused.
fn claim_next(
    work: &mut Work,
    me: Me,
    row: &RowKey,
    request: &Finished,
    (losses_until, executors): (Option<Timestamp>, &[String]),
) -> Option<Claimed> {
    let (Some(Next { run, until, has_place }), RowKey::Job(id)) = (request.next, row) else { return None };
    let (state, definition) = work.job(*id)?;
    // A manual run keeps its own id, by which its node would not know the row before this is answered: recovery would give it
    // back, a claim take it again, and this answer then speak of a row that has moved on. A claim of its own takes it.
    if state.manual.is_some() || !executors.contains(&definition.job.executor) {
        return None;
    }
    let event = Event::Claim { session: me.session, run, until, losses_until };
    if !matches!(work.apply(*id, &event), Ok(applied) if applied.why == TransitionKind::Claimed) {
        return None;
    }
    let claimed = work.claimed(row)?;
    Some(if has_place { start_along(work, me.session, claimed, losses_until) } else { claimed })
}

/// What an earlier attempt of unknown outcome has claimed. What it has started is settled as a start is; what was withdrawn since
/// is left to recovery, which gives it back.
fn claimed_before(work: &mut Work, me: Me, row: &RowKey, request: &Finished) -> Option<Claimed> {
    let next = request.next?;
    let is_next = |claimed: &Claimed| claimed.held.session == me.session && claimed.held.run == next.run;
    let claimed = work.claimed(row).filter(is_next)?;
    if claimed.held.started_at.is_some() && enabled(Guard::SettleDisarms) {
        work.disarm(row, claimed.at.version);
    }
    match look(work, me.session, &claimed.at, row) {
        SettleAnswer::Prepared(claimed) => Some(claimed),
        SettleAnswer::Executing { at, held, replace_at, withdrawn: false } => {
            Some(Claimed { at, held, replace_at, ..claimed })
        }
        SettleAnswer::Executing { .. } | SettleAnswer::Gone => None,
    }
}

fn claim_at(work: &Work, row: &RowKey) -> Option<Timestamp> {
    match row {
        RowKey::Job(id) => work.job(*id).and_then(|(state, _)| state.claim_at()),
        RowKey::Concurrent(key) => work.concurrent(key).and_then(|(row, _)| row.claim_at()),
    }
}

/// A run without its output, where the database refuses the whole of it.
pub(crate) fn without_output(finished: &Finished) -> Finished {
    Finished { output: Output { bytes: Vec::new(), truncated: true }.into(), ..finished.clone() }
}

/// Prepared or Executing -> Idle, never spawned.
pub(crate) async fn reset<T: Tables>(tables: &mut T, session: SessionId, runs: &[RunRef]) -> Result<(), StoreError> {
    let mut work = Work::new(tables.now());
    load(tables, &mut work, runs.iter()).await?;
    for at in runs {
        let as_told = work.phase(&at.row).is_some_and(|(_, version, _)| version == at.version);
        if carries(&work, at) && (as_told || !enabled(Guard::ResetVersion)) {
            // A row that does not carry the run for this session is left alone.
            let _not_mine = work.apply_to(&at.row, &Event::Reset { session, run: at.run });
        }
    }
    tables.write(work.into_changes()).await
}

/// Writes first, then looks.
pub(crate) async fn settle<T: Tables>(
    tables: &mut T,
    session: SessionId,
    runs: &[RunRef],
) -> Result<Vec<SettleAnswer>, StoreError> {
    let mut work = Work::new(tables.now());
    load(tables, &mut work, runs.iter()).await?;
    let mut rows = Vec::with_capacity(runs.len());
    for at in runs {
        if enabled(Guard::SettleDisarms) {
            work.disarm(&at.row, at.version);
        }
        rows.push(located(tables, &mut work, at).await?);
    }
    // Whether a run beside its job's row was withdrawn is told by the job's row.
    let jobs: Vec<_> = rows
        .iter()
        .filter_map(|row| match row {
            RowKey::Concurrent(key) => Some(key.job),
            RowKey::Job(_) => None,
        })
        .collect();
    super::add_jobs(&mut work, tables.jobs_by_id(&jobs).await?);
    let seen = runs.iter().zip(&rows).map(|(at, row)| look(&work, session, at, row)).collect();
    tables.write(work.into_changes()).await?;
    Ok(seen)
}

fn look(work: &Work, session: SessionId, at: &RunRef, row: &RowKey) -> SettleAnswer {
    match work.phase(row) {
        Some((Phase::Prepared(held), ..)) if held.run == at.run && held.session == session => {
            work.claimed(row).map_or(SettleAnswer::Gone, SettleAnswer::Prepared)
        }
        Some((Phase::Executing(held), version, _)) if held.run == at.run && held.session == session => {
            SettleAnswer::Executing {
                at: RunRef { row: *row, run: at.run, version },
                held,
                replace_at: replace_at(work, row),
                withdrawn: withdrawn(work, row, held.firing.trigger),
            }
        }
        _ => SettleAnswer::Gone,
    }
}

/// Deleted, cancelled, or, unless a person asked for the run, paused.
fn withdrawn(work: &Work, row: &RowKey, trigger: Trigger) -> bool {
    if !enabled(Guard::SettleRechecks) {
        return false;
    }
    let paused = |state: &JobState| state.pause.is_some() && trigger != Trigger::Manual;
    match row {
        RowKey::Job(id) => {
            work.job(*id).is_none_or(|(state, _)| state.deleted || state.cancel.is_some() || paused(state))
        }
        RowKey::Concurrent(key) => {
            work.concurrent(key).is_none_or(|(row, _)| row.withdrawn || row.cancel.is_some())
                || work.job(key.job).is_none_or(|(state, _)| paused(state))
        }
    }
}
