//! The node: a state machine that decides everything and does nothing.
//!
//! The driver feeds [`Input`]s with the time, drains [`Node::poll`] after each, performs the [`Effect`]s and returns their
//! results, at the latest at [`Node::next_wake`]. There are three drivers: the server's engine, the simulator and the model
//! checker.
//!
//! From the moment its id is drawn, a run is in exactly one place. It is *pending* while a claim with its id is in flight or of unknown
//! outcome. It is a *successor* while a finish in flight may claim it. Otherwise it is in one [`Stage`] of `runs`. After any error the store and the memory may
//! differ. [`crate::matrix`] then says how to go on, and the recovery loop compares the two for ever.

mod agenda;
pub mod call;
mod claiming;
mod finishing;
mod flow;
mod ledger;
mod lifecycle;
pub mod port;
mod starting;
mod suspension;
mod sweeping;
mod timers;
mod types;

pub use flow::FlowKind;
pub use types::{Config, Effect, Input, SelfKillReason, StopReason};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::guard::{Guard, enabled};
use crate::id::{RunId, SessionId};
use crate::lease::{DatabaseClock, FailureDetector};
use crate::lost_commits::LossWindow;
use crate::time::{BootTime, Timestamp};
use crate::wheel::Wheel;
use agenda::Agenda;
use call::{Answer, Call, CallFailure, Me};
use flow::{Flow, Load};
use ledger::flight::{Flight, Sent};
use ledger::stage::{Ended, Run, Stage, Worklists, lives};
use ledger::stealing::UnclaimedTracker;
use ledger::write_back::WriteBack;
use port::RunRef;
use sweeping::ToSweep;
use timers::Timers;

/// One node, from its registration to its end.
#[derive(Debug, Clone, Hash)]
pub struct Node {
    config: Config,
    session: SessionId,
    runs: BTreeMap<RunId, Run>,
    /// The runs for which the store is asked next, so that no step looks through all runs.
    worklists: Worklists,
    /// Ids that a claim of unknown outcome may have used, with the number of recoveries they have seen.
    pending: BTreeMap<RunId, u8>,
    /// Runs whose finish was sent, each with the id under which the same commit may claim the job's next firing.
    successors: BTreeMap<RunId, RunId>,
    wheel: Wheel<RunId>,
    /// Runs that are due, in order, waiting to be started.
    due: VecDeque<RunId>,
    /// When a newer firing replaces a running one (`overlap = replace`), unless somebody changes the job.
    replaces: BTreeSet<(Timestamp, RunId)>,
    /// Executing runs whose rows are rechecked: the time of a replacement has come, or somebody wrote to the row.
    to_recheck: BTreeSet<RunId>,
    flight: Flight,
    /// Sessions that are over, as the last heartbeat showed them.
    to_sweep: VecDeque<ToSweep>,
    /// The executors that the driver offers.
    executors: Vec<String>,
    clock: DatabaseClock,
    detector: FailureDetector,
    /// The sessions that claim, as the last heartbeat or peek showed them; none before the first.
    live: Vec<SessionId>,
    partitions: Vec<u16>,
    unclaimed: UnclaimedTracker,
    next_run: u64,
    executing: usize,
    agenda: Agenda,
    /// When calls go out, and how many runs one carries.
    flow: Flow,
    timers: Timers,
    beat: types::Heartbeat,
    suspended_by: Option<LossWindow>,
    write_back: WriteBack,
    drain: types::Drain,
    effects: VecDeque<Effect>,
}

impl Node {
    /// A node whose session was just registered. The database said `utc` and its number of partitions.
    pub fn new(config: Config, session: SessionId, utc: Timestamp, now: BootTime) -> Self {
        let mut clock = DatabaseClock::default();
        clock.heard(utc, now, now);
        let span_ms = usize::try_from(config.horizon.as_millis()).unwrap_or(60_000).min(120_000) + 1_000;
        Self {
            session,
            runs: BTreeMap::new(),
            worklists: Worklists::default(),
            pending: BTreeMap::new(),
            successors: BTreeMap::new(),
            wheel: Wheel::new(span_ms, utc),
            due: VecDeque::new(),
            replaces: BTreeSet::new(),
            to_recheck: BTreeSet::new(),
            flight: Flight::default(),
            to_sweep: VecDeque::new(),
            executors: Vec::new(),
            clock,
            detector: FailureDetector::default(),
            live: Vec::new(),
            partitions: Vec::new(),
            unclaimed: UnclaimedTracker::default(),
            next_run: 1,
            executing: 0,
            agenda: Agenda::default(),
            flow: Flow::from(config.flow),
            timers: Timers::at(now),
            beat: types::Heartbeat::new(now, &config.timing, config.self_kill),
            suspended_by: None,
            write_back: WriteBack::default(),
            drain: types::Drain::default(),
            effects: VecDeque::new(),
            config,
        }
    }

