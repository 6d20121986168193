//! The actions that are possible in a state.

use carillon_domain::firing::Phase;
use carillon_domain::id::{JobId, RunId};
use carillon_domain::lost_commits::commits_were_lost;
use carillon_domain::node::call::CallKind;
use carillon_domain::run::Status;
use carillon_doubles::Backup;

use super::bounds::Budget;
use super::calls::{Answer, Request};
use super::moments::Moment;
use super::state::{Process, State};

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Time goes on to the next moment at which something is due, and that happens.
    Pass,
    /// The fate of the call that was sent first.
    Call(Fate),
    /// A request that was late, or whose sender has given up, reaches the store.
    Arrive(usize),
    /// A late answer reaches its node.
    Hear(usize),
    /// A child ends by itself.
    Ends(usize, RunId, Status),
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
    Rest(Runs),
}

/// How all runs go while faults have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// As long as any run does.
    Long,
    /// They end as soon as they are started.
    Short,
    /// They fail as soon as they are started.
    Failing,
}

/// The fate of a call to the store.
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

/// How a call may fail. Of failures that mean the same to its sender one is tried; what is lost is like a stray that never
/// arrives; what comes late matters where a lease or a deadline waits for it.
pub(super) fn fates_of(kind: CallKind) -> &'static [Fate] {
    match kind {
        CallKind::Claim => &[RolledBack, AnswerLost, Stray, AnswerLate],
        CallKind::Start => &[RolledBack, Refused, AnswerLost, Stray, Late, AnswerLate],
        CallKind::Settle | CallKind::Finish | CallKind::Release | CallKind::WriteBack => {
            &[AnswerLost, Stray, AnswerLate]
        }
        CallKind::Heartbeat => &[Stray, Late, AnswerLate],
        CallKind::ListHeld => &[Lost, AnswerLate],
        CallKind::Expire | CallKind::Sweep => &[Stray],
        // A peek that fails is made again; one that is late is like one that was made earlier.
        CallKind::Peek | CallKind::Close => &[],
    }
}

impl State {
    /// The actions that may follow.
    pub(super) fn actions(&self, actions: &mut Vec<Action>) {
        if self.rested || self.world.broken.is_some() {
            return;
        }
        if let Some(call) = self.outbox.front() {
            actions.push(Action::Call(InTime));
            actions.extend(fates_of(call.call.kind()).iter().map(|fate| Action::Call(*fate)));
            return;
        }
        self.latecomers(actions);
        if self.is_over() {
            actions.push(Action::Rest(Runs::Long));
            return;
        }
        if self.is_spent() {
            let failing = (self.bounds.attempts > 1).then_some(Runs::Failing);
            actions.extend([Runs::Long, Runs::Short].into_iter().chain(failing).map(Action::Rest));
            return;
        }
        actions.push(Action::Pass);
        self.ends(actions);
        self.accidents(actions);
        if self.moment.store {
            self.people(actions);
            self.pasts(actions);
        }
    }

    fn latecomers(&self, actions: &mut Vec<Action>) {
        let Moment { store, processes, .. } = &self.moment;
        let meets = |request: &Request| *store || request.awaited && processes.contains(&request.call.session);
        let arrive = |(at, request)| meets(request).then_some(Action::Arrive(at));
        actions.extend(self.requests.iter().enumerate().filter_map(arrive));
        let hear = |(at, answer): (usize, &Answer)| processes.contains(&answer.session).then_some(Action::Hear(at));
        actions.extend(self.answers.iter().enumerate().filter_map(hear));
    }

    /// Whether nothing is to come, or too late.
    pub(super) fn is_over(&self) -> bool {
        self.is_quiet() || self.world.now_us >= self.bounds.end_us() || self.world.next_due().is_none()
    }

    /// Whether all that may go wrong has gone wrong: what follows is the same as at rest, but for how long each run is.
    fn is_spent(&self) -> bool {
        let gone = self.world.processes.iter().any(|process| !process.alive);
        let spent = Budget { boots: if gone { self.budget.boots } else { 0 }, ..self.budget } == Budget::default();
        let hampered = |process: &Process| process.own.cut || self.is_frozen(process);
        let unnoticed = self.back.as_ref().is_some_and(|back| !back.witnesses.is_empty());
        spent
            && self.requests.is_empty()
            && self.answers.is_empty()
            && !self.world.processes.iter().any(hampered)
            && self.store.jobs().all(|row| row.pause.is_none())
            && !unnoticed
            && !self.store.withholds()
    }

    fn ends(&self, actions: &mut Vec<Action>) {
        // The runs of a gone node live for as long as they can: that is the worst case.
        let may_end = |(_, process): &(usize, &Process)| {
            process.alive && (self.moment.store || self.moment.processes.contains(&process.session))
        };
        for (n, process) in self.world.processes.iter().enumerate().filter(may_end) {
            for (run, child) in &process.children {
                let end = |status| Action::Ends(n, *run, status);
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
        let met = |(_, process): &(usize, &Process)| self.moment.processes.contains(&process.session);
        for (n, process) in self.world.processes.iter().enumerate().filter(met) {
            let (frozen, awake) = (self.is_frozen(process), process.is_awake(self.world.now_us));
            let mut offer = |may: bool, action| actions.extend(may.then_some(action));
            offer(budget.crashes > 0 && process.alive, Action::Crash(n));
            offer(budget.freezes > 0 && awake, Action::Freeze(n));
            offer(frozen, Action::Resume(n));
            offer(budget.cuts > 0 && awake && !process.own.cut, Action::Cut(n));
            offer(budget.drains > 0 && awake, Action::Drain(n));
        }
        let gone = |process: &Process| !process.alive && self.moment.processes.contains(&process.session);
        if budget.boots > 0 && self.world.processes.iter().any(gone) {
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
        match &self.saved {
            None if self.budget.restores > 0 => actions.push(Action::Save),
            Some(saved) if self.budget.restores > 0 && self.would_all_tell(saved) => actions.push(Action::Restore),
            _ => {}
        }
        if self.may_accept() {
            actions.push(Action::Accept);
        }
    }

    /// Whether everybody who may know has written back.
    pub(super) fn may_accept(&self) -> bool {
        self.store.may_accept(self.bounds.expire_after, self.utc())
    }

    /// Whether all processes would notice that the database is this one again.
    pub(super) fn would_all_tell(&self, saved: &Backup) -> bool {
        self.world.processes.iter().all(|process| would_tell(saved, process))
    }
}

/// Whether a process would notice that the database is this one again; if not, whether it could not do anything with it.
fn would_tell(saved: &Backup, process: &Process) -> bool {
    let known = saved.sessions().find(|beat| beat.id == process.session).map(|beat| beat.seq);
    let acked = process.node.as_ref().map_or(0, |node| node.acked());
    !process.alive || known.is_none_or(|seq| commits_were_lost(acked, Some(seq)))
}
