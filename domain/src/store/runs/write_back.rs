//! After lost commits: runs that a node knows get rows again. Nothing starts meanwhile, so no row is claimed before all nodes have written.

use std::collections::BTreeSet;

use crate::firing::{Event, Firing, FiringKey, KnownDue, Phase, Rejected, goes_on, highest_version_until};
use crate::guard::{Guard, enabled};
use crate::id::JobId;
use crate::node::call::WriteBackRequest;
use crate::node::port::{KnownRun, RowKey, RunRef, WriteBackAnswer};
use crate::run::Trigger;
use crate::store::unit_of_work::UnitOfWork;
use crate::store::{Decided, Decision, Need, Rows, SessionState, SessionWrite, WriteSet, losses};
use crate::time::Timestamp;

/// Writes runs back. With the last ones the session says that it has written everything. `None` if the session is over, commits were lost
/// again, or no loss is open.
pub fn write_back(request: &WriteBackRequest, rows: &Rows) -> Decision<Option<Vec<WriteBackAnswer>>> {
    let WriteBackRequest { me, until, runs, last } = request;
    let standing = rows.standing.as_ref().ok_or(Need::Standing(me.session))?;
    if let Some(loss) = losses::notice(*me, standing, rows)? {
        return Ok(Decided { write: WriteSet { loss: Some(loss), ..WriteSet::default() }, answer: None });
    }
    let lives = matches!(standing.state(), Some(SessionState::Live | SessionState::Draining));
    if !lives || standing.open.is_none() {
        return Ok(Decided::answer(None));
    }
    let jobs: BTreeSet<JobId> = runs.iter().map(job_of).collect();
    rows.require_jobs(jobs.iter().copied().collect())?;
    rows.require_concurrent_of(jobs.into_iter().collect())?;
    rows.require_recorded(runs.iter().map(|known| known.held.run).collect())?;
    let mut work = UnitOfWork::of(rows);
    let tried_again: Vec<&KnownRun> = runs.iter().filter(|known| asks_for_another(&work, known)).collect();
    if let Some(since) = tried_again.iter().map(|known| known.held.firing.due_at).min() {
        rows.require_history(&tried_again.into_iter().map(job_of).collect::<Vec<_>>(), since)?;
    }
    let answers = runs.iter().map(|known| write_back_one(&mut work, known, *until, rows)).collect();
    if *last {
        work.write_session(SessionWrite::WroteBack { session: me.session, until: *until });
    }
    Ok(work.decided(Some(answers)))
}

fn job_of(known: &KnownRun) -> JobId {
    known.at.row.job()
}

fn write_back_one(work: &mut UnitOfWork, known: &KnownRun, until: Timestamp, rows: &Rows) -> WriteBackAnswer {
    let run = known.held.run;
    // A request that comes late may carry a run that has ended since.
    if rows.recorded.get(&run) == Some(&true) {
        return WriteBackAnswer::Recorded;
    }
    if let Some(ending) = known.ended.as_ref().filter(|_| is_followed(work, known, rows)) {
        work.record_end(job_of(known), &known.held, ending);
        return WriteBackAnswer::Recorded;
    }
    let Some(row) = row_for(work, known, until) else { return WriteBackAnswer::Nowhere };
    match &known.ended {
        Some(ending) => {
            let event = Event::Finish { session: known.held.session, run, ending: ending.clone() };
            let _recorded = work.apply_to(&row, &event);
            WriteBackAnswer::Recorded
        }
        None => {
            let version = work.phase(&row).map_or(known.at.version, |(_, version, _)| version);
            WriteBackAnswer::Executing { at: RunRef { row, run, version }, replace_at: work.replace_at(&row) }
        }
    }
}

/// Whether the run has ended in a way after which the job wants another attempt.
fn asks_for_another(work: &UnitOfWork, known: &KnownRun) -> bool {
    let job = work.job(job_of(known)).map(|(_, definition)| &definition.job);
    known.ended.as_ref().zip(job).is_some_and(|(ending, job)| goes_on(job, &known.held.firing, ending))
}

