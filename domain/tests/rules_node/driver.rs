//! A driver that does nothing by itself: inputs go in, effects are looked at, the clock is moved by hand.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{Firing, Held};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::call::{
    Answer, BeatAnswer, Call, CallFailure, CallId, CallKind, ClaimRequest, PeekRequest, Peer, WriteBackRequest,
};
use carillon_domain::node::port::{
    Claimed, FinishAnswer, Peek, RowKey, RunRef, SettleAnswer, StartAnswer, WriteBackAnswer,
};
use carillon_domain::node::{Config, Effect, FlowKind, Input, Node, SelfKillReason, StopReason};
use carillon_domain::run::{Ending, Status, Trigger};
use carillon_domain::time::{BootTime, Timestamp};

/// The database's time at boot second 0.
pub const UTC0_MS: i64 = 1_800_000_000_000;

pub fn me() -> SessionId {
    SessionId::from_random(1)
}

pub fn other() -> SessionId {
    SessionId::from_random(2)
}

/// A heartbeat is always in flight, so that one can be answered at any moment, and the lease is never over.
pub fn config() -> Config {
    let timing = Timing { heartbeat: Duration::ZERO, self_kill_after: Duration::from_secs(3_600), ..Timing::default() };
    Config { timing, ..timed() }
}

thread_local! {
    /// The flow of the nodes that this thread makes.
    static FLOW: Cell<FlowKind> = const { Cell::new(FlowKind::Tuned) };
}

/// Runs a test with nodes of another flow.
pub fn with_flow(flow: FlowKind, test: impl FnOnce()) {
    FLOW.set(flow);
    test();
    FLOW.set(FlowKind::Tuned);
}

/// With the heartbeats and the lease of a server.
pub fn timed() -> Config {
    Config {
        timing: Timing::default(),
        self_kill: true,
        partitions: 1,
        horizon: Duration::from_secs(30),
        max_in_flight: 100,
        max_executing: 10,
        max_batch: 50,
        peek_every: Duration::from_secs(1),
        peek_every_at_rest: Duration::from_secs(1),
        steal_after: Duration::from_secs(5),
        recover_every: Duration::from_secs(10),
        remembered_ends: 50,
        flow: FLOW.get(),
        drain_timeout: Duration::from_secs(60),
    }
}

pub fn job() -> Arc<Job> {
    Arc::new(Job::new(("default", "job"), "@every 60s", "{}"))
}

pub fn utc(ms: i64) -> Timestamp {
    Timestamp::from_ms(UTC0_MS + ms)
}

pub fn succeeded() -> Ending {
    Ending { exit_code: Some(0), ..Ending::new(Status::Succeeded, Timestamp::EPOCH) }
}

pub struct Driver {
    pub node: Node,
    pub now: BootTime,
    /// The effects since they were last taken.
    pub seen: Vec<Effect>,
    /// The calls in flight, oldest first.
    pub in_flight: Vec<(CallId, CallKind)>,
}

impl Driver {
    /// A node at boot second 0, its first heartbeat acknowledged and its first look answered.
    pub fn new(config: Config) -> Self {
        let now = BootTime::from_ms(0);
        let node = Node::new(config, me(), utc(0), now);
        let mut driver = Self { node, now, seen: Vec::new(), in_flight: Vec::new() };
        driver.feed(Input::Offers(vec!["http".into(), "shell".into()]));
        driver.beat();
        driver.peeked(Ok(Peek::default()));
        driver.held(Ok(vec![]));
        driver.take();
        driver
    }

    pub fn feed(&mut self, input: Input) {
        self.node.handle(input, self.now);
        while let Some(effect) = self.node.poll() {
            if let Effect::Call { id, call } = &effect {
                self.in_flight.push((*id, call.kind()));
            }
            self.seen.push(effect);
        }
    }

    /// Answers the oldest call of a kind that is in flight.
    pub fn answer(&mut self, kind: CallKind, answer: Result<Answer, CallFailure>) {
        let of_kind = self.in_flight.iter().find(|(_, of)| *of == kind).map(|(id, _)| *id);
        let Some(id) = of_kind else { panic!("no {kind:?} is in flight") };
        self.answer_call(id, answer);
    }

    pub fn answer_call(&mut self, id: CallId, answer: Result<Answer, CallFailure>) {
        self.in_flight.retain(|(of, _)| *of != id);
        self.feed(Input::Answered { id, answer });
    }

    pub fn is_in_flight(&self, kind: CallKind) -> bool {
        self.in_flight.iter().any(|(_, of)| *of == kind)
    }

    pub fn peeked(&mut self, answer: Result<Peek, CallFailure>) {
        self.answer(CallKind::Peek, answer.map(Answer::Peek));
    }

