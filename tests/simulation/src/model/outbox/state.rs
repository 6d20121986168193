//! A state of the outbox: the store's content, the nodes that send, what was heard, and what may still happen.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::alert::{Answer, Expect, Notice, Route, Selection, State as Told, Target, When};
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::invariants::{self as must, Verdict, Violation};
use carillon_domain::job::{Job, Misfire};
use carillon_domain::node::port::StartAnswer;
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::Timestamp;
use carillon_doubles::{Backup, MemoryStore, author, memory_store};
use carillon_store::alerts::{Claimed, DeliveryClaim, DeliveryQuery, Message};
use carillon_store::feed::JournalAsk;
use carillon_store::tables::at_once;
use carillon_store::{AlertStore, ClaimRequest, ControlStore, Finished, ManualClock, Me, NodeStore, PutIf, PutJob};

use crate::model::state::UTC0_MS;
use crate::world::registration;

/// Longer than any lease and wait, so that turns do not run into each other.
const PERIOD: Duration = Duration::from_secs(1_000);
const START_WITHIN: Duration = Duration::from_secs(2);
/// The session that runs jobs; it sends nothing.
const RUNNER: SessionId = SessionId::from_random(99);

/// The next due time of the job, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Turn {
    late: bool,
    status: Status,
}

/// A run that starts late and fails, and one that does neither.
const TURNS: [Turn; 2] = [Turn { late: true, status: Status::Failed }, Turn { late: false, status: Status::Succeeded }];

/// The messages of each kind that must be told after them, in this order.
const TOLD: [Told; 2] = [Told::Open, Told::Recovered];

/// A node that sends.
#[derive(Debug, Clone, PartialEq)]
struct Sender {
    session: SessionId,
    alive: bool,
    /// The message that it has claimed, and the answer to it.
    sends: Option<(Box<Claimed>, Option<Answer>)>,
}

/// Something that may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// The job's next due time runs.
    Turn,
    /// A node looks at expectations and at facts.
    Look,
    /// A node claims a message; the answer is lost if it says so.
    Claim(usize, Lost),
    /// The receiver hears a message; its answer is lost if it says so.
    Hear(usize, Lost),
    /// The receiver refuses a message.
    Refuse(usize),
    /// A node writes the answer down; that it did is lost if it says so, and it does so again.
    Answer(usize, Lost),
    Crash(usize),
    /// Time passes until something is due.
    Wait,
    /// A sender sleeps until its lease is over.
    Sleep,
    /// All nodes are dead, and another one comes.
    Boot,
}

pub(super) type Lost = bool;

#[derive(Clone)]
pub(super) struct State {
    store: Arc<Backup>,
    /// Of the outbox in it: two that are the same go on alike.
    fingerprint: u64,
    now: Timestamp,
    senders: Vec<Sender>,
    /// How often each delivery was heard.
    heard: BTreeMap<u64, usize>,
    turns: &'static [Turn],
    faults: u8,
    /// The kinds that the route asks for.
    kinds: &'static [When],
    /// The first violation.
    pub broken: Option<Violation>,
}

fn route(kinds: &[When]) -> Route {
    Route {
        name: "ops".into(),
        when: kinds.iter().copied().chain([When::Recovered]).collect(),
        only: Selection { namespaces: vec!["default".into()], ..Selection::default() },
        after: 1,
        repeat: None,
        to: vec![Target::Slack { url: "https://hooks.slack.com/x".into() }],
    }
}

fn job() -> Job {
    Job {
        expect: Some(Expect { start_within: Some(START_WITHIN), ..Expect::default() }),
        misfire: Misfire { grace: Duration::from_secs(60), ..Misfire::default() },
        end_at: Some(Timestamp::from_ms(UTC0_MS) + PERIOD * TURNS.len() as u32),
        ..Job::new(("default", "a"), "@every 1000s", "{}")
    }
}

impl State {
    pub fn new(kinds: &'static [When], nodes: u64, faults: u8) -> Self {
        let now = Timestamp::from_ms(UTC0_MS);
        let store = memory_store(Arc::new(ManualClock::at(now)), 1);
        at_once(store.put_route(&route(kinds), None, &author())).expect("a route");
        let put = PutJob { job: job(), paused: None, when: PutIf::Any, author: author() };
        let saved = at_once(store.put_jobs(&[put])).expect("a store in memory");
        assert!(saved.iter().all(Result::is_ok), "{saved:?}");
        at_once(store.open_session(&registration(RUNNER, "runner".into()))).expect("a session");
        let sender = |n| Sender { session: SessionId::from_random(n), alive: true, sends: None };
        let store = store.back_up();
        Self {
            fingerprint: fingerprint(&store),
            store: Arc::new(store),
            now,
            senders: (1..=nodes).map(sender).collect(),
            heard: BTreeMap::new(),
            turns: &TURNS,
            faults,
            kinds,
            broken: None,
        }
    }

