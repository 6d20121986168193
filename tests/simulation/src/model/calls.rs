//! Calls of nodes to the store, carried out by the store's own operations, and the answers to them.

use std::sync::Arc;

use carillon_domain::firing::{JobState, Phase};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants as must;
use carillon_domain::node::Input;
use carillon_domain::node::call::{self, Answer as StoreAnswer, CallFailure, CallId};
use carillon_domain::node::port::SettleAnswer;

use super::coverage::Situation;
use super::state::State;
use crate::world::job_of;

/// One call, as it was sent.
#[derive(Debug, Clone, Hash)]
pub(super) struct Call {
    pub session: SessionId,
    pub id: CallId,
    pub call: call::Call,
}

/// A call that reaches the store later.
#[derive(Debug, Clone, Hash)]
pub(super) struct Request {
    pub call: Call,
    /// Whether its sender still waits for the answer; otherwise it was told that nobody knows.
    pub awaited: bool,
}

/// An input on its way to a node.
#[derive(Debug, Clone, Hash)]
pub(super) struct Answer {
    pub session: SessionId,
    pub input: Input,
    /// Runs that must not start because of this answer: their job was paused or deleted when it was given.
    pub withdrawn: Vec<RunId>,
}

impl Answer {
    pub fn of(session: SessionId, input: Input) -> Self {
        Self { session, input, withdrawn: Vec::new() }
    }
}

impl Call {
    /// The answer for its sender when something went wrong.
    pub fn failed(&self, failure: CallFailure) -> Answer {
        self.answered(Err(failure))
    }

    fn answered(&self, answer: Result<StoreAnswer, CallFailure>) -> Answer {
        Answer::of(self.session, Input::Answered { id: self.id, answer })
    }
}

impl State {
    /// The call reaches the store.
    pub(super) fn perform(&mut self, call: &Call) -> Answer {
        let (store, now) = (self.open_store(), self.utc());
        let (answer, after) = self.world.perform((&store, &self.store), call.session, &call.call, now);
        let before = std::mem::replace(&mut self.store, Arc::new(after));
        self.count_situations(&before, call);
        self.note(|| format!("{}: {}", super::narration::call(call), super::narration::answer(&answer)));
        let withdrawn = match &answer {
            Ok(StoreAnswer::Settle(found)) => self.withdrawn(found),
            _ => Vec::new(),
        };
        Answer { withdrawn, ..call.answered(answer) }
    }

    /// Runs that a settling write found Executing and that must not start, as their job stood then.
    fn withdrawn(&self, found: &[SettleAnswer]) -> Vec<RunId> {
        let refused = |one: &SettleAnswer| {
            let SettleAnswer::Executing { at, held, .. } = one else { return None };
            let may = |row: &JobState| must::starts_where_allowed(row, held.firing.trigger, self.utc());
            self.store.job(job_of(&at.row)).is_none_or(|row| may(row).is_err()).then_some(at.run)
        };
        found.iter().filter_map(refused).collect()
    }

    /// Whether partitions are those of other nodes, as the session sees it.
    fn is_of_others(&self, session: SessionId, partitions: &[u16]) -> bool {
        let process = self.alive(session).map(|n| &self.world.processes[n]);
        process.and_then(|process| process.node.as_ref()).is_some_and(|node| node.partitions() != partitions)
    }

    fn count_situations(&mut self, before: &carillon_doubles::Backup, call: &Call) {
        let held = |session: SessionId| {
            let holds = move |phase: &Phase| phase.held().is_some_and(|held| held.session == session);
            before.rows().filter(|(_, phase, _)| holds(phase)).count()
        };
        let lost = |store: &carillon_doubles::Backup| {
            store.records().filter(|record| record.status == carillon_domain::run::Status::Lost).count()
        };
        if matches!(call.call, call::Call::Sweep { session, .. } if held(session) > 0) {
            self.coverage.count(Situation::Swept);
        }
        if lost(&self.store) > lost(before) {
            self.coverage.count(Situation::Lost);
        }
        let takes = match &call.call {
            call::Call::Claim(request) => self.is_of_others(call.session, &request.partitions),
            _ => false,
        };
        if takes && self.store.rows().count() > 0 && held_by(&self.store, call.session) > held(call.session) {
            self.coverage.count(Situation::Stolen);
        }
        if self.store.withholds() && !before.withholds() {
            self.coverage.count(Situation::WindowOpened);
        }
    }
}

fn held_by(store: &carillon_doubles::Backup, session: SessionId) -> usize {
    store.rows().filter(|(_, phase, _)| phase.held().is_some_and(|held| held.session == session)).count()
}
