//! Calls of nodes to the store, carried out by the store's own operations, and the answers to them.

use std::sync::Arc;

use carillon_domain::firing::{JobState, Phase};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::node::port::{RowKey, RunRef, Seen};
use carillon_domain::node::{BeatAnswer, Effect, Failure, Input};
use carillon_domain::time::BootTime;
use carillon_store::memory::MemoryStore;
use carillon_store::{ClaimRequest, Finished, Me, NodeStore, Output, PeekRequest};

use super::sights::Sight;
use super::watching::{self, Writer};
use super::world::{World, at_once};

const EXECUTOR: &str = "shell";

/// One call, as it was sent.
#[derive(Debug, Clone, Hash)]
pub(super) struct Call {
    pub session: SessionId,
    /// The highest heartbeat sequence that was acknowledged when it was sent.
    pub acked: u64,
    pub effect: Effect,
    pub sent: u64,
}

/// A call that reaches the store later.
#[derive(Debug, Clone, Hash)]
pub(super) struct Request {
    pub call: Call,
    /// Whether its sender still waits for the answer; otherwise it was told that nobody knows.
    pub awaited: bool,
}

/// What a node is told.
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
    /// What its sender is told when something went wrong.
    pub fn failed(&self, failure: Failure) -> Answer {
        let input = self.effect.failed(failure, BootTime::from_ms(self.sent)).unwrap_or(Input::Swept);
        Answer::of(self.session, input)
    }

    /// Who writes, as far as S4 minds.
    fn writer(&self) -> Writer {
        match &self.effect {
            Effect::Start { .. } => Writer::Start(self.session),
            Effect::Reset(_) => Writer::Reset(self.session),
            Effect::Sweep { session } => Writer::Sweep(*session),
            Effect::Claim { .. } => Writer::Claim,
            _ => Writer::NoneThatMay,
        }
    }
}

impl World {
    /// The call reaches the store. `None` when a second part of it follows.
    pub(super) fn perform(&mut self, call: &Call) -> Option<Answer> {
        if let Effect::Sweep { session } = &call.effect {
            let live = self.live().map(|(of, run, _)| (of, run));
            let verdict = carillon_domain::invariants::dead_before_sweep(*session, live);
            self.must(verdict);
        }
        let store = self.open_store();
        let input = carry_out(&store, call);
        let after = Arc::new(store.back_up());
        let before = std::mem::replace(&mut self.store, after);
        self.watch_write(&before, call.writer());
        self.count_sights(&before, call);
        self.note(|| format!("{}: {}", super::telling::call(call), super::telling::answer(&input)));
        if let (Effect::Expire { session, .. }, Outcome::Ended) = (&call.effect, &input) {
            let effect = Effect::Sweep { session: *session };
            self.outbox.push_front(Call { effect, ..call.clone() });
            return None;
        }
        let input = match input {
            Outcome::Answered(input) => input,
            Outcome::Ended | Outcome::Done => Input::Swept,
        };
        let withdrawn = match &input {
            Input::Settled(Ok(seen)) => self.withdrawn(seen),
            _ => Vec::new(),
        };
        Some(Answer { withdrawn, ..Answer::of(call.session, input) })
    }

    /// Of what a settling write found Executing: what must not start, as the job stood then.
    fn withdrawn(&self, seen: &[Seen]) -> Vec<RunId> {
        let refused = |one: &Seen| {
            let Seen::Executing { at, held, .. } = one else { return None };
            let may = |row: &JobState| watching::may_start(row, held.firing.trigger, self.utc());
            self.store.job(job_of(at)).is_none_or(|row| may(row).is_err()).then_some(at.run)
        };
        seen.iter().filter_map(refused).collect()
    }

    fn count_sights(&mut self, before: &carillon_store::memory::Backup, call: &Call) {
        let held = |session: SessionId| {
            let holds = move |phase: &Phase| phase.held().is_some_and(|held| held.session == session);
            before.rows().filter(|(_, phase, _)| holds(phase)).count()
        };
        let lost = |store: &carillon_store::memory::Backup| {
            store.records().filter(|record| record.status == carillon_domain::run::Status::Lost).count()
        };
        if matches!(call.effect, Effect::Sweep { session } if held(session) > 0) {
            self.sights.count(Sight::Swept);
        }
        if lost(&self.store) > lost(before) {
            self.sights.count(Sight::Lost);
        }
        let takes = matches!(&call.effect, Effect::Claim { only: Some(_), .. });
        if takes && self.store.rows().count() > 0 && held_by(&self.store, call.session) > held(call.session) {
            self.sights.count(Sight::Stolen);
        }
        if self.store.withholds() && !before.withholds() {
            self.sights.count(Sight::WindowOpened);
        }
    }
}

fn held_by(store: &carillon_store::memory::Backup, session: SessionId) -> usize {
    store.rows().filter(|(_, phase, _)| phase.held().is_some_and(|held| held.session == session)).count()
}

fn job_of(at: &RunRef) -> carillon_domain::id::JobId {
    match at.row {
        RowKey::Job(id) => id,
        RowKey::Concurrent(key) => key.job,
    }
}

/// What the store made of a call.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered(Input),
    /// A silent session is ended; its rows are to be swept.
    Ended,
    /// Nobody is told more than that it is over.
    Done,
}

fn carry_out(store: &MemoryStore, call: &Call) -> Outcome {
    let (session, me) = (call.session, Me { session: call.session, acked: call.acked });
    let executors = || vec![EXECUTOR.to_owned()];
    Outcome::Answered(match call.effect.clone() {
        Effect::Heartbeat { seq, draining } => {
            let answer = at_once(store.heartbeat(me, seq, draining)).map(BeatAnswer::from).map_err(Failure::from);
            Input::Beat { sent: BootTime::from_ms(call.sent), answer }
        }
        Effect::Peek { partitions, until } => {
            let request = PeekRequest { session, partitions, until, executors: executors() };
            Input::Peeked(at_once(store.peek(&request)).map_err(Failure::from))
        }
        Effect::Claim { partitions, until, runs, places, .. } => {
            let request = ClaimRequest { me, partitions, until, runs, places, executors: executors() };
            Input::Claimed(at_once(store.claim(&request)).map_err(Failure::from))
        }
        Effect::Start { lane, runs } => {
            Input::Started { lane, answer: at_once(store.start(me, &runs)).map_err(Failure::from) }
        }
        Effect::Settle(runs) => Input::Settled(at_once(store.settle(session, &runs)).map_err(Failure::from)),
        Effect::Reset(runs) => Input::Reset(at_once(store.reset(session, &runs)).map_err(Failure::from)),
        Effect::ListHeld => Input::Held(at_once(store.held(session)).map_err(Failure::from)),
        Effect::Finish { lane, runs } => {
            let silent = |request| Finished { request, output: Output::default() };
            let runs: Vec<Finished> = runs.into_iter().map(silent).collect();
            Input::Finished { lane, answer: at_once(store.finish(me, &runs, &executors())).map_err(Failure::from) }
        }
        Effect::Expire { session, seq } => {
            let ended = at_once(store.expire(Some(me), session, seq)).unwrap_or(false);
            return if ended { Outcome::Ended } else { Outcome::Done };
        }
        Effect::Sweep { session } => {
            let _rows = at_once(store.sweep(session, 1_000));
            return Outcome::Done;
        }
        _ => return Outcome::Done,
    })
}
