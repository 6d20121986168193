//! The invariants, checked as things happen: of each commit the rows that it wrote, of each spawn the run.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::firing::{ConcurrentRun, FiringKey, Held, JobState, Phase, TransitionKind};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants::{self as must, Invariant, Verdict, Violation};
use carillon_domain::job::{Job, OnLost, Overlap};
use carillon_domain::run::RunRecord;
use carillon_domain::time::BootTime;
use carillon_doubles::innodb::{Change, Commit};

use super::accounts::Accounts;
use super::trace::Trace;

#[derive(Default)]
struct OfJob {
    ever_allowed: bool,
    /// Whether a firing of it may be started again.
    may_repeat: bool,
    deleted: bool,
    last_token: u64,
}

/// The knowledge of rows and children, kept up with every commit.
#[derive(Default)]
pub(super) struct Checks {
    pub accounts: Accounts,
    pub trace: Trace,
    jobs: BTreeMap<JobId, OfJob>,
    /// Rows that execute: the job and whose it is.
    executing: BTreeMap<RunId, (JobId, SessionId)>,
    /// Children that live: of which job, and whose.
    children: BTreeMap<RunId, (JobId, SessionId)>,
    of_job: BTreeMap<JobId, Vec<RunId>>,
    of_session: BTreeMap<SessionId, usize>,
    started: BTreeMap<FiringKey, Vec<u32>>,
    /// Those of the starts in the commit at hand.
    tokens: Vec<(JobId, u64)>,
    recorded: BTreeSet<RunId>,
    attempts: BTreeSet<(FiringKey, u32)>,
    pub firings: u64,
    pub commits: u64,
    pub counted: BTreeMap<&'static str, u64>,
}

fn violated(invariant: Invariant, sentence: String) -> Verdict {
    Err(Violation { invariant, sentence })
}

impl Checks {
    fn count(&mut self, what: &'static str, times: u64) {
        *self.counted.entry(what).or_default() += times;
    }

    pub fn committed(&mut self, commit: &Commit) -> Verdict {
        self.commits += 1;
        for (id, job, timeline) in &commit.defined {
            let of_job = self.jobs.entry(*id).or_default();
            of_job.ever_allowed |= job.overlap == Overlap::Allow;
            of_job.may_repeat |= job.retry.max_attempts > 1 || job.on_lost == OnLost::Rerun;
            self.accounts.define(*id, timeline, commit.now);
        }
        for id in &commit.deleted {
            self.jobs.entry(*id).or_default().deleted = true;
            self.accounts.end(*id, commit.now);
        }
        for session in &commit.ended {
            self.nobody_lives(*session)?;
        }
        // A run that moves beside its job's row leaves the one and enters the other.
        for (before, after) in &commit.jobs {
            self.left(before.as_ref().map(|row| &row.phase), after.as_ref().map(|row| &row.phase));
        }
        for (before, after) in &commit.concurrent {
            self.left(before.as_ref().map(|row| &row.phase), after.as_ref().map(|row| &row.phase));
        }
        for change in &commit.jobs {
            self.job_written(commit, change)?;
        }
        for change in &commit.concurrent {
            self.concurrent_written(commit, change)?;
        }
        for (before, _) in &commit.jobs {
            self.still_carried(before.as_ref().map(|row| &row.phase))?;
        }
        for (before, _) in &commit.concurrent {
            self.still_carried(before.as_ref().map(|row| &row.phase))?;
        }
        // Several may start in one commit, in an order that the rows do not tell.
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.sort_unstable();
        tokens.into_iter().try_for_each(|(job, token)| self.token(job, token))?;
        commit.records.iter().try_for_each(|record| self.recorded(record))?;
        self.trace.note(commit.by, [commit.jobs.len() as u64, commit.records.len() as u64]);
        Ok(())
    }

