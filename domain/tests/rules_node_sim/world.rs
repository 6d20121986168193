//! Nodes, their keepers and children, a network that loses and delays, people, and the time of all of them.

#[path = "meddling.rs"]
mod meddling;
#[path = "network.rs"]
mod network;
#[path = "past.rs"]
mod past;
#[path = "sharing.rs"]
mod sharing;

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{Event, FiringKey, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants as must;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::RowKey;
use carillon_domain::node::{Effect, Input, Node};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::{BootTime, Timestamp};

use super::dice::{Dice, config, ending, executors_of, random_job};
use super::store::{Me, Session, Store, Stored};
use sharing::Lying;

const UTC0_MS: i64 = 1_800_000_000_000;

/// A node process with its keeper and the keeper's children.
struct Process {
    node: Node,
    session: SessionId,
    /// Until when the node hears and does nothing (SIGSTOP).
    frozen_until: u64,
    /// When the keeper kills every child.
    keeper_until: u64,
    /// It spawns nothing more, and its node hears of that in time.
    keeper_died: bool,
    children: BTreeMap<RunId, JobId>,
    alive: bool,
    drained: bool,
}

enum Happening {
    /// A call reaches the store; its answer goes back unless it is lost.
    Arrives {
        me: Me,
        call: Effect,
        sent: u64,
        answered: bool,
    },
    Answer {
        session: SessionId,
        input: Input,
    },
    ChildEnds {
        session: SessionId,
        run: RunId,
        ending: Ending,
    },
    ChildrenDie {
        session: SessionId,
    },
    Boot,
}

pub struct World {
    now: u64,
    dice: Dice,
    store: Store,
    processes: Vec<Process>,
    queue: BTreeMap<(u64, u64), Happening>,
    queued: u64,
    booted: u64,
    faults: bool,
    /// What the store may go back to, where the world is one in which it does.
    past: Option<past::Past>,
    /// Whose claims fail, one and all, while its heartbeats go through.
    stuck: Option<SessionId>,
    /// Whether a run may take longer than a moment.
    long_runs: bool,
    /// Each start, and its moment.
    spawned: Vec<(FiringKey, u32, Timestamp)>,
    lying: Lying,
    pub steps: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let jobs: Vec<Job> = (1..=2 + dice.below(4)).map(|n| random_job(&mut dice, n)).collect();
        let nodes = 1 + dice.below(3);
        Self { faults: true, long_runs: true, ..Self::with(dice, jobs, nodes) }
    }

    fn with(dice: Dice, jobs: Vec<Job>, nodes: u64) -> Self {
        let mut store = Store { now: Timestamp::from_ms(UTC0_MS), ..Store::default() };
        for (n, job) in (1..).zip(jobs) {
            let timeline = job.timeline(store.now).unwrap();
            let state = carillon_domain::firing::JobState::new(JobId(n), &timeline, 1_000, store.now).ok();
            let ever_allowed = job.overlap == Overlap::Allow;
            store.jobs.insert(JobId(n), Stored { job: Arc::new(job), timeline, state, ever_allowed });
        }
        let mut world = Self {
            now: 0,
            dice,
            store,
            processes: Vec::new(),
            queue: BTreeMap::new(),
            queued: 0,
            booted: 0,
            faults: false,
            stuck: None,
            past: None,
            long_runs: false,
            spawned: Vec::new(),
            lying: Lying::default(),
            steps: 0,
        };
        for _ in 0..nodes {
            world.later(1, Happening::Boot);
        }
        world
    }

    /// Faults and people for a while, then quiet; then every row must be Idle and every node empty.
    pub fn run(mut self) -> Self {
        let faults_ms = 4_000 + self.dice.below(8_000);
        self.run_until(faults_ms);
        self.faults = false;
        if !self.processes.iter().any(|process| process.alive && !process.drained) {
            self.later(1, Happening::Boot);
        }
        self.run_until(faults_ms + 8_000);
        self.lying.watched = true;
        self.run_until(faults_ms + 15_000);
        self.lying = Lying::default();
        for id in self.store.jobs.keys().copied().collect::<Vec<_>>() {
            self.store.tell(id, &Event::Pause { until: None, reason: None });
        }
        self.run_until(faults_ms + 45_000);
        must::all_idle(self.store.rows().iter().map(|(_, phase, _)| phase)).unwrap();
        for process in self.processes.iter().filter(|process| process.alive) {
            must::nothing_wedged(&process.node).unwrap();
            assert!(process.children.is_empty());
        }
        must::recorded_once(&self.store.records).unwrap();
        if self.past.is_some() {
            self.check_starts_over_all_pasts();
            return self;
        }
        for (id, stored) in &self.store.jobs {
            must::starts_once(&stored.job, self.starts_of(*id)).unwrap();
        }
        self
    }

    fn starts_of(&self, job: JobId) -> impl Iterator<Item = (FiringKey, u32)> {
        self.spawned.iter().filter(move |(key, ..)| key.job == job).map(|(key, attempt, _)| (*key, *attempt))
    }

    fn later(&mut self, after_ms: u64, what: Happening) {
        self.queued += 1;
        self.queue.insert((self.now + after_ms, self.queued), what);
    }

    fn run_until(&mut self, end: u64) {
        let mut same_time = 0;
        loop {
            let wakes = self.processes.iter().filter(|one| one.alive).map(|one| one.wake());
            let next = self.queue.keys().next().map(|(at, _)| *at).into_iter().chain(wakes).min().unwrap_or(end);
            if next > end {
                break;
            }
            same_time = if next > self.now { 0 } else { same_time + 1 };
            assert!(same_time < 2_000, "a busy loop at {next}");
            self.now = self.now.max(next);
            self.store.now = Timestamp::from_ms(UTC0_MS + self.now as i64);
            self.step();
            self.check();
            self.watch_what_lies();
            self.steps += 1;
        }
        self.now = end;
    }

    fn step(&mut self) {
        let due = self.queue.first_entry().filter(|entry| entry.key().0 <= self.now).map(|entry| entry.remove());
        match due {
            Some(what) => self.happen(what),
            None => self.tick(),
        }
        if self.faults && self.dice.one_in(25) {
            self.meddle();
        }
        if self.past.is_some() {
            self.play_with_time();
        }
    }

    fn tick(&mut self) {
        for n in 0..self.processes.len() {
            let process = &mut self.processes[n];
            if process.alive && process.keeper_until <= self.now && !process.children.is_empty() {
                self.kill_children(n, true);
            }
            if self.processes[n].alive && self.processes[n].wake() <= self.now {
                self.feed(n, Input::Tick);
            }
        }
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Boot => self.boot(),
            Happening::Arrives { me, call, sent, answered } => {
                let session = me.0;
                if let Some(input) = self.perform(me, &call, sent).filter(|_| answered) {
                    let after = 1 + self.dice.below(20);
                    self.later(after, Happening::Answer { session, input });
                }
            }
            Happening::Answer { session, input } => {
                let Some(n) = self.alive(session) else { return };
                if self.processes[n].frozen_until > self.now {
                    let after = self.processes[n].frozen_until - self.now;
                    return self.later(after, Happening::Answer { session, input });
                }
                self.feed(n, input);
            }
            Happening::ChildEnds { session, run, ending } => {
                let Some(n) = self.processes.iter().position(|process| process.session == session) else { return };
                if self.processes[n].children.remove(&run).is_some() {
                    self.later(0, Happening::Answer { session, input: Input::Exited { run, ending } });
                }
            }
            Happening::ChildrenDie { session } => {
                let n = self.processes.iter().position(|process| process.session == session);
                n.into_iter().for_each(|n| self.kill_children(n, false));
            }
        }
    }

    fn alive(&self, session: SessionId) -> Option<usize> {
        self.processes.iter().position(|process| process.session == session && process.alive)
    }

    fn boot(&mut self) {
        self.booted += 1;
        let session = SessionId::from_random(self.booted);
        self.store.sessions.insert(session, Session { seq: 0, draining: false, ended: false });
        let now = BootTime::from_ms(self.now);
        let config = config();
        let keeper_until = self.now + config.timing.self_kill_after.as_millis() as u64;
        let node = Node::new(config, session, self.store.now, now);
        let (children, alive, drained, keeper_died) = (BTreeMap::new(), true, false, false);
        let process = Process { node, session, frozen_until: 0, keeper_until, keeper_died, children, alive, drained };
        self.processes.push(process);
        self.feed(self.processes.len() - 1, Input::Tick);
    }

    fn feed_awake(&mut self, n: usize, input: Input) {
        if self.processes[n].frozen_until <= self.now {
            self.feed(n, input);
        }
    }

    /// The node is gone; its keeper kills the children within the grace, and somebody boots another.
    fn die(&mut self, n: usize) {
        let session = self.processes[n].session;
        self.processes[n].alive = false;
        let (grace, reboot) = (self.dice.below(500), 100 + self.dice.below(3_000));
        self.later(grace, Happening::ChildrenDie { session });
        self.later(reboot, Happening::Boot);
    }

    fn kill_children(&mut self, n: usize, told: bool) {
        let session = self.processes[n].session;
        for run in std::mem::take(&mut self.processes[n].children).into_keys() {
            if told {
                let ending = ending(Status::Failed);
                self.later(0, Happening::Answer { session, input: Input::Exited { run, ending } });
            }
        }
    }

    fn feed(&mut self, n: usize, input: Input) {
        let now = BootTime::from_ms(self.now);
        self.processes[n].node.handle(input, now);
        while let Some(effect) = self.processes[n].node.poll() {
            self.carry_out(n, effect);
        }
    }

    fn carry_out(&mut self, n: usize, effect: Effect) {
        let session = self.processes[n].session;
        match effect {
            Effect::RenewKeeper { until } => self.processes[n].keeper_until = until.as_ms(),
            Effect::Spawn { .. } if self.processes[n].keeper_died => {}
            Effect::Spawn { held, job } => {
                let lease = BootTime::from_ms(self.processes[n].keeper_until);
                must::starts_within_lease(lease, BootTime::from_ms(self.now)).unwrap();
                // A manual run keeps its id, and its row may have gone back under it.
                let lives = self.processes[n].children.contains_key(&held.run) && !self.went_back();
                must::not_live_yet(held.run, lives).unwrap();
                let id = self.job_of(session, held.run, &job);
                let key = FiringKey { job: id, due_at: held.firing.due_at, trigger: held.firing.trigger };
                self.spawned.push((key, held.firing.attempt, self.store.now));
                self.processes[n].children.insert(held.run, id);
                let status = self.dice.pick(&[Status::Succeeded, Status::Succeeded, Status::Failed, Status::TimedOut]);
                let takes = match self.long_runs {
                    true if self.dice.one_in(5) => self.dice.below(6_000),
                    true => self.dice.below(800),
                    false => self.dice.below(100),
                };
                self.later(takes, Happening::ChildEnds { session, run: held.run, ending: ending(status) });
            }
            Effect::Stop { run, .. } => {
                let takes = self.dice.below(200);
                self.later(takes, Happening::ChildEnds { session, run, ending: ending(Status::Cancelled) });
            }
            Effect::Forget(_) => {}
            Effect::Drained => {
                assert!(!std::mem::replace(&mut self.processes[n].drained, true), "drained once");
                assert!(self.processes[n].children.is_empty());
                self.store.close(session);
                self.processes[n].alive = false;
                self.later(1_000, Happening::Boot);
            }
            Effect::SelfKill(_) => self.die(n),
            call => self.send((session, self.processes[n].node.acked()), call),
        }
    }

    /// The job that the row of a run says it is of.
    fn job_of(&self, session: SessionId, run: RunId, job: &Job) -> JobId {
        match self.store.carrier(session, run) {
            Some((RowKey::Job(id), ..)) => id,
            Some((RowKey::Concurrent(key), ..)) => key.job,
            None if self.went_back() => past::number_of(job),
            None => panic!("S3: its row carries run {run}"),
        }
    }

    fn check(&self) {
        if self.went_back() {
            return;
        }
        let live =
            || self.processes.iter().flat_map(|one| one.children.iter().map(|(run, job)| (one.session, *run, *job)));
        let allowed = |job: JobId| self.store.jobs[&job].ever_allowed;
        must::one_live_run(live().map(|(_, run, job)| (job, run)), allowed).unwrap();
        for (session, run, _) in live() {
            let row = self.store.carrier(session, run).map(|(_, phase, _): (_, Phase, _)| phase);
            must::child_has_its_row(session, run, row.as_ref()).unwrap();
        }
        for process in self.processes.iter().filter(|process| process.alive) {
            assert!(process.children.len() <= 3, "max_executing");
        }
    }
}

impl Process {
    /// When it is to be looked at again.
    fn wake(&self) -> u64 {
        let keeper = if self.children.is_empty() { u64::MAX } else { self.keeper_until };
        self.node.next_wake().as_ms().max(self.frozen_until).min(keeper)
    }
}
