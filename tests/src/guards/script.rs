//! Whole nodes on a store in memory, in virtual time: a call takes a millisecond, unless the story says otherwise.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::{Held, JobState, Phase};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict};
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::call::{Call, CallId, CallKind};
use carillon_domain::node::{Config, Input};
use carillon_domain::time::Timestamp;
use carillon_doubles::{Backup, MemoryStore, author, memory_store};
use carillon_store::tables::at_once;
use carillon_store::{ControlStore, JobKey, ManualClock, NodeStore, Output, PutIf, PutJob};

use crate::conformance::fixture::{BEGIN, PARTITIONS};
use carillon_simulation::world::{BootClock, End, Process, Scheduler, World, job_of, registration};

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

/// A call that reaches the store, or an input that reaches a node.
enum TimedEvent {
    Arrives { id: CallId, call: Call, back: u64 },
    Answer(Input),
}

/// Whether no heartbeat of it reaches the store.
type CutOff = bool;

/// A world that goes by a script.
pub struct Script {
    /// The store.
    pub store: MemoryStore,
    /// How long a run takes, in milliseconds.
    pub run_ms: u64,
    /// The output of runs.
    pub output: fn(&str) -> Vec<u8>,
    /// Calls that take long.
    pub slow: Vec<Slow>,
    clock: ManualClock,
    world: World<CutOff>,
    queue: BTreeMap<(u64, u64), (usize, TimedEvent)>,
    queued: u64,
    jobs: BTreeMap<JobId, Job>,
}

impl Script {
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
            let saved = at_once(store.put_jobs(&[put])).expect("an answer").remove(0).expect("a new job");
            stored.insert(saved.view.state.id, job);
        }
        Self {
            store,
            run_ms: 1_000,
            output: |_| Vec::new(),
            slow: Vec::new(),
            clock,
            world: World::new(timing),
            queue: BTreeMap::new(),
            queued: 0,
            jobs: stored,
        }
    }

    /// A node starts.
    pub fn boot(&mut self) -> usize {
        self.boot_with(vec!["shell".to_owned()])
    }

    fn boot_with(&mut self, executors: Vec<String>) -> usize {
        let (n, now_us) = (self.world.processes.len(), self.world.now_us);
        let session = SessionId::from_random(n as u64 + 1);
        let opened = at_once(self.store.open_session(&registration(session, session.to_string())));
        let config = Config {
            timing: self.world.timing,
            self_kill: true,
            partitions: PARTITIONS,
            horizon: Duration::from_secs(30),
            max_in_flight: 100,
            max_executing: 10,
            max_batch: 50,
            peek_every: Duration::from_secs(1),
            peek_every_at_rest: Duration::from_secs(1),
            steal_after: Duration::from_secs(5),
            recover_every: Duration::from_secs(1),
            remembered_ends: 100,
            flow: carillon_domain::node::FlowKind::Tuned,
            drain_timeout: Duration::from_secs(60),
        };
        let mut process = Process::registering(session, BootClock::default(), now_us, false);
        process.register(config, opened.expect("a session").now, process.clock.at(now_us), now_us);
        self.world.processes.push(process);
        self.feed(n, Input::Offers(executors));
        n
    }

    /// No heartbeat of this node goes through from now on.
    pub fn cut_off(&mut self, node: usize) {
        self.world.processes[node].own = true;
    }

    /// A node starts that has no executor, and sees how the others do.
    pub fn boot_onlooker(&mut self) {
        self.boot_with(Vec::new());
    }

    /// SIGSTOP.
    pub fn freeze(&mut self, node: usize) {
        self.world.processes[node].frozen_until_us = u64::MAX;
    }

    /// SIGTERM.
    pub fn drain(&mut self, node: usize) {
        self.feed(node, Input::Drain);
    }

    /// A person resumes a job, which writes to its row.
    pub fn resume(&self, key: &JobKey) {
        at_once(self.store.resume(key, &author())).expect("an answer");
    }

    /// A person accepts that commits were lost.
    pub fn accept(&self) {
        at_once(self.store.accept_losses(Duration::ZERO, &author())).expect("an answer");
    }

    /// The database goes back; until that is accepted it does not know everything that runs.
    pub fn go_back(&mut self, backup: &Backup) {
        self.store.restore(backup);
        self.world.excused.children = true;
    }

    /// A person tries each second to accept that commits were lost. Then the database knows everything that runs.
    pub fn accept_in_time(&mut self) {
        let patience = self.world.timing.expire_after;
        while self.store.back_up().withholds() {
            let _refused = at_once(self.store.accept_losses(patience, &author()));
            self.pass(1);
        }
        self.world.excused.children = false;
    }

    /// So many seconds pass.
    pub fn pass(&mut self, secs: u64) {
        let end_us = self.world.now_us + secs * 1_000_000;
        loop {
            let due = self.world.next_due();
            let queued = self.queue.keys().next().map(|(at, _)| *at);
            let next_us = due.iter().map(|(at, ..)| *at).chain(queued).min().unwrap_or(u64::MAX);
            if next_us > end_us {
                break;
            }
            self.go_to(next_us.max(self.world.now_us));
            match (queued.filter(|at| *at <= next_us).and_then(|_| self.queue.pop_first()), due) {
                (Some((_, (n, event))), _) => self.happen(n, event),
                (None, Some((_, n, due))) => self.comes_due(n, due),
                (None, None) => {}
            }
            let verdict = self.world.children_have_rows(&self.store.back_up());
            self.world.must(verdict);
        }
        self.go_to(end_us);
    }

    fn go_to(&mut self, now_us: u64) {
        self.world.now_us = now_us;
        self.clock.set(self.utc());
    }

    fn utc(&self) -> Timestamp {
        BEGIN + Duration::from_micros(self.world.now_us)
    }

    fn later(&mut self, after_ms: u64, n: usize, event: TimedEvent) {
        self.queued += 1;
        self.queue.insert((self.world.now_us + after_ms * 1_000, self.queued), (n, event));
    }

    fn happen(&mut self, n: usize, event: TimedEvent) {
        match event {
            TimedEvent::Arrives { id, call, back } => {
                let (session, now) = (self.world.processes[n].session, self.utc());
                let before = self.store.back_up();
                let (answer, _) = self.world.perform((&self.store, &before), session, &call, now);
                self.later(back, n, TimedEvent::Answer(Input::Answered { id, answer }));
            }
            TimedEvent::Answer(input) => self.feed(n, input),
        }
    }

    fn rows(&self) -> Vec<JobState> {
        self.store.back_up().jobs().cloned().collect()
    }

    /// The first violation, if there is one.
    pub fn verdict(self) -> Verdict {
        self.world.broken.map_or(Ok(()), Err)
    }

    /// As [`Script::verdict`], faults and due times having ended.
    pub fn verdict_at_rest(self) -> Verdict {
        self.world.at_rest(self.rows().iter().map(|row| &row.phase))?;
        self.verdict()
    }

    /// As [`Script::verdict`], and nothing is left lying that came due more than so many seconds ago.
    pub fn verdict_in_time(self, secs: u64) -> Verdict {
        must::nothing_overdue(&self.rows(), Duration::from_secs(secs), self.utc())?;
        self.verdict()
    }
}

