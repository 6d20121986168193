//! The checks of what one call has committed, whatever the store.

use carillon_domain::firing::{Held, Phase, TransitionKind};
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::invariants::{self as must, Invariant, Verdict, Violation};
use carillon_doubles::innodb::Commit;

use super::World;

/// The writer of a commit. A store does not tell why it wrote a row, so the call stands for what it may have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Writer {
    /// The name of the call.
    pub call: &'static str,
    /// Whose rows it may take what is prepared from, where that is known: the holder's own, or those of the swept one.
    pub of: Option<SessionId>,
}

impl Writer {
    /// The kind of transition by which this call may change what `held` says, or one that never may.
    fn kind(self, held: &Held) -> TransitionKind {
        let its_own = self.of.is_none_or(|session| session == held.session);
        match self.call {
            "start" if its_own => TransitionKind::Started,
            "release" if its_own => TransitionKind::Reset,
            "write_back" => TransitionKind::WrittenBack,
            "sweep" if its_own => TransitionKind::SweptUnstarted,
            "pause" | "resume" => TransitionKind::Paused,
            "put_jobs" => TransitionKind::Updated,
            "delete_job" => TransitionKind::Deleted,
            "cancel" => TransitionKind::CancelledUnstarted,
            "trigger" => TransitionKind::Triggered,
            _ => TransitionKind::Claimed,
        }
    }
}

impl<Own> World<Own> {
    /// Judges what a call has written: S4 to S8.
    pub fn committed(&mut self, commit: &Commit, writer: Writer) {
        let verdict = self.judge_commit(commit, writer);
        self.must(verdict);
    }

    fn judge_commit(&mut self, commit: &Commit, writer: Writer) -> Verdict {
        commit.ended.iter().try_for_each(|session| self.none_lives(*session))?;
        for (before, after) in &commit.jobs {
            if let (Some(before), Some(after)) = (before, after) {
                must::row_goes_forward(before, after)?;
            }
        }
        for (before, after) in &commit.concurrent {
            if let (Some(before), Some(after)) = (before, after) {
                must::never_decreases("the version of a row beside", before.version + 1, after.version)?;
            }
        }
        for (_, before, after) in phases(commit) {
            if let Some(before @ Phase::Prepared(held)) = before {
                must::prepared_is_kept(before, after, writer.kind(held))?;
            }
        }
        if writer.call == "write_back" {
            self.written_back_lives(commit)?;
        } else {
            self.starts_are_legal(commit)?;
        }
        must::recorded_once(&commit.records)
    }

    /// S3 of what was written back: only what lives is. An end that was recorded leaves no run in a row.
    fn written_back_lives(&self, commit: &Commit) -> Verdict {
        for (_, before, after) in phases(commit) {
            let Some(Phase::Executing(held)) = after.filter(|after| before != Some(*after)) else { continue };
            if !self.history.has_started(held) {
                let sentence = format!("run {} was written back and was never started", held.run);
                return Err(Violation { invariant: Invariant::S3, sentence });
            }
        }
        Ok(())
    }

    /// S5, and S7 of the fencing token, for every row that went to Executing.
    fn starts_are_legal(&mut self, commit: &Commit) -> Verdict {
        let ran = |held: &Held| {
            let runs =
                |before: Option<&Phase>| matches!(before, Some(Phase::Executing(known)) if known.run == held.run);
            phases(commit).any(|(_, before, _)| runs(before))
        };
        let mut tokens = Vec::new();
        for (job, _, after) in phases(commit) {
            let Some(Phase::Executing(held)) = after.filter(|after| after.held().is_some_and(|held| !ran(held))) else {
                continue;
            };
            let own = commit.jobs.iter().find_map(|(before, _)| before.as_ref().filter(|row| row.id == job));
            let Some(own) = own else {
                let sentence = format!("run {} of job {job} started without its row", held.run);
                return Err(Violation { invariant: Invariant::S5, sentence });
            };
            must::starts_where_allowed(own, held.firing.trigger, commit.now)?;
            tokens.push((job, held.fencing_token));
        }
        // Several may start in one commit, in an order that the rows do not tell.
        tokens.sort_unstable();
        let follows = !self.excused.tokens;
        tokens.into_iter().try_for_each(|(job, token)| self.history.token(job, token, follows))
    }
}

/// The phases of every row that was written, before and after.
pub fn phases(commit: &Commit) -> impl Iterator<Item = (JobId, Option<&Phase>, Option<&Phase>)> {
    let jobs = commit.jobs.iter().filter_map(|(before, after)| {
        let row = before.as_ref().or(after.as_ref())?;
        Some((row.id, before.as_ref().map(|row| &row.phase), after.as_ref().map(|row| &row.phase)))
    });
    let concurrent = commit.concurrent.iter().filter_map(|(before, after)| {
        let row = before.as_ref().or(after.as_ref())?;
        Some((row.key.job, before.as_ref().map(|row| &row.phase), after.as_ref().map(|row| &row.phase)))
    });
    jobs.chain(concurrent)
}
