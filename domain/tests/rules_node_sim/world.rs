//! Nodes, their keepers and children, a network that loses and delays, people, and the time of all of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{Event, FiringKey, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants as must;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::RowKey;
use carillon_domain::node::{Effect, Failure, Input, Node};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::{BootTime, Timestamp};

use super::dice::{Dice, config, ending, failed, random_job};
use super::store::{Session, Store, Stored};

const UTC0_MS: i64 = 1_800_000_000_000;

/// A node process with its keeper and the keeper's children.
struct Process {
    node: Node,
    session: SessionId,
    /// Until when the node hears and does nothing (SIGSTOP).
    frozen_until: u64,
    /// When the keeper kills every child.
    keeper_until: u64,
    children: BTreeMap<RunId, JobId>,
    alive: bool,
    drained: bool,
}

enum Happening {
    /// A call reaches the store; its answer goes back unless it is lost.
    Arrives {
        session: SessionId,
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
    spawned: Vec<(FiringKey, u32)>,
    pub steps: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut store = Store { now: Timestamp::from_ms(UTC0_MS), ..Store::default() };
        for n in 1..=2 + dice.below(2) {
            let job = random_job(&mut dice, n);
            let timeline = job.timeline(store.now).unwrap();
            let state = carillon_domain::firing::JobState::new(JobId(n), &timeline, 1_000, store.now).ok();
            let ever_allowed = job.overlap == Overlap::Allow;
            store.jobs.insert(JobId(n), Stored { job: Arc::new(job), timeline, state, ever_allowed });
        }
        let (processes, queue, spawned) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut world =
            Self { now: 0, dice, store, processes, queue, queued: 0, booted: 0, faults: true, spawned, steps: 0 };
        for _ in 0..1 + world.dice.below(2) {
            world.later(1, Happening::Boot);
        }
        world
    }

