//! A state: the store's content, the processes, what is on its way between them, and what has happened that promises speak
//! of. The nodes in it are the server's own state machines and the store runs the server's own operations.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use carillon_domain::id::{JobId, SessionId};
use carillon_domain::node::Input;
use carillon_domain::time::Timestamp;
use carillon_doubles::{Backup, MemoryStore, memory_store};
use carillon_store::tables::at_once;
use carillon_store::{ControlStore, ManualClock, NodeStore, PutIf, PutJob};

use super::bounds::{Bounds, Budget};
use super::calls::{Answer, Call, Request};
use super::coverage::Coverage;
use super::moments::Moment;
use super::narration::Notes;
use crate::world::{BootClock, World, registration};

/// The database's time at the beginning.
pub(super) const UTC0_MS: i64 = 1_800_000_000_000;
/// The executor of every node and job.
const EXECUTOR: &str = "shell";
/// Nodes start one after another, so that no two wake at the same moment.
const BETWEEN_BOOTS_US: u64 = 10_000;
/// When the exploration begins: every node knows all others, and nothing has been claimed.
const BEGINNING_US: u64 = 900_000;

/// How a process is connected.
#[derive(Clone, Default, Hash)]
pub struct Link {
    /// Nothing that it sends arrives.
    pub(super) cut: bool,
    /// Inputs that came while it was frozen.
    pub(super) unheard: VecDeque<Answer>,
}

pub(super) type Process = crate::world::Process<Link>;

/// The database went back in time.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Back {
    /// Who can tell, until somebody has.
    pub witnesses: Vec<SessionId>,
    /// All who could tell ended before they had, or another node began before: then it may claim what has run. That is a
    /// limit which docs/lost-commits.md states.
    pub unnoticed: bool,
}

/// One state of the exploration.
#[derive(Clone)]
pub struct State {
    pub(super) bounds: Arc<Bounds>,
    /// The processes; every machine's steady clock shows the true time.
    pub(super) world: World<Link>,
    pub(super) store: Arc<Backup>,
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
    /// When jobs were deleted.
    pub(super) deleted: BTreeMap<JobId, Timestamp>,
    pub(super) back: Option<Back>,
    /// The input that a node acts on.
    pub(super) cause: Option<Answer>,
    /// Faults have ended, time has passed, and everything was looked at.
    pub(super) rested: bool,
    pub(super) notes: Notes,
    /// The situations that were come across, in all worlds of an exploration together.
    pub(super) coverage: Arc<Coverage>,
}

impl State {
    /// The jobs are stored and the nodes have met; nothing is claimed yet.
    pub fn new(bounds: &Bounds) -> Self {
        let store = memory_store(Arc::new(ManualClock::at(utc_at(0))), bounds.config().partitions);
        let put = |job| PutJob { job, paused: None, when: PutIf::Absent, author: carillon_doubles::author() };
        let jobs: Vec<PutJob> = bounds.definitions().into_iter().map(put).collect();
        let saved = at_once(store.put_jobs(&jobs)).expect("the memory store takes jobs");
        assert!(saved.iter().all(Result::is_ok), "every job is accepted: {saved:?}");
        let mut state = Self {
            bounds: Arc::new(bounds.clone()),
            world: World::new(bounds.config().timing),
            store: Arc::new(store.back_up()),
            outbox: VecDeque::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            saved: None,
            moment: Moment::default(),
            budget: Budget::default(),
            deleted: BTreeMap::new(),
            back: None,
            cause: None,
            rested: false,
            notes: Notes::default(),
            coverage: Arc::default(),
        };
        for _ in 0..bounds.nodes {
            state.boot();
            state.world.now_us += BETWEEN_BOOTS_US;
        }
        state.pass_until(BEGINNING_US);
        state.budget = bounds.budget;
        state.moment.store = true;
        state.moment.processes = state.world.processes.iter().map(|process| process.session).collect();
        state
    }

    pub(super) fn utc(&self) -> Timestamp {
        utc_at(self.world.now_us)
    }

    /// The store as it stands, to do something with it.
    pub(super) fn open_store(&self) -> MemoryStore {
        let store = memory_store(Arc::new(ManualClock::at(self.utc())), self.bounds.config().partitions);
        store.restore(&self.store);
        store
    }

    /// A new process registers and begins.
    pub(super) fn boot(&mut self) {
        let (n, now_us) = (self.world.processes.len(), self.world.now_us);
        let session = SessionId::from_random(n as u64 + 1);
        let store = self.open_store();
        let opened = at_once(store.open_session(&registration(session, format!("node-{}", n + 1))));
        self.store = Arc::new(store.back_up());
        let mut process = Process::registering(session, BootClock::default(), now_us, Link::default());
        let utc = opened.expect("the memory store takes sessions").now;
        process.register(self.bounds.config(), utc, process.clock.at(now_us), now_us);
        self.world.processes.push(process);
        self.note(|| format!("{} registers", super::narration::session(session)));
        self.hear(n, Answer::of(session, Input::Offers(vec![EXECUTOR.to_owned()])));
        self.answer_what_goes_well();
    }

    /// Whether nothing is to come any more: no due time, no run, nothing that a node has to ask.
    pub(super) fn is_quiet(&self) -> bool {
        let over = |at: Option<Timestamp>| at == Some(Timestamp::MAX);
        let owes = |process: &Process| process.alive && (process.knows_runs() || self.is_frozen(process));
        self.outbox.is_empty()
            && self.store.jobs().all(|row| over(row.claim_at()))
            && self.store.concurrent().next().is_none()
            && self.world.live().next().is_none()
            && !self.world.processes.iter().any(owes)
    }

    pub(super) fn is_frozen(&self, process: &Process) -> bool {
        process.is_frozen(self.world.now_us)
    }

    /// The process of a session, if it is not gone.
    pub(super) fn alive(&self, session: SessionId) -> Option<usize> {
        self.world.process_of(session).filter(|n| self.world.processes[*n].alive)
    }
}

/// States that go on alike are one, whatever is told of how they came about.
impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let broken = self.world.broken.as_ref().map(|violation| violation.invariant as u8);
        (self.rested, broken).hash(state);
        if self.rested && broken.is_none() {
            return;
        }
        (self.world.now_us, &self.world.processes, &self.world.history).hash(state);
        (&self.store, &self.outbox, &self.requests, &self.answers, &self.saved).hash(state);
        (self.budget, &self.deleted, &self.back, &self.moment).hash(state);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let hash = |world: &Self| {
            let mut hasher = DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        hash(self) == hash(other)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {} ms: {:?}", self.world.now_us / 1_000, self.world.broken)
    }
}

fn utc_at(now_us: u64) -> Timestamp {
    Timestamp::from_ms(UTC0_MS + i64::try_from(now_us / 1_000).unwrap_or(i64::MAX))
}