    /// The lease counts from when the registration was *sent*, as it does for a heartbeat.
    #[must_use]
    pub fn registered_at(mut self, sent: BootTime) -> Self {
        if enabled(Guard::LeaseFromRegistering) {
            self.beat.lease_until = sent + self.config.timing.self_kill_after;
        }
        self
    }

    /// Takes in one event.
    pub fn handle(&mut self, input: Input, now: BootTime) {
        // First of all: an event after the deadline finds a node that has ended.
        self.end_if_lease_is_over(now);
        if self.beat.ended {
            return;
        }
        match input {
            Input::Tick => {}
            Input::Offers(executors) => {
                self.executors = executors;
                // Rows may have waited for one of them.
                self.agenda.peek = true;
            }
            Input::RowsChanged => self.agenda.peek = true,
            Input::Answered { id, answer } => {
                // A call that is not in flight was answered before.
                if let Some(sent) = self.flight.take(id) {
                    self.answered(sent, answer, now);
                }
            }
            Input::Exited { run, ending, output } => self.exited(run, Ended { ending, output }, now),
            Input::CancelAsked(run) => self.stop(run, StopReason::Cancelled),
            Input::Drain => self.begin_drain(now),
            Input::DrainNow => self.hurry_drain(now),
            Input::KeeperDied => self.keeper_died(now),
        }
        self.step(now);
    }

    /// Hands an answer to the part that waits for it.
    fn answered(&mut self, sent: Sent, answer: Result<Answer, CallFailure>, now: BootTime) {
        match (sent, answer) {
            // If it failed, the other nodes find the session silent and remove it.
            (Sent::Close, _) => self.emit(Effect::Drained),
            (Sent::Heartbeat { at }, Ok(Answer::Heartbeat(answer))) => self.beaten(at, Ok(answer), now),
            (Sent::Heartbeat { at }, Err(failure)) => self.beaten(at, Err(failure), now),
            (_, _) if self.drain.done => {}
            (Sent::Peek { at }, Ok(Answer::Peek(peek))) => self.peeked(at, Ok(peek), now),
            (Sent::Peek { at }, Err(failure)) => self.peeked(at, Err(failure), now),
            (Sent::Claim(sent), Ok(Answer::Claim(claimed))) => self.claimed(sent, Ok(claimed), now),
            (Sent::Claim(sent), Err(failure)) => self.claimed(sent, Err(failure), now),
            (Sent::Start(runs), Ok(Answer::Start(all))) if all.len() == runs.len() => self.started(runs, Ok(all), now),
            (Sent::Start(runs), Err(failure)) => self.started(runs, Err(failure), now),
            (Sent::Finish(runs), Ok(Answer::Finish(all))) if all.len() == runs.len() => {
                self.finished(runs, Ok(all), now);
            }
            (Sent::Finish(runs), Err(failure)) => self.finished(runs, Err(failure), now),
            (Sent::Settle(runs), Ok(Answer::Settle(all))) if all.len() == runs.len() => {
                self.settled(runs, Ok(all), now);
            }
            (Sent::Settle(runs), Err(failure)) => self.settled(runs, Err(failure), now),
            (Sent::Release(runs), Ok(Answer::Released)) => self.released(runs, Ok(()), now),
            (Sent::Release(runs), Err(failure)) => self.released(runs, Err(failure), now),
            (Sent::WriteBack { until, runs, last }, Ok(Answer::WroteBack(all)))
                if all.as_ref().is_none_or(|all| all.len() == runs.len()) =>
            {
                self.wrote_back((until, runs, last), Ok(all), now);
            }
            (Sent::WriteBack { until, runs, last }, Err(failure)) => {
                self.wrote_back((until, runs, last), Err(failure), now);
            }
            (Sent::ListHeld, Ok(Answer::Held(rows))) => self.held(Ok(rows), now),
            (Sent::ListHeld, Err(failure)) => self.held(Err(failure), now),
            (Sent::Expire(session), Ok(Answer::Expired(true))) => self.sweep(session),
            (Sent::Sweep { session, limit }, Ok(Answer::Swept(rows))) if rows >= limit => self.sweep(session),
            (Sent::Expire(_), Ok(Answer::Expired(false)) | Err(_)) => self.sweep_next(),
            (Sent::Sweep { .. }, Ok(Answer::Swept(_)) | Err(_)) => self.sweep_next(),
            // An answer of another kind, or of another length, says nothing of the call.
            (sent, Ok(_)) => self.answered(sent, Err(CallFailure::Unknown), now),
        }
    }

