//! The promises of `carillon_domain::invariants`, over each write to the store and over each state.

use std::sync::Arc;

use carillon_domain::firing::{Held, JobState, Phase, TransitionKind};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::invariants::{self as must, Invariant, Verdict, Violation};
use carillon_domain::job::{OnLost, Overlap};
use carillon_domain::node::port::RowKey;
use carillon_domain::run::Trigger;
use carillon_domain::time::Timestamp;
use carillon_doubles::Backup;
use carillon_store::SessionState;

use super::coverage::Situation;
use super::world::{Life, World};

/// Who writes. S4 minds it: a store does not tell why it wrote a row, so the writer stands for what it may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    /// The holder starts what it holds.
    Start(SessionId),
    /// The holder gives back what it holds.
    Reset(SessionId),
    /// The rows of that session are swept.
    Sweep(SessionId),
    /// Rows that nobody holds are claimed.
    Claim,
    /// A person who may withdraw what is prepared.
    Person,
    /// Any call that leaves alone what is prepared.
    NoneThatMay,
}

impl Writer {
    /// A reason that this writer may have for changing what `held` says, or one that no write may have.
    fn why(self, held: &Held) -> TransitionKind {
        match self {
            Writer::Start(session) if session == held.session => TransitionKind::Started,
            Writer::Reset(session) if session == held.session => TransitionKind::Reset,
            Writer::Sweep(session) if session == held.session => TransitionKind::SweptUnstarted,
            Writer::Person => TransitionKind::Paused,
            _ => TransitionKind::Claimed,
        }
    }

    /// Whether it acts on a set of rows, and so under the locks of their partitions.
    fn needs_locks(self) -> bool {
        matches!(self, Writer::Claim | Writer::Sweep(_))
    }
}

/// S5 for one start.
pub(super) fn may_start(row: &JobState, trigger: Trigger, now: Timestamp) -> Verdict {
    must::starts_where_allowed(row, trigger, now)
}

fn broken(invariant: Invariant, sentence: String) -> Verdict {
    Err(Violation { invariant, sentence })
}

impl World {
    /// Keeps the first violation.
    pub(super) fn must(&mut self, verdict: Verdict) {
        if let Err(violation) = verdict {
            self.note(|| format!("VIOLATED {violation}"));
            self.violation.get_or_insert(violation);
        }
    }

    /// Looks at what one call has written.
    pub(super) fn watch_write(&mut self, before: &Backup, writer: Writer) {
        let after = Arc::clone(&self.store);
        let verdict = rows_go_forward(before, &after)
            .and_then(|()| prepared_is_kept(before, &after, writer))
            .and_then(|()| sequences_go_forward(before, &after))
            .and_then(|()| sets_are_locked(before, &after, writer))
            .and_then(|()| recorded_once(&after))
            .and_then(|()| self.starts_are_legal(before, &after));
        self.must(verdict);
    }

    /// S5, and S7 of the fencing token, for every row that went to Executing.
    fn starts_are_legal(&mut self, before: &Backup, after: &Backup) -> Verdict {
        for (key, phase, _) in after.rows() {
            let Phase::Executing(held) = phase else { continue };
            if before.rows().any(|(_, known, _)| matches!(known, Phase::Executing(known) if known.run == held.run)) {
                continue;
            }
            let job = job_of(&key);
            let row = before.job(job).or_else(|| after.job(job));
            match row {
                Some(row) => may_start(row, held.firing.trigger, self.utc())?,
                None => broken(Invariant::S5, format!("job {job} started after it was deleted"))?,
            }
            let last = self.history.tokens.insert(job, held.fencing_token).unwrap_or(0);
            if !self.history.back.as_ref().is_some_and(|back| back.unnoticed) {
                must::never_decreases("a fencing token", last + 1, held.fencing_token)?;
            }
        }
        Ok(())
    }

    /// Looks at what lives now.
    pub(super) fn watch_state(&mut self) {
        let verdict = self.one_live_run().and_then(|()| self.children_have_rows());
        self.must(verdict);
    }

