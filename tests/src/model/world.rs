//! A state: the store's content, the processes, what is on its way between them, and what has happened that promises speak
//! of. The nodes in it are the server's own state machines and the store runs the server's own operations.

use carillon_doubles::author;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::invariants::Violation;
use carillon_domain::node::{Input, Node};
use carillon_domain::time::{BootTime, Timestamp};
use carillon_doubles::{Backup, MemoryStore, memory_store};
use carillon_store::{ControlStore, ManualClock, NewSession, NodeStore, PutIf, PutJob};

use super::bounds::{Bounds, Budget};
use super::calls::{Answer, Call, Request};
use super::coverage::Coverage;
use super::history::History;
use super::moments::Moment;
use super::narration::Notes;

/// The database's time at the beginning.
pub(super) const UTC0_MS: i64 = 1_800_000_000_000;
/// The executor of every node and job.
const EXECUTOR: &str = "shell";
/// Nodes start one after another, so that no two wake at the same moment.
const BETWEEN_BOOTS_MS: u64 = 10;
/// When the exploration begins: every node knows all others, and nothing has been claimed.
const BEGINNING_MS: u64 = 900;

/// Where a node process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Life {
    Alive,
    /// It hears and does nothing (SIGSTOP). Its keeper is awake.
    Frozen,
    /// Killed, ended by itself, or drained.
    Gone,
}

/// A child of a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Child {
    pub job: JobId,
    pub asked_to_stop: bool,
    /// When it ends at the latest.
    pub ends_at: u64,
}

/// A node process with its keeper and the keeper's children.
#[derive(Clone, Hash)]
pub(super) struct Process {
    pub session: SessionId,
    pub node: Arc<Node>,
    pub life: Life,
    /// Nothing that it sends arrives.
    pub cut: bool,
    /// When the keeper's deadline is over.
    pub keeper_until: u64,
    /// The keeper kills the children, who are dead then at the latest.
    pub dead_at: Option<u64>,
    pub children: BTreeMap<RunId, Child>,
    /// Inputs that came while it was frozen.
    pub unheard: VecDeque<Answer>,
}

/// One state of the exploration.
#[derive(Clone)]
pub struct World {
    pub(super) bounds: Arc<Bounds>,
    /// Since the beginning of time, in milliseconds; every machine's steady clock shows it.
    pub(super) now: u64,
    pub(super) store: Arc<Backup>,
    pub(super) processes: Vec<Process>,
    pub(super) booted: u64,
    /// Calls whose fate is decided next, oldest first.
    pub(super) outbox: VecDeque<Call>,
    /// Requests that reach the store later, if ever.
    pub(super) requests: Vec<Request>,
    /// Answers that reach their node later.
    pub(super) answers: Vec<Answer>,
    /// The content that the database may go back to.
    pub(super) saved: Option<Arc<Backup>>,
    pub(super) moment: Moment,
    pub(super) budget: Budget,
    pub(super) history: History,
    pub(super) violation: Option<Violation>,
    /// Faults have ended, time has passed, and everything was looked at.
    pub(super) rested: bool,
    pub(super) notes: Notes,
    /// The situations that were come across, in all worlds of an exploration together.
    pub(super) coverage: Arc<Coverage>,
}

impl World {
    /// The jobs are stored and the nodes have met; nothing is claimed yet.
    pub fn new(bounds: &Bounds) -> Self {
        let store = memory_store(Arc::new(clock_at(0)), bounds.config().partitions);
        let put = |job| PutJob { job, paused: None, when: PutIf::Absent, author: author() };
        let jobs: Vec<PutJob> = bounds.definitions().into_iter().map(put).collect();
        let saved = at_once(store.put_jobs(&jobs)).expect("the memory store takes jobs");
        assert!(saved.iter().all(Result::is_ok), "every job is accepted: {saved:?}");
        let mut world = Self {
            bounds: Arc::new(bounds.clone()),
            now: 0,
            store: Arc::new(store.back_up()),
            processes: Vec::new(),
            booted: 0,
            outbox: VecDeque::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            saved: None,
            moment: Moment::default(),
            budget: Budget::default(),
            history: History::default(),
            violation: None,
            rested: false,
            notes: Notes::default(),
            coverage: Arc::default(),
        };
        for _ in 0..bounds.nodes {
            world.boot();
            world.now += BETWEEN_BOOTS_MS;
        }
        world.pass_until(BEGINNING_MS);
        world.budget = bounds.budget;
        world.moment.store = true;
        world.moment.processes = world.processes.iter().map(|process| process.session).collect();
        world
    }

