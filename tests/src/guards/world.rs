//! Whole nodes on a store in memory, in virtual time: a call takes a millisecond, unless the story says otherwise.
//!
//! Keepers are as slow as the fencing inequality allows: children die `fence_grace` and `pause` after the deadline.

use carillon_doubles::author;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{FiringKey, JobState, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict, Violation};
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::call::{Answer, Call, CallFailure, CallId, CallKind};
use carillon_domain::node::{Config, Effect, Input, Node};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::{BootTime, Timestamp};
use carillon_doubles::{MemoryStore, memory_store};
use carillon_store::{
    ControlStore, JobKey, JobQuery, ManualClock, NewSession, NodeStore, Output, PutIf, PutJob, RunStage, SessionState,
    perform,
};

use crate::conformance::fixture::{BEGIN, PARTITIONS};

/// How long a call of one kind takes, once.
pub struct Slow {
    /// Whose call.
    pub node: usize,
    /// Which.
    pub call: CallKind,
    /// How long until it reaches the store, in milliseconds.
    pub there: u64,
    /// And how long until its answer is back.
    pub back: u64,
}

struct Process {
    node: Node,
    session: SessionId,
    keeper_until: u64,
    children: BTreeMap<RunId, JobId>,
    alive: bool,
    /// No heartbeat of it reaches the store.
    cut_off: bool,
    /// It does and hears nothing.
    frozen: bool,
}

enum TimedEvent {
    Arrives { id: CallId, call: Call, back: u64 },
    Answer(Input),
    ChildEnds(RunId),
}

/// The nodes, their store and their time.
pub struct World {
    /// The store.
    pub store: MemoryStore,
    /// How long a run takes, in milliseconds.
    pub run_ms: u64,
    /// The output of runs.
    pub output: fn(&str) -> Vec<u8>,
    /// Calls that take long.
    pub slow: Vec<Slow>,
    clock: ManualClock,
    timing: Timing,
    now: u64,
    processes: Vec<Process>,
    queue: BTreeMap<(u64, u64), (usize, TimedEvent)>,
    queued: u64,
    jobs: BTreeMap<JobId, Job>,
    starts: Vec<(FiringKey, u32)>,
    broken: Option<Violation>,
}

/// The futures of a store in memory are ready.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return answer;
        }
    }
}

impl World {
    /// A world with these jobs.
    pub fn with(jobs: Vec<Job>) -> Self {
        Self::timed(jobs, Timing::default())
    }

    /// A world whose sessions have this timing.
    pub fn timed(jobs: Vec<Job>, timing: Timing) -> Self {
        let clock = ManualClock::at(BEGIN);
        let store = memory_store(Arc::new(clock.clone()), PARTITIONS);
        let mut stored = BTreeMap::new();
        for job in jobs {
            let put = PutJob { job: job.clone(), paused: None, when: PutIf::Absent, author: author() };
            let saved = ready(store.put_jobs(&[put])).expect("an answer").remove(0).expect("a new job");
            stored.insert(saved.view.state.id, job);
        }
        Self {
            store,
            run_ms: 1_000,
            output: |_| Vec::new(),
            slow: Vec::new(),
            clock,
            timing,
            now: 0,
            processes: Vec::new(),
            queue: BTreeMap::new(),
            queued: 0,
            jobs: stored,
            starts: Vec::new(),
            broken: None,
        }
    }

    /// A node starts.
    pub fn boot(&mut self) -> usize {
        self.boot_with(vec!["shell".to_owned()])
    }

    fn boot_with(&mut self, executors: Vec<String>) -> usize {
        let session = SessionId::from_random(self.processes.len() as u64 + 1);
        let new = NewSession { id: session, node: session.to_string(), address: String::new(), version: String::new() };
        let opened = ready(self.store.open_session(&new)).expect("a session");
        let config = Config {
            timing: self.timing,
            self_kill: true,
            partitions: PARTITIONS,
            horizon: Duration::from_secs(30),
            max_in_flight: 100,
            max_executing: 10,
            max_batch: 50,
            peek_every: Duration::from_secs(1),
            steal_after: Duration::from_secs(5),
            recover_every: Duration::from_secs(1),
            flow: carillon_domain::node::FlowKind::Tuned,
            drain_timeout: Duration::from_secs(60),
        };
        let now = BootTime::from_ms(self.now);
        let node = Node::new(config, session, opened.now, now).registered_at(now);
        let keeper_until = self.now + ms(self.timing.self_kill_after);
        let (children, alive, cut_off, frozen) = (BTreeMap::new(), true, false, false);
        self.processes.push(Process { node, session, keeper_until, children, alive, cut_off, frozen });
        self.feed(self.processes.len() - 1, Input::Offers(executors));
        self.processes.len() - 1
    }