    fn left(&mut self, before: Option<&Phase>, after: Option<&Phase>) {
        if let Some(Phase::Executing(held)) = before
            && !matches!(after, Some(Phase::Executing(now)) if now.run == held.run)
        {
            self.executing.remove(&held.run);
        }
    }

    /// S3: no child lives whose row has let go of it.
    fn still_carried(&self, before: Option<&Phase>) -> Verdict {
        let Some(Phase::Executing(held)) = before else { return Ok(()) };
        if self.executing.contains_key(&held.run) || !self.children.contains_key(&held.run) {
            return Ok(());
        }
        must::child_has_its_row(held.session, held.run, None)
    }

    fn entered(&mut self, job: JobId, after: Option<&Phase>) {
        if let Some(Phase::Executing(held)) = after {
            self.executing.insert(held.run, (job, held.session));
        }
    }

    fn job_written(&mut self, commit: &Commit, (before, after): &Change<JobState>) -> Verdict {
        let Some(id) = before.as_ref().or(after.as_ref()).map(|row| row.id) else { return Ok(()) };
        self.accounts.written(id, commit.now);
        let phase = after.as_ref().map(|row| row.phase);
        if let (Some(before), Some(after)) = (before, after) {
            must::row_goes_forward(before, after)?;
        }
        if let Some(before) = before {
            kept(commit, &before.phase, phase.as_ref())?;
            self.counts(commit, &before.phase);
            if let (Phase::Prepared(held), Some(Phase::Executing(now))) = (&before.phase, &phase) {
                must::starts_where_allowed(before, held.firing.trigger, commit.now)?;
                self.tokens.push((id, now.fencing_token));
            }
        }
        if before.is_some() && after.is_none() {
            self.accounts.end(id, commit.now);
        }
        self.entered(id, phase.as_ref());
        let noted = after.as_ref().map_or([id.0, 0, 0], |row| [id.0, row.version, row.cursor.as_ms() as u64]);
        self.trace.note("row", noted);
        Ok(())
    }

    fn concurrent_written(&mut self, commit: &Commit, (before, after): &Change<ConcurrentRun>) -> Verdict {
        let Some(key) = before.as_ref().or(after.as_ref()).map(|row| row.key) else { return Ok(()) };
        let phase = after.as_ref().map(|row| row.phase);
        if let (Some(before), Some(after)) = (before, after) {
            must::never_decreases("the version of a row beside", before.version + 1, after.version)?;
        }
        let started = !matches!(before.as_ref().map(|row| &row.phase), Some(Phase::Executing(_)));
        if let Some(Phase::Executing(held)) = phase.as_ref().filter(|_| started) {
            let own = commit.jobs.iter().find_map(|(row, _)| row.as_ref().filter(|row| row.id == key.job));
            let Some(own) = own else {
                return violated(
                    Invariant::S5,
                    format!("run {} beside job {} started without its row", held.run, key.job),
                );
            };
            must::starts_where_allowed(own, key.trigger, commit.now)?;
            self.tokens.push((key.job, held.fencing_token));
        }
        if let Some(before) = before {
            kept(commit, &before.phase, phase.as_ref())?;
            self.counts(commit, &before.phase);
        }
        self.entered(key.job, phase.as_ref());
        self.trace.note("beside", [key.job.0, key.due_at.as_ms() as u64, after.as_ref().map_or(0, |row| row.version)]);
        Ok(())
    }

    /// S7: each start of a job carries a higher token than the one before.
    fn token(&mut self, job: JobId, token: u64) -> Verdict {
        let of_job = self.jobs.entry(job).or_default();
        must::never_decreases("a fencing token", of_job.last_token + 1, token)?;
        of_job.last_token = token;
        Ok(())
    }

    fn counts(&mut self, commit: &Commit, before: &Phase) {
        match (commit.by, before) {
            ("settle", _) => self.count("settled", 1),
            ("sweep", Phase::Prepared(_)) => self.count("swept unstarted", 1),
            ("sweep", Phase::Executing(_)) => self.count("swept as lost", 1),
            ("release", _) => self.count("released", 1),
            _ => {}
        }
    }

