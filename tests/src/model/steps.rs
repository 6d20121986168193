//! The consequences of an action.

use carillon_doubles::author;
use std::sync::Arc;

use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::Input;
use carillon_domain::node::call::CallFailure;
use carillon_store::{ControlStore, JobKey};

use super::actions::{Action, Fate, fates_of};
use super::calls::{Answer, Call, Request};
use super::coverage::Situation;
use super::history::Back;
use super::moments::Circumstances;
use super::narration;
use super::watching::Writer;
use super::world::{Life, World, at_once};

/// Of people's requests for a run, so that no node draws the same id.
const PEOPLE: SessionId = SessionId::from_random(1 << 40);

impl World {
    /// Lets it happen.
    pub(super) fn act(&mut self, action: Action) {
        self.note(|| format!("{action:?}"));
        let before = self.circumstances();
        match action {
            Action::Pass => self.pass_to_next_moment(&before),
            Action::Call(fate) => self.meet(fate),
            Action::Arrive(at) => self.arrive(at),
            Action::Hear(at) => {
                let answer = self.answers.remove(at);
                self.tell(answer);
            }
            Action::Ends(session, run, status) => self.child_ends(session, run, status),
            Action::Crash(n) => {
                self.budget.crashes -= 1;
                self.die(n);
            }
            Action::Freeze(n) => {
                self.budget.freezes -= 1;
                self.processes[n].life = Life::Frozen;
            }
            Action::Resume(n) => self.resume(n),
            Action::Cut(n) => {
                self.budget.cuts -= 1;
                self.processes[n].cut = true;
            }
            Action::Drain(n) => {
                self.budget.drains -= 1;
                let drain = Answer::of(self.processes[n].session, Input::Drain);
                self.feed(n, &drain);
            }
            Action::Boot => {
                self.budget.boots -= 1;
                self.boot();
            }
            Action::Save => self.saved = Some(Arc::clone(&self.store)),
            Action::Restore => self.restore(),
            Action::Rest(runs) => self.rest(runs),
            Action::Pause(_)
            | Action::Unpause(_)
            | Action::Delete(_)
            | Action::Trigger(_)
            | Action::Cancel(_)
            | Action::Accept => self.person(action),
        }
        self.answer_what_goes_well();
        self.watch_witnesses();
        self.look_for_changes(&before);
    }

    /// Time passes until something is another than it was before, or is to be decided of, or nothing more is to come.
    fn pass_to_next_moment(&mut self, before: &Circumstances) {
        self.moment.grows_old();
        while self.violation.is_none() && self.outbox.is_empty() && !self.is_over() && self.moment.is_old() {
            self.pass();
            self.answer_what_goes_well();
            self.watch_witnesses();
            self.look_for_changes(before);
        }
    }

    /// Decides of the call that was sent first.
    fn meet(&mut self, fate: Fate) {
        let Some(call) = self.outbox.pop_front() else { return };
        self.note(|| format!("  {}", narration::call(&call)));
        self.budget.deviations -= u8::from(fate != Fate::InTime);
        self.decided(&call);
        match fate {
            Fate::InTime => {
                let answer = self.perform(&call);
                self.tell(answer);
            }
            Fate::RolledBack => self.tell(call.failed(CallFailure::RolledBack)),
            Fate::Refused => self.tell(call.failed(CallFailure::Refused)),
            Fate::Lost => self.tell(call.failed(CallFailure::Unknown)),
            Fate::AnswerLost => {
                let _lost = self.perform(&call);
                self.tell(call.failed(CallFailure::Unknown));
            }
            Fate::Stray => {
                self.requests.push(Request { call: call.clone(), awaited: false });
                self.tell(call.failed(CallFailure::Unknown));
            }
            Fate::Late => self.requests.push(Request { call, awaited: true }),
            Fate::AnswerLate => {
                let answer = self.perform(&call);
                self.answers.push(answer);
            }
        }
    }

    fn arrive(&mut self, at: usize) {
        let Request { call, awaited } = self.requests.remove(at);
        if !awaited {
            self.coverage.count(Situation::StrayApplied);
        }
        let answer = self.perform(&call);
        if awaited {
            self.tell(answer);
        }
    }

    /// Calls of which nothing is to be decided: nothing may go wrong any more, or their node is cut off.
    pub(super) fn answer_what_goes_well(&mut self) {
        while self.violation.is_none() {
            let Some(call) = self.outbox.front() else { return };
            if self.is_cut(call) {
                let Some(call) = self.outbox.pop_front() else { return };
                self.tell(call.failed(CallFailure::Unknown));
            } else if self.budget.deviations == 0 || fates_of(call.call.kind()).is_empty() || self.is_decided(call) {
                let Some(call) = self.outbox.pop_front() else { return };
                let answer = self.perform(&call);
                self.tell(answer);
            } else {
                return;
            }
        }
    }

    fn is_cut(&self, call: &Call) -> bool {
        self.processes.iter().any(|process| process.session == call.session && process.cut)
    }

    pub(super) fn resume(&mut self, n: usize) {
        self.processes[n].life = Life::Alive;
        while let Some(answer) = self.processes[n].unheard.pop_front() {
            if self.processes[n].life == Life::Alive {
                self.feed(n, &answer);
            }
        }
    }

