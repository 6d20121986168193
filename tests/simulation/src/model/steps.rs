//! The consequences of an action.

use std::sync::Arc;

use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::OnLost;
use carillon_domain::node::Input;
use carillon_domain::node::call::CallFailure;
use carillon_doubles::author;
use carillon_store::tables::at_once;
use carillon_store::{ControlStore, JobKey};

use super::actions::{Action, Fate, fates_of};
use super::calls::{Call, Request};
use super::coverage::Situation;
use super::moments::Circumstances;
use super::narration;
use super::state::{Back, State};
use crate::world::{Scheduler, Writer};

/// Of people's requests for a run, so that no node draws the same id.
const PEOPLE: SessionId = SessionId::from_random(1 << 40);

impl State {
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
                self.deliver(answer);
            }
            Action::Ends(n, run, status) => self.child_ends(n, run, status),
            Action::Crash(n) => {
                self.budget.crashes -= 1;
                self.die(n);
            }
            Action::Freeze(n) => {
                self.budget.freezes -= 1;
                self.world.processes[n].frozen_until_us = u64::MAX;
            }
            Action::Resume(n) => self.resume(n),
            Action::Cut(n) => {
                self.budget.cuts -= 1;
                self.world.processes[n].own.cut = true;
            }
            Action::Drain(n) => {
                self.budget.drains -= 1;
                self.tell(n, Input::Drain);
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
        while self.world.broken.is_none() && self.outbox.is_empty() && !self.is_over() && self.moment.is_old() {
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
                self.deliver(answer);
            }
            Fate::RolledBack => self.deliver(call.failed(CallFailure::RolledBack)),
            Fate::Refused => self.deliver(call.failed(CallFailure::Refused)),
            Fate::Lost => self.deliver(call.failed(CallFailure::Unknown)),
            Fate::AnswerLost => {
                let _lost = self.perform(&call);
                self.deliver(call.failed(CallFailure::Unknown));
            }
            Fate::Stray => {
                self.requests.push(Request { call: call.clone(), awaited: false });
                self.deliver(call.failed(CallFailure::Unknown));
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
            self.deliver(answer);
        }
    }

    /// Calls of which nothing is to be decided: nothing may go wrong any more, or their node is cut off.
    pub(super) fn answer_what_goes_well(&mut self) {
        while self.world.broken.is_none() {
            let Some(call) = self.outbox.front() else { return };
            if self.is_cut(call) {
                let Some(call) = self.outbox.pop_front() else { return };
                self.deliver(call.failed(CallFailure::Unknown));
            } else if self.budget.deviations == 0 || fates_of(call.call.kind()).is_empty() || self.is_decided(call) {
                let Some(call) = self.outbox.pop_front() else { return };
                let answer = self.perform(&call);
                self.deliver(answer);
            } else {
                return;
            }
        }
    }

    fn is_cut(&self, call: &Call) -> bool {
        self.world.processes.iter().any(|process| process.session == call.session && process.own.cut)
    }

    pub(super) fn resume(&mut self, n: usize) {
        self.world.processes[n].frozen_until_us = 0;
        while let Some(answer) = self.world.processes[n].own.unheard.pop_front() {
            self.hear(n, answer);
        }
    }

    pub(super) fn person(&mut self, action: Action) {
        let key = |job: JobId| JobKey { namespace: "default".into(), name: format!("job-{}", job.0) };
        let run = RunId::drawn(PEOPLE, self.world.now_us);
        let store = self.open_store();
        // A refused request changes nothing.
        let call = match action {
            Action::Pause(job) => {
                self.budget.pauses -= 1;
                let _refused = at_once(store.pause(&key(job), None, None, &author()));
                "pause"
            }
            Action::Unpause(job) => {
                let _refused = at_once(store.resume(&key(job), &author()));
                "resume"
            }
            Action::Delete(job) => {
                self.budget.deletes -= 1;
                self.deleted.insert(job, self.utc());
                let _refused = at_once(store.delete_job(&key(job), None, &author()));
                "delete_job"
            }
            Action::Trigger(job) => {
                self.budget.triggers -= 1;
                let _refused = at_once(store.trigger(&key(job), run, &author()));
                "trigger"
            }
            Action::Cancel(run) => {
                self.budget.cancels -= 1;
                let _refused = at_once(store.cancel(run, &author()));
                "cancel"
            }
            _ => {
                let accepted = at_once(store.accept_losses(self.bounds.expire_after, &author()));
                // Now every run that lives has its row, unless one was started before anybody noticed.
                let is_known = self.back.as_ref().is_none_or(|back| !back.unnoticed);
                self.world.excused.children &= !(is_known && accepted.is_ok_and(|windows| !windows.is_empty()));
                "accept_losses"
            }
        };
        let before = std::mem::replace(&mut self.store, Arc::new(store.back_up()));
        let (after, now) = (Arc::clone(&self.store), self.utc());
        self.world.wrote(&before, &after, Writer { call, of: None }, now);
    }

    fn restore(&mut self) {
        let Some(saved) = self.saved.clone() else { return };
        self.budget.restores -= 1;
        self.store = saved;
        let witnesses = self.living();
        self.world.excused.children = true;
        self.back = Some(Back { unnoticed: witnesses.is_empty(), witnesses });
        // Connections end with the server that they were made to: no stray outlives it, and who waits is told so.
        for request in std::mem::take(&mut self.requests).into_iter().filter(|request| request.awaited) {
            self.deliver(request.call.failed(CallFailure::Unknown));
        }
    }

    /// As long as nobody has noticed that the database went back, all who can tell must be there, and nobody else.
    pub(super) fn watch_witnesses(&mut self) {
        let alive = self.living();
        let noticed = self.store.withholds();
        let Some(back) = &mut self.back else { return };
        if noticed {
            back.witnesses.clear();
        } else if !back.witnesses.is_empty() {
            let witness = |session: &SessionId| back.witnesses.contains(session);
            back.unnoticed |= !alive.iter().any(witness) || !alive.iter().all(witness);
        }
        // After that a run may live that the database knows nothing of: docs/lost-commits.md tells people to look.
        self.world.excused.tokens = back.unnoticed;
        self.world.excused.starts = back.unnoticed || self.bounds.on_lost == OnLost::Rerun;
    }

    fn living(&self) -> Vec<SessionId> {
        self.world.processes.iter().filter(|process| process.alive).map(|process| process.session).collect()
    }

    /// The first thing that is due happens; if that is later, time goes on until then.
    pub(super) fn pass(&mut self) {
        let Some((at, n, due)) = self.world.next_due() else { return };
        self.world.now_us = self.world.now_us.max(at);
        self.comes_due(n, due);
        self.watch_children();
    }

    /// Lets time pass until then, without choices.
    pub(super) fn pass_until(&mut self, until_us: u64) {
        while self.world.broken.is_none() && self.world.next_due().is_some_and(|(at, ..)| at <= until_us) {
            self.pass();
            self.answer_what_goes_well();
        }
        self.world.now_us = self.world.now_us.max(until_us);
    }
}