    /// No heartbeat of this node goes through from now on.
    pub fn cut_off(&mut self, node: usize) {
        self.processes[node].cut_off = true;
    }

    /// A node starts that has no executor, and sees how the others do.
    pub fn boot_onlooker(&mut self) {
        self.boot_with(Vec::new());
    }

    /// SIGSTOP.
    pub fn freeze(&mut self, node: usize) {
        self.processes[node].frozen = true;
    }

    /// SIGTERM.
    pub fn drain(&mut self, node: usize) {
        self.feed(node, Input::Drain);
    }

    /// A person resumes a job, which writes to its row.
    pub fn resume(&self, key: &JobKey) {
        ready(self.store.resume(key, &author())).expect("an answer");
    }

    /// A person accepts that commits were lost.
    pub fn accept(&self) {
        ready(self.store.accept_losses(&author())).expect("an answer");
    }

    /// So many seconds pass.
    pub fn pass(&mut self, secs: u64) {
        let end = self.now + secs * 1_000;
        loop {
            let wakes = self.processes.iter().filter(|one| one.alive && !one.frozen).map(|one| one.node.next_wake());
            let happens = self.queue.keys().next().map(|(at, _)| *at);
            let deaths = self.processes.iter().filter_map(|one| self.death_of(one));
            let next = wakes.map(BootTime::as_ms).chain(happens).chain(deaths).min().unwrap_or(u64::MAX);
            if next > end {
                break;
            }
            self.go_to(next.max(self.now));
            self.kill_children();
            match self.queue.first_entry().filter(|entry| entry.key().0 <= self.now).map(|entry| entry.remove()) {
                Some((node, what)) => self.happen(node, what),
                None => self.tick(),
            }
            self.look_at_children();
        }
        self.go_to(end);
    }

    fn go_to(&mut self, now: u64) {
        self.now = now;
        self.clock.set(BEGIN + Duration::from_millis(now));
    }

    fn tick(&mut self) {
        for node in 0..self.processes.len() {
            let one = &self.processes[node];
            if one.alive && !one.frozen && one.node.next_wake().as_ms() <= self.now {
                self.feed(node, Input::Tick);
            }
        }
    }

    /// When the keeper is done with the children of a process, at the latest.
    fn death_of(&self, one: &Process) -> Option<u64> {
        let slack = ms(self.timing.fence_grace + self.timing.pause);
        (!one.children.is_empty()).then_some(one.keeper_until + slack)
    }

    fn kill_children(&mut self) {
        for node in 0..self.processes.len() {
            if self.death_of(&self.processes[node]).is_some_and(|at| at <= self.now) {
                self.processes[node].children.clear();
            }
        }
    }

    fn later(&mut self, after: u64, node: usize, what: TimedEvent) {
        self.queued += 1;
        self.queue.insert((self.now + after, self.queued), (node, what));
    }

    fn happen(&mut self, node: usize, what: TimedEvent) {
        match what {
            TimedEvent::Arrives { id, call, back } => {
                let answer = self.perform(&call);
                self.later(back, node, TimedEvent::Answer(Input::Answered { id, answer }));
            }
            TimedEvent::Answer(input) => self.feed(node, input),
            TimedEvent::ChildEnds(run) => {
                if let Some(job) = self.processes[node].children.remove(&run) {
                    let ended_at = Timestamp::EPOCH;
                    let (exit_code, signal, reason) = (Some(0), None, None);
                    let ending = Ending { status: Status::Succeeded, exit_code, signal, reason, ended_at };
                    let printed = (self.output)(&self.jobs[&job].name);
                    let output = Output { bytes: printed, truncated: false }.into();
                    self.feed(node, Input::Exited { run, ending, output });
                }
            }
        }
    }

    fn feed(&mut self, node: usize, input: Input) {
        if !self.processes[node].alive || self.processes[node].frozen {
            return;
        }
        self.processes[node].node.handle(input, BootTime::from_ms(self.now));
        while let Some(effect) = self.processes[node].node.poll() {
            self.carry_out(node, effect);
        }
    }