    pub fn claimed(&mut self, answer: Result<Vec<Claimed>, CallFailure>) {
        self.answer(CallKind::Claim, answer.map(Answer::Claim));
    }

    pub fn settled(&mut self, answer: Result<Vec<SettleAnswer>, CallFailure>) {
        self.answer(CallKind::Settle, answer.map(Answer::Settle));
    }

    pub fn released(&mut self, answer: Result<(), CallFailure>) {
        self.answer(CallKind::Release, answer.map(|()| Answer::Released));
    }

    pub fn held(&mut self, answer: Result<Vec<RunRef>, CallFailure>) {
        self.answer(CallKind::ListHeld, answer.map(Answer::Held));
    }

    /// The session that is being ended or swept was not silent, or holds nothing.
    pub fn swept(&mut self) {
        if self.is_in_flight(CallKind::Sweep) {
            self.answer(CallKind::Sweep, Ok(Answer::Swept(0)));
        } else {
            self.answer(CallKind::Expire, Ok(Answer::Expired(false)));
        }
    }

    pub fn beaten(&mut self, answer: Result<BeatAnswer, CallFailure>) {
        self.answer(CallKind::Heartbeat, answer.map(Answer::Heartbeat));
    }

    /// Moves the clock to `ms` and ticks.
    pub fn tick(&mut self, ms: u64) {
        self.now = BootTime::from_ms(ms);
        self.feed(Input::Tick);
    }

    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.seen)
    }

    /// The heartbeat in flight is acknowledged now.
    pub fn beat(&mut self) {
        let peers = vec![peer(me(), 1)];
        self.beat_with(peers, UTC0_MS + self.now.as_ms() as i64);
    }

    pub fn beat_with(&mut self, peers: Vec<Peer>, utc_ms: i64) {
        self.beaten(Ok(BeatAnswer::Alive { utc: Timestamp::from_ms(utc_ms), peers, window: None }));
    }

    /// Asks for work until a claim is sent; answers its ids.
    pub fn claim(&mut self) -> Vec<RunId> {
        self.claim_from(self.node.utc(self.now)).runs
    }

    /// Looks, finds that the first comes up at `earliest`, and answers the claim that is sent.
    pub fn claim_from(&mut self, earliest: Timestamp) -> ClaimRequest {
        self.feed(Input::RowsChanged);
        self.peeked(Ok(Peek { earliest_claim_at: Some(earliest), ..Peek::default() }));
        let claim = self.claims().into_iter().next();
        self.take();
        claim.expect("a claim is sent")
    }

    /// Claims one run that is due at `due_ms`.
    pub fn prepare(&mut self, due_ms: i64) -> Claimed {
        let run = self.claim()[0];
        let claimed = prepared(run, run.parts().1, due_ms);
        self.claimed(Ok(vec![claimed.clone()]));
        claimed
    }

    /// Claims and starts one run now.
    pub fn execute(&mut self) -> Claimed {
        let claimed = self.prepare(self.now.as_ms() as i64);
        assert_eq!(self.starts(), vec![claimed.at]);
        self.answer_start(Ok(vec![started(&claimed)]));
        assert_eq!(self.spawns(), [claimed.at.run]);
        claimed
    }

    /// The same of a run that a person asked for.
    pub fn execute_manual(&mut self) -> Claimed {
        let mut manual = prepared(self.claim()[0], 1, 0);
        manual.held.firing.trigger = Trigger::Manual;
        self.claimed(Ok(vec![manual.clone()]));
        self.answer_start(Ok(vec![started(&manual)]));
        manual
    }

    /// The clock moves to `ms`, where heartbeats show that the other node lives too.
    pub fn beat_with_other(&mut self, ms: u64) {
        self.tick(ms);
        self.beat_with(vec![peer(me(), ms), peer(other(), ms)], UTC0_MS + ms as i64);
    }

    /// The peeks that were sent.
    pub fn peeks(&mut self) -> Vec<PeekRequest> {
        self.pick_calls(|call| if let Call::Peek(request) = call { Some(request.clone()) } else { None })
    }

    /// The claims that were sent.
    pub fn claims(&mut self) -> Vec<ClaimRequest> {
        self.pick_calls(|call| if let Call::Claim(request) = call { Some(request.clone()) } else { None })
    }

    /// The runs of the start that was sent, if one was.
    pub fn starts(&mut self) -> Vec<RunRef> {
        self.pick_calls(|call| if let Call::Start { runs, .. } = call { Some(runs.clone()) } else { None }).concat()
    }

    pub fn settles(&mut self) -> Vec<RunRef> {
        self.pick_calls(|call| if let Call::Settle { runs, .. } = call { Some(runs.clone()) } else { None }).concat()
    }

    pub fn releases(&mut self) -> Vec<RunRef> {
        self.pick_calls(|call| if let Call::Release { runs, .. } = call { Some(runs.clone()) } else { None }).concat()
    }

    pub fn spawns(&mut self) -> Vec<RunId> {
        self.pick(|effect| if let Effect::Spawn { held, .. } = effect { Some(held.run) } else { None })
    }

    pub fn stops(&mut self) -> Vec<(RunId, StopReason)> {
        self.pick(|effect| if let Effect::Stop { run, reason } = effect { Some((*run, *reason)) } else { None })
    }

    pub fn finishes(&mut self) -> Vec<(RunId, Ending)> {
        let of = |call: &Call| match call {
            Call::Finish { runs, .. } => {
                Some(runs.iter().map(|one| (one.at.run, one.ending.clone())).collect::<Vec<_>>())
            }
            _ => None,
        };
        self.pick_calls(of).concat()
    }

    pub fn kills(&mut self) -> Vec<SelfKillReason> {
        self.pick(|effect| if let Effect::SelfKill(reason) = effect { Some(*reason) } else { None })
    }

    /// How often the session was closed.
    pub fn closes(&mut self) -> usize {
        self.pick_calls(|call| matches!(call, Call::Close { .. }).then_some(())).len()
    }

    /// Takes the calls of one kind out of the effects seen.
    pub fn pick_calls<T>(&mut self, of: impl Fn(&Call) -> Option<T>) -> Vec<T> {
        self.pick(|effect| if let Effect::Call { call, .. } = effect { of(call) } else { None })
    }

    /// Takes the effects of one kind out of those seen.
    pub fn pick<T>(&mut self, of: impl Fn(&Effect) -> Option<T>) -> Vec<T> {
        let (picked, kept) = self.take().into_iter().partition::<Vec<_>, _>(|effect| of(effect).is_some());
        self.seen = kept;
        picked.iter().filter_map(of).collect()
    }

    pub fn exit(&mut self, run: RunId) {
        self.exit_with(run, succeeded());
    }

    pub fn exit_with(&mut self, run: RunId, ending: Ending) {
        self.feed(Input::Exited { run, ending, output: Arc::default() });
    }

    /// The start that was sent first is answered.
    pub fn answer_start(&mut self, answer: Result<Vec<StartAnswer>, CallFailure>) {
        self.answer(CallKind::Start, answer.map(Answer::Start));
    }

    pub fn answer_start_of(&mut self, id: CallId, answer: Result<Vec<StartAnswer>, CallFailure>) {
        self.answer_call(id, answer.map(Answer::Start));
    }

    /// The finish that was sent first is answered.
    pub fn answer_finish(&mut self, answer: Result<Vec<FinishAnswer>, CallFailure>) {
        self.answer(CallKind::Finish, answer.map(Answer::Finish));
    }

    pub fn answer_finish_of(&mut self, id: CallId, answer: Result<Vec<FinishAnswer>, CallFailure>) {
        self.answer_call(id, answer.map(Answer::Finish));
    }

    /// The write-backs that were sent.
    pub fn write_backs(&mut self) -> Vec<WriteBackRequest> {
        self.pick_calls(|call| if let Call::WriteBack(request) = call { Some(request.clone()) } else { None })
    }

    /// The oldest write-back in flight is answered.
    pub fn wrote_back(&mut self, answer: Result<Option<Vec<WriteBackAnswer>>, CallFailure>) {
        self.answer(CallKind::WriteBack, answer.map(Answer::WroteBack));
    }

    pub fn recorded(&mut self) {
        self.answer_finish(Ok(vec![FinishAnswer::Recorded { claim_at: None }]));
    }
}

pub fn peer(session: SessionId, seq: u64) -> Peer {
    Peer { session, seq, claims: true, ended: false }
}

/// A row of job number `job`, prepared under `run`.
pub fn prepared(run: RunId, job_number: u64, due_ms: i64) -> Claimed {
    let at = RunRef { row: RowKey::Job(JobId(job_number)), run, version: 10 };
    let firing = Firing::regular(utc(due_ms));
    let held = Held { firing, run, session: me(), started_at: None, fencing_token: 0 };
    Claimed { at, held, replace_at: None, job: job(), generation: 1 }
}

/// Where and as what it executes once it has started.
pub fn executing(claimed: &Claimed) -> (RunRef, Held) {
    let at = RunRef { version: claimed.at.version + 1, ..claimed.at };
    (at, Held { started_at: Some(claimed.held.firing.start_at), fencing_token: at.version, ..claimed.held })
}

pub fn started(claimed: &Claimed) -> StartAnswer {
    let (at, held) = executing(claimed);
    StartAnswer::Started { at, held, replace_at: None }
}

pub fn found_executing(claimed: &Claimed, withdrawn: bool) -> SettleAnswer {
    let (at, held) = executing(claimed);
    SettleAnswer::Executing { at, held, replace_at: None, withdrawn }
}