    /// Faults and people for a while, then quiet; then every row must be Idle and every node empty.
    pub fn run(mut self) -> u64 {
        let faults_ms = 4_000 + self.dice.below(8_000);
        self.run_until(faults_ms);
        self.faults = false;
        if !self.processes.iter().any(|process| process.alive && !process.drained) {
            self.later(1, Happening::Boot);
        }
        self.run_until(faults_ms + 5_000);
        for id in self.store.jobs.keys().copied().collect::<Vec<_>>() {
            self.store.tell(id, &Event::Pause { until: None, reason: None });
        }
        self.run_until(faults_ms + 35_000);
        must::all_idle(self.store.rows().iter().map(|(_, phase, _)| phase)).unwrap();
        for process in self.processes.iter().filter(|process| process.alive) {
            must::nothing_wedged(&process.node).unwrap();
            assert!(process.children.is_empty());
        }
        must::recorded_once(&self.store.records).unwrap();
        for (id, stored) in &self.store.jobs {
            must::starts_once(&stored.job, self.spawned.iter().copied().filter(|(key, _)| key.job == *id)).unwrap();
        }
        self.steps
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
            Happening::Arrives { session, call, sent, answered } => {
                if let Some(input) = self.perform(session, &call, sent).filter(|_| answered) {
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
        let (children, alive, drained) = (BTreeMap::new(), true, false);
        self.processes.push(Process { node, session, frozen_until: 0, keeper_until, children, alive, drained });
        self.feed(self.processes.len() - 1, Input::Tick);
    }

    /// Crashes, freezes, drains, and people.
    fn meddle(&mut self) {
        let n = self.dice.below(self.processes.len().max(1) as u64) as usize;
        let job = JobId(1 + self.dice.below(self.store.jobs.len() as u64));
        let Some(process) = self.processes.get(n) else { return };
        let (session, alive) = (process.session, process.alive);
        match self.dice.below(40) {
            0 if alive => self.die(n),
            1 if alive => self.processes[n].frozen_until = self.now + self.dice.below(6_000),
            2 if alive => self.feed_awake(n, Input::Drain),
            3 if alive && process.node.counts().1 > 0 => self.feed_awake(n, Input::DrainNow),
            4 if alive => {
                self.kill_children(n, false);
                self.feed_awake(n, Input::KeeperDied);
            }
            5..=8 => {
                let until = self.dice.one_in(2).then(|| self.store.now + Duration::from_millis(self.dice.below(3_000)));
                self.store.tell(job, &Event::Pause { until, reason: None });
            }
            9..=14 => self.store.tell(job, &Event::Resume),
            15..=19 => {
                self.booted += 1;
                self.store
                    .tell(job, &Event::Trigger { run: RunId::drawn(SessionId::from_random(1 << 40), self.booted) });
            }
            20..=24 => {
                if let Some(run) = self.store.held(session).first().map(|at| at.run) {
                    self.store.cancel(run);
                }
            }
            25..=27 => {
                let overlap = self.dice.pick(&Overlap::ALL);
                let schedule = format!("@every {}s", 1 + self.dice.below(4));
                let job_now = self.store.jobs[&job].job.clone();
                self.store.update(job, Job { overlap, schedule, ..(*job_now).clone() });
            }
            28 if self.dice.one_in(6) => self.store.tell(job, &Event::Delete),
            _ => {}
        }
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
            Effect::Spawn { held, .. } => {
                let lease = BootTime::from_ms(self.processes[n].keeper_until);
                must::starts_within_lease(lease, BootTime::from_ms(self.now)).unwrap();
                let live = self.processes[n].children.keys().copied().collect();
                must::not_live_yet(held.run, &live).unwrap();
                let (row, ..) = self.store.carrier(session, held.run).expect("S3: its row carries it");
                let id = match row {
                    RowKey::Job(id) => id,
                    RowKey::Active(key) => key.job,
                };
                let key = FiringKey { job: id, due_at: held.firing.due_at, trigger: held.firing.trigger };
                self.spawned.push((key, held.firing.attempt));
                self.processes[n].children.insert(held.run, id);
                let status = self.dice.pick(&[Status::Succeeded, Status::Succeeded, Status::Failed, Status::TimedOut]);
                let takes = if self.dice.one_in(5) { self.dice.below(6_000) } else { self.dice.below(800) };
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
            call => self.send(session, call),
        }
    }

    /// On its way to the store: in time, late, lost, or with its answer lost.
    fn send(&mut self, session: SessionId, call: Effect) {
        let sent = self.now;
        let there = 1 + self.dice.below(30);
        let fate = if self.faults { self.dice.below(20) } else { 19 };
        let failure = match fate {
            0 => Some((self.dice.pick(&[Failure::RolledBack, Failure::Refused]), None)),
            1 => Some((Failure::Unknown, None)),
            2 => Some((Failure::Unknown, Some(there))),
            3 => Some((Failure::Unknown, Some(300 + self.dice.below(3_000)))),
            _ => None,
        };
        let Some((failure, applied_after)) = failure else {
            return self.later(there, Happening::Arrives { session, call, sent, answered: true });
        };
        let input = failed(&call, failure, sent);
        if let Some(after) = applied_after {
            self.later(after, Happening::Arrives { session, call, sent, answered: false });
        }
        let timeout = 50 + self.dice.below(250);
        self.later(timeout, Happening::Answer { session, input });
    }

    fn perform(&mut self, session: SessionId, call: &Effect, sent: u64) -> Option<Input> {
        let store = &mut self.store;
        Some(match call {
            Effect::Heartbeat { seq, draining } => {
                let answer = Ok(store.beat(session, *seq, *draining));
                Input::Beat { sent: BootTime::from_ms(sent), answer }
            }
            Effect::Peek { .. } => Input::Peeked(Ok(store.peek(session))),
            Effect::Claim { until, runs, .. } => Input::Claimed(Ok(store.claim(session, *until, runs))),
            Effect::Start(refs) => Input::Started(Ok(store.start(session, refs))),
            Effect::Settle(refs) => Input::Settled(Ok(store.settle(session, refs))),
            Effect::Finish(requests) => Input::Finished(Ok(store.finish(session, requests))),
            Effect::Reset(refs) => {
                store.reset(session, refs);
                Input::Reset(Ok(()))
            }
            Effect::ListHeld => Input::Held(Ok(store.held(session))),
            Effect::Expire { session: silent, seq } => {
                if let Some(row) = store.sessions.get_mut(silent).filter(|row| row.seq == *seq) {
                    row.ended = true;
                    self.sweep(*silent);
                }
                Input::Swept
            }
            Effect::Sweep { session: ended } => {
                self.sweep(*ended);
                Input::Swept
            }
            _ => return None,
        })
    }

    fn sweep(&mut self, session: SessionId) {
        let live = self.processes.iter().flat_map(|one| one.children.keys().map(|run| (one.session, *run)));
        must::dead_before_sweep(session, live).unwrap();
        self.store.sweep(session);
    }

    fn check(&self) {
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
