//! Prepared -> Executing in the tiny store, with what a real one asks before: whether others of the job live.

use carillon_domain::firing::{Event, FiringKey, Held, Phase, Rejected, TransitionKind, start_concurrent};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants as must;
use carillon_domain::job::Overlap;
use carillon_domain::lost_commits::may_have_started;
use carillon_domain::node::port::{RowKey, RunRef, StartAnswer};

use super::{Me, Store};

impl Store {
    pub fn start(&mut self, me: Me, refs: &[RunRef]) -> Vec<StartAnswer> {
        let session = me.0;
        if self.withholds(me) {
            return vec![StartAnswer::Withheld; refs.len()];
        }
        let lives = self.lives(session);
        refs.iter().map(|at| if lives { self.start_one(session, at) } else { StartAnswer::Gone }).collect()
    }

    pub fn start_one(&mut self, session: SessionId, at: &RunRef) -> StartAnswer {
        let carries = |held: &Held| held.run == at.run && held.session == session;
        match self.row(&at.row).filter(|(phase, _)| matches!(phase, Phase::Prepared(held) if carries(held))) {
            None => return StartAnswer::Gone,
            Some((_, version)) if version != at.version => return StartAnswer::Moved,
            Some((phase, _)) if self.may_have_started(&at.row, &phase) => return StartAnswer::Withheld,
            Some(_) => {}
        }
        match self.apply_start(&at.row, session, at.run) {
            Err(Rejected::Early(start_at)) => StartAnswer::Early { start_at },
            Ok(TransitionKind::Started | TransitionKind::StartedConcurrently) => match self.carrier(session, at.run) {
                Some((row, Phase::Executing(held), version)) => {
                    let at = RunRef { row, run: at.run, version };
                    StartAnswer::Started { at, held, replace_at: self.replace_at(&row) }
                }
                _ => StartAnswer::Gone,
            },
            Ok(_) | Err(_) => StartAnswer::Gone,
        }
    }

    fn may_have_started(&self, row: &RowKey, phase: &Phase) -> bool {
        let id = match row {
            RowKey::Job(id) => id,
            RowKey::Concurrent(key) => &key.job,
        };
        let lost = |held: &Held| may_have_started(&self.jobs[id].job, held.firing.due_at, self.losses_until);
        phase.held().is_some_and(lost)
    }

    /// Whether anything stands beside the row of a job that allows no overlap.
    pub fn must_wait(&self, row: &RowKey) -> bool {
        let RowKey::Job(id) = row else { return false };
        self.jobs[id].job.overlap != Overlap::Allow && self.concurrent.keys().any(|key| key.job == *id)
    }

    /// As real stores do: unless others of the job live that it may not overlap.
    fn apply_start(&mut self, row: &RowKey, session: SessionId, run: RunId) -> Result<TransitionKind, Rejected> {
        let id = match row {
            RowKey::Job(id) => *id,
            RowKey::Concurrent(key) => key.job,
        };
        let overlap = self.jobs[&id].job.overlap;
        let of_job =
            |other: &RowKey| matches!(other, RowKey::Concurrent(key) if key.job == id) || *other == RowKey::Job(id);
        let executes = |phase: &Phase| matches!(phase, Phase::Executing(_));
        let others: Vec<_> = self.rows().into_iter().filter(|(other, ..)| of_job(other) && other != row).collect();
        let blocks = |(_, phase, _): &(RowKey, Phase, u64)| matches!(row, RowKey::Job(_)) || executes(phase);
        if overlap != Overlap::Allow && others.iter().any(blocks) {
            let kind = self.apply(row, &Event::Defer { session, run })?;
            if kind == TransitionKind::Deferred && overlap == Overlap::Replace && *row == RowKey::Job(id) {
                for (other, ..) in &others {
                    let _asked_before = self.apply(other, &Event::Supersede);
                }
            }
            return Ok(kind);
        }
        let alone = !others.iter().any(|(_, phase, _)| executes(phase));
        let kind = match row {
            RowKey::Job(_) => self.apply(row, &Event::Start { session, run })?,
            RowKey::Concurrent(key) => self.start_concurrent(*key, session, run)?,
        };
        if !matches!(kind, TransitionKind::Started | TransitionKind::StartedConcurrently) {
            return Ok(kind);
        }
        assert!(overlap == Overlap::Allow || alone, "S1: another run of job {id} executes");
        let (_, phase, _) = self.carrier(session, run).expect("a row carries what has started");
        let token = phase.held().map_or(0, |held| held.fencing_token);
        let last = self.tokens.insert(id, token).unwrap_or(0);
        must::never_decreases("a fencing token", last + 1, token).unwrap();
        Ok(kind)
    }

    fn start_concurrent(&mut self, key: FiringKey, session: SessionId, run: RunId) -> Result<TransitionKind, Rejected> {
        let stored = self.jobs.get_mut(&key.job).ok_or(Rejected::Deleted)?;
        let state = stored.state.as_ref().ok_or(Rejected::Deleted)?;
        must::starts_where_allowed(state, key.trigger, self.now).unwrap();
        let row = self.concurrent.get_mut(&key).ok_or(Rejected::NothingDue)?;
        let (after, done) = start_concurrent(state, row, (session, run), self.now)?;
        must::row_goes_forward(state, &after).unwrap();
        stored.state = Some(after);
        *row = done.next.ok_or(Rejected::NothingDue)?;
        Ok(done.kind)
    }
}