    fn carry_out(&mut self, node: usize, effect: Effect) {
        let one = &mut self.processes[node];
        match effect {
            Effect::RenewKeeper { until } => one.keeper_until = one.keeper_until.max(until.as_ms()),
            Effect::Spawn { held, .. } => {
                let verdict =
                    must::starts_within_lease(BootTime::from_ms(one.keeper_until), BootTime::from_ms(self.now));
                let job = ready(self.store.run(held.run)).map(|view| view.job_id);
                self.note(verdict);
                let Ok(job) = job else { return };
                let key = FiringKey { job, due_at: held.firing.due_at, trigger: held.firing.trigger };
                self.starts.push((key, held.firing.attempt));
                self.processes[node].children.insert(held.run, job);
                self.later(self.run_ms, node, TimedEvent::ChildEnds(held.run));
            }
            Effect::Stop { run, .. } => self.later(0, node, TimedEvent::ChildEnds(run)),
            Effect::Recorded(_) => {}
            Effect::SelfKill(_) => one.alive = false,
            Effect::Drained => one.alive = false,
            Effect::Call { id, call } => self.send(node, id, call),
        }
    }

    fn send(&mut self, node: usize, id: CallId, call: Call) {
        let kind = call.kind();
        if kind == CallKind::Heartbeat && self.processes[node].cut_off {
            return;
        }
        let slow = self.slow.iter().position(|slow| slow.node == node && slow.call == kind);
        let (there, back) = slow.map(|at| self.slow.remove(at)).map_or((0, 1), |slow| (slow.there, slow.back));
        self.later(there, node, TimedEvent::Arrives { id, call, back });
    }

    fn perform(&mut self, call: &Call) -> Result<Answer, CallFailure> {
        if let Call::Sweep { session, .. } = call {
            let live = self.processes.iter().flat_map(|one| one.children.keys().map(|run| (one.session, *run)));
            let verdict = must::dead_before_sweep(*session, live.collect::<Vec<_>>());
            self.note(verdict);
        }
        ready(perform(&self.store, call)).map_err(CallFailure::from)
    }

    fn note(&mut self, verdict: Verdict) {
        if let (None, Err(violation)) = (&self.broken, verdict) {
            self.broken = Some(violation);
        }
    }

    /// S3 of all children of live sessions.
    fn look_at_children(&mut self) {
        let sessions = ready(self.store.sessions()).expect("sessions");
        let lives =
            |session| sessions.iter().any(|view| view.beat.id == session && view.beat.state != SessionState::Ended);
        let live = self.processes.iter().filter(|one| one.alive && lives(one.session));
        let children: Vec<_> = live.flat_map(|one| one.children.keys().map(|run| (one.session, *run))).collect();
        for (session, run) in children {
            let row = match ready(self.store.run(run)).map(|view| view.stage) {
                Ok(RunStage::Running { held, .. }) => Some(Phase::Executing(held)),
                _ => None,
            };
            self.note(must::child_has_its_row(session, run, row.as_ref()));
        }
    }

    fn rows(&self) -> Vec<JobState> {
        let query = JobQuery { limit: 1_000, ..JobQuery::default() };
        ready(self.store.jobs(&query)).expect("jobs").items.into_iter().map(|view| view.state).collect()
    }

    /// The first violation, if there is one.
    pub fn verdict(self) -> Verdict {
        self.broken.map_or(Ok(()), Err)?;
        for (id, job) in &self.jobs {
            let starts = self.starts.iter().filter(|(key, _)| key.job == *id).copied();
            must::starts_once(job, starts)?;
        }
        Ok(())
    }

    /// As [`World::verdict`], faults and due times having ended.
    pub fn verdict_at_rest(self) -> Verdict {
        for one in self.processes.iter().filter(|one| one.alive) {
            must::nothing_wedged(&one.node)?;
        }
        must::all_idle(self.rows().iter().map(|row| &row.phase))?;
        self.verdict()
    }

    /// As [`World::verdict`], and nothing is left lying that came due more than so many seconds ago.
    pub fn verdict_in_time(self, secs: u64) -> Verdict {
        must::nothing_overdue(&self.rows(), Duration::from_secs(secs), self.clock_now())?;
        self.verdict()
    }

    fn clock_now(&self) -> Timestamp {
        BEGIN + Duration::from_millis(self.now)
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