    /// The next thing to do. Call until `None` after every [`Node::handle`].
    pub fn poll(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// When to come back with [`Input::Tick`] if nothing happens before.
    pub fn next_wake(&self) -> BootTime {
        self.timers.earliest()
    }

    /// The database's time, as far as this node can tell: never later than it is.
    pub fn utc(&self, now: BootTime) -> Timestamp {
        self.clock.utc(now)
    }

    /// How many runs are prepared or starting, and how many execute or may execute.
    pub fn counts(&self) -> (usize, usize) {
        (self.runs.len() - self.executing, self.executing)
    }

    /// The partitions in which this node claims.
    pub fn partitions(&self) -> &[u16] {
        &self.partitions
    }

    /// Every run id in a set of this node. Recovery leaves them alone, and invariants look at them.
    pub fn known_runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.runs.keys().chain(self.pending.keys()).chain(self.successors.values()).copied()
    }

    /// The runs that live here as far as this node knows: spawned, and not yet ended.
    pub fn executing_runs(&self) -> impl Iterator<Item = RunRef> + '_ {
        self.runs.values().filter(|run| run.stage == Stage::Executing).map(|run| run.at)
    }

    /// Sends what is wanted and allowed, and sets the timers of what waits. Starts come before claims, and recovery last: the calls
    /// leave in this order.
    fn step(&mut self, now: BootTime) {
        self.timers.clear();
        if self.beat.ended {
            return;
        }
        self.heartbeat_if_due(now);
        // The session is being closed: only its end follows.
        if self.drain.done {
            return;
        }
        self.collect_due(now);
        self.replace_due(now);
        self.settle_if_needed(now);
        self.start_if_due(now);
        self.write_back_if_needed(now);
        self.finish_if_needed(now);
        self.release_if_needed(now);
        self.claim_if_needed(now);
        self.peek_if_due(now);
        self.recover_if_due(now);
        self.drain_on(now);
    }

    /// The load, as the flow sees it.
    fn load(&self, now: BootTime) -> Load {
        let Config { max_in_flight, max_executing, max_batch, .. } = self.config;
        let mut load = Load {
            now,
            due: self.due.len(),
            ended: self.worklists.ended.len(),
            executing: self.executing,
            starting: self.flight.starting_runs(),
            // Pending ids count: each may turn out to be a row of this node.
            held: self.runs.len() + self.pending.len(),
            free_places: self.free_places(),
            starts: self.flight.starts(),
            finishes: self.flight.finishes(),
            claims: 0,
            overdue: self.agenda.overdue,
            is_alone: self.live.len() <= 1,
            drains: self.drain.begun,
            max_in_flight,
            max_executing,
            max_batch,
        };
        let claim_goes_next = self.agenda.claim && self.flow.claim(&load) > 0;
        load.claims = usize::from(self.flight.claim().is_some() || claim_goes_next);
        load
    }

    fn emit(&mut self, effect: Effect) {
        self.effects.push_back(effect);
    }

    fn call(&mut self, sent: Sent, call: Call) {
        let id = self.flight.send(sent);
        self.emit(Effect::Call { id, call });
    }

    /// This session, as calls carry it.
    fn me(&self) -> Me {
        Me { session: self.session, acked: self.beat.acked }
    }

    /// Draws the id of a run. Ids that people's requests get come from the other end of the counter.
    fn draw(&mut self) -> RunId {
        let run = RunId::drawn(self.session, self.next_run);
        self.next_run += 1;
        run
    }

    /// As many of `runs` as go into one call to the store.
    fn batch_of<'a>(&self, runs: impl IntoIterator<Item = &'a RunId>) -> Vec<RunId> {
        runs.into_iter().take(self.config.max_batch).copied().collect()
    }

    fn refs(&self, runs: &[RunId]) -> Vec<RunRef> {
        runs.iter().filter_map(|run| self.runs.get(run)).map(|run| run.at).collect()
    }
}
