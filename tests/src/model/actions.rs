//! What may happen next in a state.

use std::sync::Arc;

use carillon_domain::firing::Phase;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::Effect;
use carillon_domain::run::Status;
use carillon_domain::uncertain::went_back;

use super::world::{Life, Process, World};

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Time goes on to the next moment at which something is due, and that happens.
    Pass,
    /// What becomes of the call that was sent first.
    Call(Fate),
    /// A request that was late, or whose sender has given up, reaches the store.
    Arrive(usize),
    /// A late answer reaches its node.
    Hear(usize),
    /// A child ends by itself.
    Ends(SessionId, RunId, Status),
    /// A node process is killed.
    Crash(usize),
    /// A node process is stopped; its keeper goes on.
    Freeze(usize),
    /// It goes on.
    Resume(usize),
    /// Nothing that the node sends arrives any more.
    Cut(usize),
    /// The node is told to end in good order.
    Drain(usize),
    /// A new node process begins.
    Boot,
    /// A person pauses a job.
    Pause(JobId),
    /// A person ends the pause.
    Unpause(JobId),
    /// A person deletes a job.
    Delete(JobId),
    /// A person wants a run now.
    Trigger(JobId),
    /// A person wants a run to end.
    Cancel(RunId),
    /// The database is backed up.
    Save,
    /// The database goes back to the backup.
    Restore,
    /// A person accepts that commits were lost.
    Accept,
    /// Faults end, and time passes until nothing is to come.
    Rest,
}

/// What becomes of a call to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Applied and answered at once.
    InTime,
    /// Not applied, and its sender is told so; the same may work later.
    RolledBack,
    /// Not applied, and its sender is told that it never will be.
    Refused,
    /// Lost on its way; its sender gives up.
    Lost,
    /// Applied; its sender gives up, as the answer is lost.
    AnswerLost,
    /// Its sender gives up; it is applied later, if ever.
    Stray,
    /// Applied later, and answered then.
    Late,
    /// Applied at once, answered later.
    AnswerLate,
}

use Fate::{AnswerLate, AnswerLost, InTime, Late, Lost, Refused, RolledBack, Stray};

/// How a call may fail. Of failures that mean the same to its sender one is tried.
pub(super) fn fates_of(effect: &Effect) -> &'static [Fate] {
    match effect {
        Effect::Claim { .. } => &[RolledBack, Lost, AnswerLost, Stray, Late, AnswerLate],
        Effect::Start(_) => &[RolledBack, Refused, Lost, AnswerLost, Stray, Late, AnswerLate],
        Effect::Settle(_) | Effect::Finish(_) | Effect::Reset(_) | Effect::Heartbeat { .. } => {
            &[Lost, AnswerLost, Stray, Late, AnswerLate]
        }
        Effect::ListHeld => &[Lost, AnswerLate],
        Effect::Expire { .. } | Effect::Sweep { .. } => &[Lost, Stray],
        // A look that fails is made again; one that is late is like one that was made earlier.
        _ => &[],
    }
}

impl World {
    /// What may happen next.
    pub(super) fn actions(&self, actions: &mut Vec<Action>) {
        if self.rested || self.violation.is_some() {
            return;
        }
        if let Some(call) = self.outbox.front() {
            actions.push(Action::Call(InTime));
            actions.extend(fates_of(&call.effect).iter().map(|fate| Action::Call(*fate)));
            return;
        }
        actions.extend((0..self.requests.len()).map(Action::Arrive));
        actions.extend((0..self.answers.len()).map(Action::Hear));
        if self.is_quiet() || self.now >= self.bounds.end_ms() || self.next_due().is_none() {
            actions.push(Action::Rest);
            return;
        }
        actions.push(Action::Pass);
        self.ends(actions);
        self.accidents(actions);
        self.people(actions);
        self.pasts(actions);
    }

    fn ends(&self, actions: &mut Vec<Action>) {
        // What a gone node has left lives for as long as it can: that is the worst case.
        for process in self.processes.iter().filter(|process| process.life != Life::Gone) {
            for (run, child) in &process.children {
                let end = |status| Action::Ends(process.session, *run, status);
                match child.asked_to_stop {
                    true => actions.push(end(Status::Cancelled)),
                    false => actions.push(end(Status::Succeeded)),
                }
                if self.bounds.attempts > 1 && !child.asked_to_stop {
                    actions.push(end(Status::Failed));
                }
            }
        }
    }

    fn accidents(&self, actions: &mut Vec<Action>) {
        let budget = &self.budget;
        for (n, process) in self.processes.iter().enumerate() {
            let may = |left: u8, lives: &[Life]| left > 0 && lives.contains(&process.life);
            let mut offer = |may: bool, action| actions.extend(may.then_some(action));
            offer(may(budget.crashes, &[Life::Alive, Life::Frozen]), Action::Crash(n));
            offer(may(budget.freezes, &[Life::Alive]), Action::Freeze(n));
            offer(process.life == Life::Frozen, Action::Resume(n));
            offer(may(budget.cuts, &[Life::Alive]) && !process.cut, Action::Cut(n));
            offer(may(budget.drains, &[Life::Alive]), Action::Drain(n));
        }
        if budget.boots > 0 && self.processes.iter().any(|process| process.life == Life::Gone) {
            actions.push(Action::Boot);
        }
    }

    fn people(&self, actions: &mut Vec<Action>) {
        let budget = &self.budget;
        for row in self.store.jobs().filter(|row| !row.deleted) {
            let mut offer = |may: bool, action| actions.extend(may.then_some(action));
            offer(budget.pauses > 0 && row.pause.is_none(), Action::Pause(row.id));
            offer(row.pause.is_some(), Action::Unpause(row.id));
            offer(budget.deletes > 0, Action::Delete(row.id));
            offer(budget.triggers > 0, Action::Trigger(row.id));
        }
        let held = self.store.rows().filter_map(|(_, phase, _)| Phase::held(phase));
        actions.extend(held.filter(|_| budget.cancels > 0).map(|held| Action::Cancel(held.run)));
    }

    fn pasts(&self, actions: &mut Vec<Action>) {
        let can_tell = |saved: &&Arc<_>| self.processes.iter().all(|process| would_tell(saved, process));
        match &self.saved {
            None if self.budget.restores > 0 => actions.push(Action::Save),
            saved => {
                let may = self.budget.restores > 0;
                actions.extend(saved.as_ref().filter(can_tell).filter(|_| may).map(|_| Action::Restore));
            }
        }
        if self.store.withholds() {
            actions.push(Action::Accept);
        }
    }
}

/// Whether a process would notice that the database is this one again; if not, whether it could not do anything with it.
fn would_tell(saved: &carillon_adapters::store::memory::Backup, process: &Process) -> bool {
    let known = saved.sessions().find(|beat| beat.id == process.session).map(|beat| beat.seq);
    process.life == Life::Gone || known.is_none_or(|seq| went_back(process.node.acked(), Some(seq)))
}