    /// S6 as far as one record tells it.
    fn recorded(&mut self, record: &RunRecord) -> Verdict {
        must::recorded_once([record])?;
        let key = FiringKey { job: record.job, due_at: record.due_at, trigger: record.trigger };
        let again = !self.attempts.insert((key, record.attempt));
        match (self.recorded.insert(record.id), again) {
            (true, true) => {
                return violated(Invariant::S6, format!("attempt {} of {key:?} is recorded twice", record.attempt));
            }
            // The same fact.
            (false, _) => return Ok(()),
            (true, false) => {}
        }
        self.accounts.record(record);
        self.trace.note(record.status.as_str(), [record.id.parts().0, record.id.parts().1]);
        Ok(())
    }

    /// S8 for the survivors, when a session is ended or removed, or its rows are swept.
    fn nobody_lives(&self, session: SessionId) -> Verdict {
        if self.of_session.get(&session).is_none_or(|lives| *lives == 0) {
            return Ok(());
        }
        must::dead_before_sweep(session, self.children.iter().map(|(run, (_, of))| (*of, *run)))
    }

    /// The keeper is about to start a child.
    pub fn spawn(
        &mut self,
        (session, held, job): (SessionId, &Held, &Job),
        (lease_until, now): (BootTime, BootTime),
    ) -> Result<JobId, Violation> {
        must::starts_within_lease(lease_until, now)?;
        must::not_live_yet(held.run, self.children.contains_key(&held.run))?;
        let Some((id, _)) = self.executing.get(&held.run).copied().filter(|(_, of)| *of == session) else {
            must::child_has_its_row(session, held.run, None)?;
            return Ok(JobId(0));
        };
        let of_job = self.jobs.entry(id).or_default();
        let (ever_allowed, may_repeat) = (of_job.ever_allowed, of_job.may_repeat);
        let live = self.of_job.entry(id).or_default();
        live.push(held.run);
        must::one_live_run(live.iter().map(|run| (id, *run)), |_| ever_allowed)?;
        let key = FiringKey { job: id, due_at: held.firing.due_at, trigger: held.firing.trigger };
        let starts = self.started.entry(key).or_default();
        starts.push(held.firing.attempt);
        let repeating = Job { on_lost: if may_repeat { OnLost::Rerun } else { job.on_lost }, ..job.clone() };
        let judged = if may_repeat { &repeating } else { job };
        must::starts_once(judged, starts.iter().map(|attempt| (key, *attempt)))?;
        self.children.insert(held.run, (id, session));
        *self.of_session.entry(session).or_default() += 1;
        self.firings += 1;
        self.trace.note("spawn", [held.run.parts().0, held.run.parts().1, now.as_ms()]);
        Ok(id)
    }

    /// A child is gone, however.
    pub fn died(&mut self, run: RunId) {
        if let Some((job, session)) = self.children.remove(&run) {
            self.of_job.entry(job).or_default().retain(|other| *other != run);
            *self.of_session.entry(session).or_default() -= 1;
        }
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

/// S4: who may take a prepared firing from its holder. Which transition it was is told by the call and the rows.
fn kept(commit: &Commit, before: &Phase, after: Option<&Phase>) -> Verdict {
    let why = match commit.by {
        "start" => TransitionKind::Started,
        "release" => TransitionKind::Reset,
        "sweep" => TransitionKind::SweptUnstarted,
        "pause" | "resume" => TransitionKind::Paused,
        "put_jobs" => TransitionKind::Updated,
        "delete_job" => TransitionKind::Deleted,
        "cancel" => TransitionKind::CancelledUnstarted,
        "trigger" => TransitionKind::Triggered,
        _ => TransitionKind::Claimed,
    };
    must::prepared_is_kept(before, after, why)
}