    pub(super) fn boot_time(&self) -> BootTime {
        BootTime::from_ms(self.now)
    }

    pub(super) fn utc(&self) -> Timestamp {
        Timestamp::from_ms(UTC0_MS + i64::try_from(self.now).unwrap_or(i64::MAX))
    }

    /// The store as it stands, to do something with it.
    pub(super) fn open_store(&self) -> MemoryStore {
        let store = memory_store(Arc::new(clock_at(self.now)), self.bounds.config().partitions);
        store.restore(&self.store);
        store
    }

    /// A new process registers and begins.
    pub(super) fn boot(&mut self) {
        self.booted += 1;
        let session = SessionId::from_random(self.booted);
        let text = || String::from("-");
        let new = NewSession { id: session, node: format!("node-{}", self.booted), address: text(), version: text() };
        let store = self.open_store();
        let opened = at_once(store.open_session(&new)).expect("the memory store takes sessions");
        self.store = Arc::new(store.back_up());
        let (config, now) = (self.bounds.config(), self.boot_time());
        let keeper_until = (now + config.timing.self_kill_after).as_ms();
        let node = Arc::new(Node::new(config, session, opened.now, now).registered_at(now));
        let (children, unheard) = (BTreeMap::new(), VecDeque::new());
        let (life, cut, dead_at) = (Life::Alive, false, None);
        self.processes.push(Process { session, node, life, cut, keeper_until, dead_at, children, unheard });
        self.note(|| format!("{} registers", super::narration::session(session)));
        self.feed(self.processes.len() - 1, &Answer::of(session, Input::Offers(vec![EXECUTOR.to_owned()])));
        self.answer_what_goes_well();
    }

    /// Whether nothing is to come any more: no due time, no run, nothing that a node has to ask.
    pub(super) fn is_quiet(&self) -> bool {
        let over = |at: Option<Timestamp>| at == Some(Timestamp::MAX);
        let alive = |process: &&Process| process.life != Life::Gone;
        let owes = |process: &Process| process.node.known_runs().next().is_some() || process.life == Life::Frozen;
        self.outbox.is_empty()
            && self.store.jobs().all(|row| over(row.claim_at()))
            && self.store.concurrent().next().is_none()
            && self.processes.iter().all(|process| process.children.is_empty())
            && !self.processes.iter().filter(alive).any(owes)
    }

    /// The process of a session, if it is not gone.
    pub(super) fn process_of(&self, session: SessionId) -> Option<usize> {
        self.processes.iter().position(|process| process.session == session && process.life != Life::Gone)
    }

    /// All runs that live anywhere: the session whose keeper runs it, the run, its job.
    pub(super) fn live(&self) -> impl Iterator<Item = (SessionId, RunId, JobId)> + '_ {
        let of = |process: &Process| {
            let session = process.session;
            process.children.iter().map(move |(run, child)| (session, *run, child.job)).collect::<Vec<_>>()
        };
        self.processes.iter().flat_map(of)
    }

    /// The firing that a start is of, whatever the policy that let it through.
    pub(super) fn firing(job: JobId, held: &carillon_domain::firing::Held) -> FiringKey {
        use carillon_domain::run::Trigger;
        let trigger = if held.firing.trigger == Trigger::Manual { Trigger::Manual } else { Trigger::Schedule };
        FiringKey { job, due_at: held.firing.due_at, trigger }
    }
}

/// States that go on alike are one, whatever is told of how they came about.
impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let broken = self.violation.as_ref().map(|violation| violation.invariant as u8);
        (self.rested, broken).hash(state);
        if self.rested && broken.is_none() {
            return;
        }
        (self.now, &self.store, &self.processes, self.booted).hash(state);
        (&self.outbox, &self.requests, &self.answers, &self.saved).hash(state);
        (self.budget, &self.history, &self.moment).hash(state);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        let hash = |world: &Self| {
            let mut hasher = DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        hash(self) == hash(other)
    }
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {} ms: {:?}", self.now, self.violation)
    }
}

fn clock_at(now: u64) -> ManualClock {
    ManualClock::at(Timestamp::from_ms(UTC0_MS + i64::try_from(now).unwrap_or(i64::MAX)))
}

/// The memory store never waits.
pub(super) fn at_once<T>(call: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(call).poll(&mut context) {
        std::task::Poll::Ready(answer) => answer,
        std::task::Poll::Pending => unreachable!("the memory store never waits"),
    }
}