    pub(super) fn person(&mut self, action: Action) {
        let key = |job: JobId| JobKey { namespace: "default".into(), name: format!("job-{}", job.0) };
        let run = RunId::drawn(PEOPLE, self.now);
        let store = self.open_store();
        // A refused request changes nothing.
        match action {
            Action::Pause(job) => {
                self.budget.pauses -= 1;
                let _refused = at_once(store.pause(&key(job), None, None, &author()));
            }
            Action::Unpause(job) => {
                let _refused = at_once(store.resume(&key(job), &author()));
            }
            Action::Delete(job) => {
                self.budget.deletes -= 1;
                self.history.deleted.insert(job, self.utc());
                let _refused = at_once(store.delete_job(&key(job), None, &author()));
            }
            Action::Trigger(job) => {
                self.budget.triggers -= 1;
                let _refused = at_once(store.trigger(&key(job), run, &author()));
            }
            Action::Cancel(run) => {
                self.budget.cancels -= 1;
                let _refused = at_once(store.cancel(run, &author()));
            }
            _ => {
                let _refused = at_once(store.accept_losses(&author()));
            }
        }
        let before = std::mem::replace(&mut self.store, Arc::new(store.back_up()));
        self.watch_write(&before, Writer::Person);
    }

    fn restore(&mut self) {
        let Some(saved) = self.saved.clone() else { return };
        self.budget.restores -= 1;
        self.store = saved;
        let alive = self.processes.iter().filter(|process| process.life != Life::Gone);
        let witnesses: Vec<SessionId> = alive.map(|process| process.session).collect();
        self.history.back = Some(Back { unnoticed: witnesses.is_empty(), witnesses });
        // Connections end with the server that they were made to: no stray outlives it, and who waits is told so.
        for request in std::mem::take(&mut self.requests).into_iter().filter(|request| request.awaited) {
            self.tell(request.call.failed(CallFailure::Unknown));
        }
    }

    /// As long as nobody has noticed that the database went back, all who can tell must be there, and nobody else.
    pub(super) fn watch_witnesses(&mut self) {
        let alive = self.processes.iter().filter(|process| process.life != Life::Gone);
        let alive: Vec<SessionId> = alive.map(|process| process.session).collect();
        let noticed = self.store.withholds();
        let Some(back) = &mut self.history.back else { return };
        if noticed {
            back.witnesses.clear();
        } else if !back.witnesses.is_empty() {
            let witness = |session: &SessionId| back.witnesses.contains(session);
            back.unnoticed |= !alive.iter().any(witness) || !alive.iter().all(witness);
        }
    }

    /// The first thing that is due happens; if that is later, time goes on until then.
    pub(super) fn pass(&mut self) {
        let Some((at, n, due)) = self.next_due() else { return };
        self.now = self.now.max(at);
        match due {
            Due::Dead => self.children_die(n),
            Due::Deadline => {
                let timing = self.bounds.config().timing;
                let process = &mut self.processes[n];
                // As late as is allowed for: without CPU for a pause, and the killing takes all of the grace.
                let late = timing.pause + timing.fence_grace;
                process.dead_at = Some(process.keeper_until + late.as_millis() as u64);
            }
            Due::End(run) => {
                let process = &self.processes[n];
                let session = process.session;
                let stopped = process.children.get(&run).is_some_and(|child| child.asked_to_stop);
                use carillon_domain::run::Status;
                self.child_ends(session, run, if stopped { Status::Cancelled } else { Status::Succeeded });
            }
            Due::Wake => {
                let tick = Answer::of(self.processes[n].session, Input::Tick);
                self.feed(n, &tick);
            }
        }
    }

    pub(super) fn next_due(&self) -> Option<(u64, usize, Due)> {
        let mut due: Vec<(u64, usize, Due)> = Vec::new();
        for (n, process) in self.processes.iter().enumerate() {
            if !process.children.is_empty() {
                let deadline = (process.keeper_until, n, Due::Deadline);
                due.push(process.dead_at.map_or(deadline, |at| (at, n, Due::Dead)));
            }
            if process.life != Life::Gone {
                due.extend(process.children.iter().map(|(run, child)| (child.ends_at, n, Due::End(*run))));
            }
            if process.life == Life::Alive {
                due.push((process.node.next_wake().as_ms(), n, Due::Wake));
            }
        }
        due.into_iter().min_by_key(|(at, n, due)| ((*at).max(self.now), due.order(), *n))
    }

    /// Lets time pass until then, without choices.
    pub(super) fn pass_until(&mut self, until: u64) {
        while self.violation.is_none() && self.next_due().is_some_and(|(at, ..)| at <= until) {
            self.pass();
            self.answer_what_goes_well();
        }
        self.now = self.now.max(until);
    }
}

/// An event that comes with time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Due {
    /// The keeper has killed the children of its node.
    Dead,
    /// The keeper's deadline is over.
    Deadline,
    /// A child has run for as long as any does.
    End(RunId),
    /// The node is to be looked at.
    Wake,
}

impl Due {
    const fn order(self) -> u8 {
        match self {
            Due::Dead => 0,
            Due::Deadline => 1,
            Due::End(_) => 2,
            Due::Wake => 3,
        }
    }
}
