//! A driver that does nothing by itself: inputs go in, effects are looked at, the clock is moved by hand.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{Firing, Held};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::port::{Claimed, FinishAnswer, Peek, RowKey, RunRef, Seen, StartAnswer};
use carillon_domain::node::{
    BeatAnswer, Config, Effect, Input, Lane, Node, Peer, SelfKillReason, StopReason, StoreAnswer,
};
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

pub fn config() -> Config {
    Config {
        timing: Timing::default(),
        self_kill: true,
        partitions: 1,
        horizon: Duration::from_secs(30),
        max_in_flight: 100,
        max_executing: 10,
        max_batch: 50,
        peek_every: Duration::from_secs(1),
        steal_after: Duration::from_secs(5),
        recover_every: Duration::from_secs(10),
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
    Ending { status: Status::Succeeded, exit_code: Some(0), signal: None, reason: None, ended_at: Timestamp::EPOCH }
}

/// What a claim asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentClaim {
    pub partitions: Vec<u16>,
    pub until: Timestamp,
    pub runs: Vec<RunId>,
    pub places: usize,
    pub only: Option<String>,
}

pub struct Driver {
    pub node: Node,
    pub now: BootTime,
    /// The effects since they were last taken.
    pub seen: Vec<Effect>,
}

impl Driver {
    /// A node at boot second 0, its first heartbeat acknowledged and its first look answered.
    pub fn new(config: Config) -> Self {
        let now = BootTime::from_ms(0);
        let mut driver = Self { node: Node::new(config, me(), utc(0), now), now, seen: Vec::new() };
        driver.tick(0);
        driver.beat(0);
        driver.feed(Input::Peeked(Ok(Peek::default())));
        driver.feed(Input::Held(Ok(vec![])));
        driver.take();
        driver
    }

    pub fn feed(&mut self, input: Input) {
        self.node.handle(input, self.now);
        while let Some(effect) = self.node.poll() {
            self.seen.push(effect);
        }
    }

    /// Moves the clock to `ms` and ticks.
    pub fn tick(&mut self, ms: u64) {
        self.now = BootTime::from_ms(ms);
        self.feed(Input::Tick);
    }

    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.seen)
    }

    /// The heartbeat that is on its way was sent at `sent` and is acknowledged now.
    pub fn beat(&mut self, sent: u64) {
        let peers = vec![peer(me(), 1)];
        self.beat_with(sent, peers, UTC0_MS + self.now.as_ms() as i64);
    }

    pub fn beat_with(&mut self, sent: u64, peers: Vec<Peer>, utc_ms: i64) {
        let answer = Ok(BeatAnswer::Alive { utc: Timestamp::from_ms(utc_ms), peers, window: None });
        self.feed(Input::Beat { sent: BootTime::from_ms(sent), answer });
    }

    /// Asks for work until a claim is sent; answers its ids.
    pub fn claim(&mut self) -> Vec<RunId> {
        self.claim_from(self.node.utc(self.now)).runs
    }

    /// Looks, finds that the first comes up at `earliest`, and answers the claim that is sent.
    pub fn claim_from(&mut self, earliest: Timestamp) -> SentClaim {
        self.feed(Input::Look);
        self.feed(Input::Peeked(Ok(Peek { earliest_claim_at: Some(earliest), ..Peek::default() })));
        let claim = self.claims().into_iter().next();
        self.take();
        claim.expect("a claim is sent")
    }

    /// Claims one run that is due at `due_ms`.
    pub fn prepare(&mut self, due_ms: i64) -> Claimed {
        let run = self.claim()[0];
        let claimed = prepared(run, run.parts().1, due_ms);
        self.feed(Input::Claimed(Ok(vec![claimed.clone()])));
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
        self.feed(Input::Claimed(Ok(vec![manual.clone()])));
        self.answer_start(Ok(vec![started(&manual)]));
        manual
    }

    /// The clock moves to `ms`, where heartbeats show that the other node lives too.
    pub fn beat_with_other(&mut self, ms: u64) {
        self.tick(ms);
        self.beat_with(ms, vec![peer(me(), ms), peer(other(), ms)], UTC0_MS + ms as i64);
    }

    /// The claims that were sent.
    pub fn claims(&mut self) -> Vec<SentClaim> {
        self.pick(|effect| match effect {
            Effect::Claim { partitions, until, runs, places, only } => Some(SentClaim {
                partitions: partitions.clone(),
                until: *until,
                runs: runs.clone(),
                places: *places,
                only: only.clone(),
            }),
            _ => None,
        })
    }

    /// The runs of the start that was sent, if one was.
    pub fn starts(&mut self) -> Vec<RunRef> {
        self.pick(|effect| if let Effect::Start { runs, .. } = effect { Some(runs.clone()) } else { None }).concat()
    }

    pub fn settles(&mut self) -> Vec<RunRef> {
        self.pick(|effect| if let Effect::Settle(refs) = effect { Some(refs.clone()) } else { None }).concat()
    }

    pub fn resets(&mut self) -> Vec<RunRef> {
        self.pick(|effect| if let Effect::Reset(refs) = effect { Some(refs.clone()) } else { None }).concat()
    }

    pub fn spawns(&mut self) -> Vec<RunId> {
        self.pick(|effect| if let Effect::Spawn { held, .. } = effect { Some(held.run) } else { None })
    }

    pub fn stops(&mut self) -> Vec<(RunId, StopReason)> {
        self.pick(|effect| if let Effect::Stop { run, reason } = effect { Some((*run, *reason)) } else { None })
    }

    pub fn finishes(&mut self) -> Vec<(RunId, Ending)> {
        let of = |effect: &Effect| match effect {
            Effect::Finish { runs: all, .. } => {
                Some(all.iter().map(|one| (one.at.run, one.ending.clone())).collect::<Vec<_>>())
            }
            _ => None,
        };
        self.pick(of).concat()
    }

    pub fn kills(&mut self) -> Vec<SelfKillReason> {
        self.pick(|effect| if let Effect::SelfKill(reason) = effect { Some(*reason) } else { None })
    }

    pub fn drained(&mut self) -> usize {
        self.pick(|effect| if let Effect::Drained = effect { Some(()) } else { None }).len()
    }

    /// Takes the effects of one kind out of those seen.
    pub fn pick<T>(&mut self, of: impl Fn(&Effect) -> Option<T>) -> Vec<T> {
        let (picked, kept) = self.take().into_iter().partition::<Vec<_>, _>(|effect| of(effect).is_some());
        self.seen = kept;
        picked.iter().filter_map(of).collect()
    }

    pub fn exit(&mut self, run: RunId) {
        self.feed(Input::Exited { run, ending: succeeded() });
    }

    /// The start that was sent first is answered; where two are on their way, the other one's lane is not the first.
    pub fn answer_start(&mut self, answer: StoreAnswer<Vec<StartAnswer>>) {
        self.feed(Input::Started { lane: Lane::default(), answer });
    }

    /// The same of a finish.
    pub fn answer_finish(&mut self, answer: StoreAnswer<Vec<FinishAnswer>>) {
        self.feed(Input::Finished { lane: Lane::default(), answer });
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

pub fn found_executing(claimed: &Claimed, withdrawn: bool) -> Seen {
    let (at, held) = executing(claimed);
    Seen::Executing { at, held, replace_at: None, withdrawn }
}
