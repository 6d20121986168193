//! The checks of each commit that need what came before: S3 of children, S6 of records, and the accounts of due times.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::firing::{FiringKey, Held, Phase};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::invariants::{self as must, Invariant, Verdict, Violation};
use carillon_domain::run::RunRecord;
use carillon_doubles::innodb::Commit;

use super::process::Seat;
use super::trace::Trace;
use crate::world::{Accounts, World, phases};

/// The knowledge of rows and records, kept up with every commit.
#[derive(Default)]
pub(super) struct Checks {
    pub accounts: Accounts,
    pub trace: Trace,
    /// Rows that execute: the job and what is held.
    executing: BTreeMap<RunId, (JobId, Held)>,
    recorded: BTreeSet<RunId>,
    attempts: BTreeSet<(FiringKey, u32)>,
    pub commits: u64,
    pub counted: BTreeMap<&'static str, u64>,
}

impl Checks {
    fn count(&mut self, what: &'static str, times: u64) {
        *self.counted.entry(what).or_default() += times;
    }

    pub fn committed(&mut self, commit: &Commit, world: &mut World<Seat>) -> Verdict {
        self.commits += 1;
        for (id, job, timeline) in &commit.defined {
            world.history.defined(*id, job);
            self.accounts.define(*id, timeline, commit.now);
        }
        let removed = commit.jobs.iter().filter(|(_, after)| after.is_none());
        let removed = removed.filter_map(|(before, _)| before.as_ref().map(|row| row.id));
        commit.deleted.iter().copied().chain(removed).for_each(|id| self.accounts.end(id, commit.now));
        self.rows_written(commit);
        for (_, before, _) in phases(commit) {
            self.still_carried(before, world)?;
        }
        commit.records.iter().try_for_each(|record| self.recorded(record))?;
        self.trace.note(commit.by, [commit.jobs.len() as u64, commit.records.len() as u64]);
        Ok(())
    }

    fn rows_written(&mut self, commit: &Commit) {
        // A run that moves beside its job's row leaves the one and enters the other.
        for (_, before, _) in phases(commit) {
            if let Some(Phase::Executing(held)) = before {
                self.executing.remove(&held.run);
            }
            self.counts(commit, before);
        }
        for (job, _, after) in phases(commit) {
            if let Some(Phase::Executing(held)) = after {
                self.executing.insert(held.run, (job, *held));
            }
        }
        for (before, after) in &commit.jobs {
            let Some(id) = before.as_ref().or(after.as_ref()).map(|row| row.id) else { continue };
            self.accounts.written(id, commit.now);
            let noted = after.as_ref().map_or([id.0, 0, 0], |row| [id.0, row.version, row.cursor.as_ms() as u64]);
            self.trace.note("row", noted);
        }
        for (before, after) in &commit.concurrent {
            let Some(key) = before.as_ref().or(after.as_ref()).map(|row| row.key) else { continue };
            let version = after.as_ref().map_or(0, |row| row.version);
            self.trace.note("beside", [key.job.0, key.due_at.as_ms() as u64, version]);
        }
    }

    /// S3: no child lives whose row has let go of it.
    fn still_carried(&self, before: Option<&Phase>, world: &World<Seat>) -> Verdict {
        let Some(Phase::Executing(held)) = before else { return Ok(()) };
        if self.executing.contains_key(&held.run) || !world.lives(held.session, held.run) {
            return Ok(());
        }
        must::child_has_its_row(held.session, held.run, None)
    }

    fn counts(&mut self, commit: &Commit, before: Option<&Phase>) {
        match (commit.by, before) {
            ("settle", Some(_)) => self.count("settled", 1),
            ("sweep", Some(Phase::Prepared(_))) => self.count("swept unstarted", 1),
            ("sweep", Some(Phase::Executing(_))) => self.count("swept as lost", 1),
            ("release", Some(_)) => self.count("released", 1),
            _ => {}
        }
    }

    /// S6 as far as one record tells it.
    fn recorded(&mut self, record: &RunRecord) -> Verdict {
        let key = FiringKey { job: record.job, due_at: record.due_at, trigger: record.trigger };
        let again = !self.attempts.insert((key, record.attempt));
        match (self.recorded.insert(record.id), again) {
            (true, true) => {
                let sentence = format!("attempt {} of {key:?} is recorded twice", record.attempt);
                return Err(Violation { invariant: Invariant::S6, sentence });
            }
            // The same fact.
            (false, _) => return Ok(()),
            (true, false) => {}
        }
        self.accounts.record(record);
        self.trace.note(record.status.as_str(), [record.id.parts().0, record.id.parts().1]);
        Ok(())
    }

    /// The job that a run is of, and the phase of the row that carries it.
    pub fn row_of(&self, run: RunId) -> (Option<JobId>, Option<Phase>) {
        self.executing.get(&run).map(|(job, held)| (*job, Phase::Executing(*held))).unzip()
    }

    /// A run that executes, for people who cancel one.
    pub fn some_run(&self, at: u64) -> Option<RunId> {
        let count = u64::try_from(self.executing.len()).unwrap_or(0);
        let at = usize::try_from(at.checked_rem(count)?).unwrap_or(0);
        self.executing.keys().nth(at).copied()
    }

    /// S6 over everything, at the end: how many due times there were.
    pub fn settle_accounts(&self) -> Result<u64, Violation> {
        self.accounts.check()
    }
}