/// Whether a later attempt of the same firing is known: it has a record, or a row holds it or waits with it. Another node may have run it and
/// written it back before. A further attempt would run it twice.
fn is_followed(work: &UnitOfWork, known: &KnownRun, rows: &Rows) -> bool {
    let (job, firing) = (job_of(known), &known.held.firing);
    let follows = |due_at: Timestamp, trigger: Trigger, attempt: u32| {
        firing.is_attempt_of(due_at, trigger) && attempt > firing.attempt
    };
    let is_later = |other: &Firing| follows(other.due_at, other.trigger, other.attempt);
    let own = work.job(job).is_some_and(|(state, _)| {
        let waiting = state.armed.iter().chain(state.manual.as_ref().map(|manual| &manual.firing));
        waiting.chain(state.phase.held().map(|held| &held.firing)).any(is_later)
    });
    let beside = work.concurrent(&key_of(known)).is_some_and(|(row, _)| {
        let waiting = row.waiting.as_ref().map(|waiting| &waiting.firing);
        waiting.into_iter().chain(row.phase.held().map(|held| &held.firing)).any(is_later)
    });
    let read = rows.history.get(&job).into_iter().flat_map(|(_, records)| records);
    let mut records = read.chain(work.records().iter().filter(|record| record.job == job));
    own || beside || records.any(|record| follows(record.due_at, record.trigger, record.attempt))
}

fn key_of(known: &KnownRun) -> FiringKey {
    let Firing { due_at, trigger, .. } = known.held.firing;
    FiringKey { job: job_of(known), due_at, trigger }
}

/// The row that says Executing for the run, if need be from now on.
fn row_for(work: &mut UnitOfWork, known: &KnownRun, losses_until: Timestamp) -> Option<RowKey> {
    let held = known.held;
    let job = job_of(known);
    let (own, key) = (RowKey::Job(job), key_of(known));
    let beside = RowKey::Concurrent(key);
    let executes = |work: &UnitOfWork, row: &RowKey| matches!(work.phase(row), Some((Phase::Executing(of), ..)) if of.run == held.run && of.session == held.session);
    if let Some(carries) = [own, beside].into_iter().find(|row| executes(work, row)) {
        return Some(carries);
    }
    let event = Event::WriteBack { held, losses_until };
    if work.concurrent(&key).is_some() {
        work.apply_concurrent(&key, &event).ok()?;
        work.lift(job, highest_version_until(losses_until));
        return Some(beside);
    }
    let applied = work.apply(job, &event).ok()?;
    Some(applied.concurrent.map_or(own, RowKey::Concurrent))
}

/// Before a person's change of these jobs, as it records what their rows wait for. Rows that may have lost commits are moved first, behind the
/// due times that have a run or a record. A record that ends with such a due time would not be written at all.
pub(in crate::store) fn reconcile_changed(
    work: &mut UnitOfWork,
    jobs: impl IntoIterator<Item = JobId>,
    rows: &Rows,
) -> Result<(), Need> {
    let waits = |job: JobId| Some((job, work.job(job)?.0.armed?.due_at));
    let overdue = jobs.into_iter().filter_map(waits).filter(|(_, due_at)| *due_at <= rows.now);
    let mut overdue: Vec<(JobId, Timestamp)> = overdue.collect();
    let Some(since) = overdue.iter().map(|(_, due_at)| *due_at).min() else { return Ok(()) };
    let Some(until) = rows.require_losses(since)?.filter(|_| enabled(Guard::LostCommitsKnown)) else { return Ok(()) };
    overdue.retain(|(_, due_at)| *due_at <= until);
    reconcile(work, &overdue, rows)
}

/// Before a claim of rows that may have lost commits: each is moved behind the due times that have a run or a record.
pub(super) fn reconcile(work: &mut UnitOfWork, jobs: &[(JobId, Timestamp)], rows: &Rows) -> Result<(), Need> {
    let Some(since) = jobs.iter().map(|(_, armed_at)| *armed_at).min() else { return Ok(()) };
    let ids: Vec<JobId> = jobs.iter().map(|(job, _)| *job).collect();
    rows.require_concurrent_of(ids.clone())?;
    rows.require_history(&ids, since)?;
    for (job, _) in jobs {
        let known = known_dues(*job, rows);
        // Most rows have lost nothing.
        let _behind: Result<_, Rejected> = work.apply(*job, &Event::Reconcile { known });
    }
    Ok(())
}

/// The due times of the schedule that have a record or a row beside the job's.
fn known_dues(job: JobId, rows: &Rows) -> Vec<KnownDue> {
    let recorded = rows.history.get(&job).into_iter().flat_map(|(_, records)| records);
    let recorded = recorded.filter(|record| record.trigger != Trigger::Manual).map(|record| KnownDue {
        due_at: record.due_at,
        attempt: record.attempt,
        first_due_at: record.first_due_at,
    });
    let beside = rows.concurrent.iter().filter(|(key, row)| key.job == job && row.is_some());
    let beside = beside.filter(|(key, _)| key.trigger != Trigger::Manual).map(|(key, _)| KnownDue {
        due_at: key.due_at,
        attempt: u32::MAX,
        first_due_at: key.due_at,
    });
    let mut known: Vec<KnownDue> = recorded.chain(beside).collect();
    known.sort_unstable();
    known
}