    fn opened(&self) -> MemoryStore {
        let store = memory_store(Arc::new(ManualClock::at(self.now)), 1);
        store.restore(&self.store);
        store
    }

    fn with_store<T>(&mut self, call: impl FnOnce(&MemoryStore) -> T) -> T {
        let store = self.opened();
        let answer = call(&store);
        self.store = Arc::new(store.back_up());
        self.fingerprint = fingerprint(&self.store);
        answer
    }

    /// When the next turn is due.
    fn due_at(&self) -> Timestamp {
        let turn = TURNS.len() - self.turns.len() + 1;
        Timestamp::from_ms(UTC0_MS) + PERIOD * u32::try_from(turn).unwrap_or(u32::MAX)
    }

    /// When something of the outbox is due next, later than now.
    fn next_at(&self) -> Option<Timestamp> {
        let at = self.store.next_of_outbox(self.now)?;
        (self.turns.is_empty() || at < self.due_at()).then_some(at)
    }

    /// Whether somebody who lives still sends what others may claim by then.
    fn oversleeps(&self, until: Timestamp) -> bool {
        let is_late =
            |(claimed, _): &(Box<Claimed>, Option<Answer>)| claimed.delivery.claim_at().is_some_and(|at| at <= until);
        self.senders.iter().any(|sender| sender.sends.as_ref().is_some_and(is_late))
    }

    pub fn actions(&self, actions: &mut Vec<Action>) {
        if self.broken.is_some() {
            return;
        }
        let faulty = self.faults > 0;
        if self.look_changes() {
            actions.push(Action::Look);
        }
        if !self.turns.is_empty() {
            actions.push(Action::Turn);
        }
        if self.senders.iter().all(|sender| !sender.alive) {
            actions.push(Action::Boot);
        }
        let mut claimable = self.store.has_due_delivery(self.now);
        for (n, sender) in self.senders.iter().enumerate().filter(|(_, sender)| sender.alive) {
            let mut offer = |may: bool, action: fn(usize, Lost) -> Action| {
                actions.extend(may.then(|| action(n, false)));
                actions.extend((may && faulty).then(|| action(n, true)));
            };
            match &sender.sends {
                // Nodes that send nothing are alike, so one of them claims.
                None => offer(std::mem::take(&mut claimable), Action::Claim),
                Some((_, None)) => offer(true, Action::Hear),
                Some((_, Some(_))) => offer(true, Action::Answer),
            }
            if faulty && matches!(sender.sends, Some((_, None))) {
                actions.push(Action::Refuse(n));
            }
            if faulty && sender.sends.is_some() {
                actions.push(Action::Crash(n));
            }
        }
        if let Some(at) = self.next_at() {
            match self.oversleeps(at) {
                false => actions.push(Action::Wait),
                true if faulty => actions.push(Action::Sleep),
                true => {}
            }
        }
    }

    /// Whether nothing but a fault may still happen.
    fn is_over(&self) -> bool {
        let idle = self.turns.is_empty() && self.senders.iter().all(|sender| sender.sends.is_none());
        idle && self.senders.iter().any(|sender| sender.alive)
            && self.next_at().is_none()
            && !self.look_changes()
            && !self.claim_changes()
    }

    fn claim_changes(&self) -> bool {
        let mut after = self.clone();
        let living = self.senders.iter().position(|sender| sender.alive);
        living.is_some_and(|n| {
            after.claim(n, true);
            after.fingerprint != self.fingerprint
        })
    }

    fn look_changes(&self) -> bool {
        let mut after = self.clone();
        after.look();
        after.fingerprint != self.fingerprint
    }

    pub fn act(&mut self, action: Action) {
        let is_fault = matches!(
            action,
            Action::Claim(_, true)
                | Action::Hear(_, true)
                | Action::Answer(_, true)
                | Action::Refuse(_)
                | Action::Crash(_)
                | Action::Sleep
        );
        self.faults -= u8::from(is_fault);
        match action {
            Action::Turn => self.turn(),
            Action::Look => self.look(),
            Action::Claim(n, lost) => self.claim(n, lost),
            Action::Hear(n, lost) => self.hear(n, if lost { unknown() } else { delivered() }),
            Action::Refuse(n) => {
                let refused = Answer::Refused { words: "500".into(), permanent: false };
                self.answers(n, refused);
            }
            Action::Answer(n, lost) => self.answer(n, lost),
            Action::Crash(n) => {
                let sender = &mut self.senders[n];
                (sender.alive, sender.sends) = (false, None);
            }
            Action::Wait | Action::Sleep => self.now = self.next_at().unwrap_or(self.now),
            Action::Boot => {
                let session = SessionId::from_random(self.senders.len() as u64 + 1);
                self.senders.push(Sender { session, alive: true, sends: None });
            }
        }
        let verdict = match action {
            Action::Look => must::recoveries_follow(&self.notices()).and_then(|()| self.told_once()),
            _ => Ok(()),
        };
        let verdict = verdict.and_then(|()| if self.is_over() { self.all_has_arrived() } else { Ok(()) });
        self.broken = verdict.err();
    }