impl Scheduler for Script {
    type Own = CutOff;

    fn world(&mut self) -> &mut World<CutOff> {
        &mut self.world
    }

    /// A process that is frozen will never hear it.
    fn tell(&mut self, n: usize, input: Input) {
        self.feed(n, input);
    }

    fn send(&mut self, n: usize, id: CallId, call: Call) {
        let kind = call.kind();
        if kind == CallKind::Heartbeat && self.world.processes[n].own {
            return;
        }
        let slow = self.slow.iter().position(|slow| slow.node == n && slow.call == kind);
        let (there, back) = slow.map(|at| self.slow.remove(at)).map_or((0, 1), |slow| (slow.there, slow.back));
        self.later(there, n, TimedEvent::Arrives { id, call, back });
    }

    fn row_of(&self, held: &Held) -> (Option<JobId>, Option<Phase>) {
        let store = self.store.back_up();
        let carries = |phase: &Phase| phase.held().is_some_and(|known| known.run == held.run);
        store.rows().find(|(_, phase, _)| carries(phase)).map(|(key, phase, _)| (job_of(&key), *phase)).unzip()
    }

    fn started(&mut self, _: usize, _: &Held) -> u64 {
        self.world.now_us + self.run_ms * 1_000
    }

    fn stopping(&mut self, _: usize, _: RunId) -> u64 {
        self.world.now_us
    }

    /// Its keeper is as slow as the fencing inequality allows: the children die after the deadline.
    fn over(&mut self, n: usize, _: End) {
        self.world.processes[n].alive = false;
    }

    fn output_of(&self, job: JobId) -> Arc<Output> {
        let bytes = (self.output)(&self.jobs[&job].name);
        Arc::new(Output { bytes, truncated: false })
    }
}