    /// After the database went back a run may live that it knows nothing of: docs/lost-commits.md tells people to look.
    fn one_live_run(&self) -> Verdict {
        if self.history.back.is_some() {
            return Ok(());
        }
        let may_overlap = |_: JobId| self.bounds.overlap == Overlap::Allow;
        must::one_live_run(self.live().map(|(_, run, job)| (job, run)), may_overlap)
    }

    fn children_have_rows(&self) -> Verdict {
        if self.history.back.is_some() {
            return Ok(());
        }
        for process in self.processes.iter().filter(|process| process.life == Life::Alive) {
            let session = process.session;
            let lives = |beat: carillon_store::SessionBeat| beat.id == session && beat.state != SessionState::Ended;
            if !self.store.sessions().any(lives) {
                continue;
            }
            for run in process.children.keys() {
                let carries = |phase: &&Phase| phase.held().is_some_and(|held| held.run == *run);
                let row = self.store.rows().map(|(_, phase, _)| phase).find(carries);
                must::child_has_its_row(session, *run, row)?;
            }
        }
        Ok(())
    }

    /// S2 over all starts there were, those that the database has forgotten included.
    pub(super) fn watch_starts(&mut self) {
        let back = self.history.back.clone();
        if back.as_ref().is_some_and(|back| back.unnoticed || self.bounds.on_lost == OnLost::Rerun) {
            return;
        }
        let definition = self.bounds.definitions().swap_remove(0);
        let starts = self.history.starts.clone();
        for job in starts.iter().map(|(key, _)| key.job) {
            let of_job = starts.iter().filter(|(key, _)| key.job == job).copied();
            self.must(must::starts_once(&definition, of_job));
        }
        if starts.iter().any(|(_, attempt)| *attempt > 1) {
            self.coverage.count(Situation::FurtherAttempt);
        }
    }
}

fn job_of(key: &RowKey) -> JobId {
    match key {
        RowKey::Job(id) => *id,
        RowKey::Concurrent(key) => key.job,
    }
}

fn rows_go_forward(before: &Backup, after: &Backup) -> Verdict {
    for row in before.jobs() {
        if let Some(now) = after.job(row.id).filter(|now| *now != row) {
            must::row_goes_forward(row, now)?;
        }
    }
    for row in before.concurrent() {
        let changed = after.concurrent().find(|now| now.key == row.key && *now != row);
        if changed.is_some_and(|now| now.version <= row.version) {
            broken(Invariant::S7, format!("{:?} was written and its version did not grow", row.key))?;
        }
    }
    Ok(())
}

fn prepared_is_kept(before: &Backup, after: &Backup, writer: Writer) -> Verdict {
    for (key, phase, _) in before.rows() {
        let Phase::Prepared(held) = phase else { continue };
        let now = after.rows().find(|(other, ..)| *other == key).map(|(_, phase, _)| phase);
        must::prepared_is_kept(phase, now, writer.why(held))?;
    }
    Ok(())
}

fn sequences_go_forward(before: &Backup, after: &Backup) -> Verdict {
    for beat in before.sessions() {
        if let Some(now) = after.sessions().find(|now| now.id == beat.id) {
            must::never_decreases("a heartbeat's sequence", beat.seq, now.seq)?;
            let revived = beat.state == SessionState::Ended && now.state != SessionState::Ended;
            must::never_decreases("the life of a session that was ended", revived, false)?;
        }
    }
    Ok(())
}

/// S7 of the locks: what changes a set of rows has moved the epoch of each of their partitions on.
fn sets_are_locked(before: &Backup, after: &Backup, writer: Writer) -> Verdict {
    for (partition, (epoch, now)) in before.epochs().iter().zip(after.epochs()).enumerate() {
        must::never_decreases("a lock's epoch", epoch, now)?;
        let here = |key: &RowKey| before.partition(job_of(key)).map(usize::from) == Some(partition);
        let changed = || after.rows().any(|row| here(&row.0) && !before.rows().any(|known| known == row));
        if writer.needs_locks() && epoch == now && changed() {
            broken(Invariant::S7, format!("rows of partition {partition} were written without its lock"))?;
        }
    }
    Ok(())
}

fn recorded_once(after: &Backup) -> Verdict {
    must::recorded_once(after.records())?;
    match after.record_conflicts() {
        0 => Ok(()),
        more => broken(Invariant::S6, format!("{more} records of a firing that has one already")),
    }
}