    /// The job's due time runs, as a node runs it.
    fn turn(&mut self) {
        let Some((Turn { late, status }, left)) = self.turns.split_first() else { return };
        let due_at = self.due_at();
        self.now = self.now.max(due_at - Duration::from_secs(1));
        let number = self.turns.len() as u64;
        let me = Me::new(RUNNER);
        let (executors, runs) = (vec!["shell".to_owned()], vec![RunId::drawn(RUNNER, number)]);
        let request = ClaimRequest { me, partitions: vec![0], until: due_at, runs, places: 0, executors };
        let claimed = self.with_store(|store| at_once(store.claim(&request)).expect("a claim").remove(0));
        self.now = due_at + if *late { START_WITHIN + Duration::from_secs(1) } else { Duration::ZERO };
        let started = self.with_store(|store| at_once(store.start(me, &[claimed.at])).expect("a start").remove(0));
        let StartAnswer::Started { at, .. } = started else { panic!("{started:?}") };
        let ending = Ending::new(*status, self.now);
        let finished = Finished { at, ending, next: None, output: Arc::default() };
        self.with_store(|store| at_once(store.finish(me, &[finished], &[])).expect("an end"));
        self.turns = left;
    }

    fn look(&mut self) {
        self.with_store(|store| {
            at_once(store.watch_expectations(10)).expect("a look");
            at_once(store.alert_step(10)).expect("a step");
        });
    }

    fn claim(&mut self, n: usize, lost: bool) {
        let session = self.senders[n].session;
        let request = DeliveryClaim { session, limit: 1, in_flight: BTreeMap::new(), per_host: 1 };
        let claimed = self.with_store(|store| at_once(store.claim_deliveries(&request)).expect("a claim"));
        self.senders[n].sends = claimed.into_iter().next().filter(|_| !lost).map(|one| (Box::new(one), None));
    }

    fn hear(&mut self, n: usize, answer: Answer) {
        if let Some((claimed, None)) = &self.senders[n].sends {
            *self.heard.entry(claimed.id).or_default() += 1;
        }
        self.answers(n, answer);
    }

    fn answers(&mut self, n: usize, answer: Answer) {
        if let Some((_, said)) = &mut self.senders[n].sends {
            *said = Some(answer);
        }
    }

    fn answer(&mut self, n: usize, lost: bool) {
        let (session, Some((claimed, Some(answer)))) = (self.senders[n].session, self.senders[n].sends.clone()) else {
            return;
        };
        let settle = |store: &MemoryStore| at_once(store.settle_delivery(session, claimed.id, &answer, 0));
        self.with_store(settle).expect("an answer is kept or comes too late");
        if !lost {
            self.senders[n].sends = None;
        }
    }

    fn notices(&self) -> Vec<Notice> {
        let ask = JournalAsk { after: 0, limit: 1_000, gaps: Vec::new() };
        let found = at_once(self.opened().notices_numbered(&ask)).expect("messages");
        found.rows.into_iter().map(|(_, notice)| notice).collect()
    }

    fn told_once(&self) -> Verdict {
        let told: Vec<(When, Told)> = self.notices().iter().map(|notice| (notice.when, notice.state)).collect();
        told.iter().try_for_each(|one| must::told_once(one, told.iter().filter(|other| *other == one).count()))
    }

    fn all_has_arrived(&self) -> Verdict {
        let notices = self.notices();
        for when in self.kinds {
            for state in TOLD {
                let is_told = notices.iter().any(|notice| (notice.when, notice.state) == (*when, state));
                must::is_told(&(when, state), is_told)?;
            }
        }
        let all = DeliveryQuery { limit: 1_000, ..DeliveryQuery::default() };
        for view in at_once(self.opened().deliveries(&all)).expect("deliveries").items {
            must::has_arrived(view.id, view.delivery.state, self.heard.get(&view.id).copied().unwrap_or(0), 0)?;
            assert!(matches!(view.message, Message::Notice(_)), "the job has no monitor");
        }
        Ok(())
    }
}

fn delivered() -> Answer {
    Answer::Delivered { words: "200".into() }
}

fn unknown() -> Answer {
    Answer::Unknown { words: "no answer".into() }
}

fn fingerprint(store: &Backup) -> u64 {
    let mut hasher = DefaultHasher::new();
    store.outbox_text().hash(&mut hasher);
    hasher.finish()
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let broken = self.broken.as_ref().map(|violation| violation.invariant as u8);
        (broken, self.faults, self.now, self.turns.len(), &self.heard, self.fingerprint).hash(state);
        for sender in &self.senders {
            let sends = sender.sends.as_ref().map(|(claimed, answer)| (claimed.id, format!("{answer:?}")));
            (sender.alive, sends).hash(state);
        }
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &Self| (one.fingerprint, one.faults, one.now, one.turns.len(), one.heard.clone());
        same(self) == same(other) && self.senders == other.senders
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {}: {:?}", self.now, self.broken)
    }
}
