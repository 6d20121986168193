//! The outbox of a cluster: each node watches and sends as the loops of the server do, and the receivers of the simulated world answer,
//! refuse, hang, or lose their answers. The watch step, claims and answers are the store's own.

mod expected;
mod judge;
mod receivers;
mod routes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use carillon_domain::alert::{Answer, Delivery, DeliveryState};
use carillon_domain::id::SessionId;
use carillon_domain::invariants::{Invariant, Violation};
use carillon_doubles::author;
use carillon_doubles::innodb::Client;
use carillon_store::alerts::{Claimed, DeliveryClaim, DeliveryQuery, DeliveryView};
use carillon_store::{AlertStore, StoreError};

pub(super) use routes::{MOST_TOLD, routes};

use super::calls::{Done, Request};
use super::simulation::{SECOND_US, Simulation, TimedEvent};
use expected::Facts;
use judge::Counts;
use receivers::Heard;

/// One that only watches and sends looks more rarely.
const SURVIVOR_LOOKS_EVERY_US: u64 = 10 * SECOND_US;
/// How long a look, a claim or an answer may take, as the limits of its statements add up.
const CALL_TIMEOUT_US: u64 = 3 * SECOND_US;
/// How often a node tries to write an answer down, and how long it waits between, as the server does.
const ANSWER_TRIES: u32 = 6;
const BETWEEN_TRIES_US: u64 = 2 * SECOND_US;
/// How many messages of a node are on their way at once, and to one host.
const AT_ONCE: usize = 8;
const PER_HOST: usize = 3;

/// Everything on its way to receivers, and what they have heard.
#[derive(Default)]
pub(super) struct Outbox {
    /// The facts, as the commits have them.
    pub facts: Facts,
    looking: BTreeSet<usize>,
    claiming: BTreeSet<usize>,
    under_way: BTreeMap<u64, Attempt>,
    attempts: u64,
    /// How often a sender slept past its lease.
    slept: u32,
    heard: Vec<Heard>,
    /// How often the receiver of a delivery refused it for good.
    refused_for_good: BTreeMap<u64, u32>,
}

/// A message on its way, from a process.
struct Attempt {
    process: usize,
    claimed: Claimed,
    answer: Answer,
    /// How often the answer was to be written down.
    tries: u32,
}

/// One look of a node, as the server's loop makes it: expectations first.
async fn look(store: Client, limit: usize) -> Result<(), StoreError> {
    store.watch_expectations(limit).await?;
    store.alert_step(limit).await.map(drop)
}

impl Simulation {
    /// Routes as a person puts them, before there is any job.
    pub(super) async fn put_routes(store: Client) {
        for route in routes() {
            while store.put_route(&route, None, &author()).await.is_err() {}
        }
    }

    /// A node looks whether there is anything to tell or to send, and again a while later.
    pub(super) fn look_at_alerts(&mut self, n: usize) {
        let process = &self.world.processes[n];
        if !process.alive {
            return;
        }
        if process.is_frozen(self.world.now_us) {
            let after = process.frozen_until_us - self.world.now_us;
            return self.later(after, TimedEvent::Alerts { process: n });
        }
        let every_us =
            if process.node.is_some() { self.plan.looks_every_s() * SECOND_US } else { SURVIVOR_LOOKS_EVERY_US };
        self.later(every_us, TimedEvent::Alerts { process: n });
        if self.outbox.looking.insert(n) {
            let store = self.world.processes[n].own.client.clone();
            // A node may take less at once than there is.
            let limit = if n.is_multiple_of(2) { 1_000 } else { 5 };
            self.call_of_outbox(n, Request::Look, async move {
                let _told_again = look(store, limit).await;
                Done::Looked
            });
        }
        self.claim_deliveries(n);
    }

    fn claim_deliveries(&mut self, n: usize) {
        let mut in_flight = BTreeMap::new();
        for attempt in self.outbox.under_way.values().filter(|attempt| attempt.process == n) {
            *in_flight.entry(attempt.claimed.host.clone()).or_default() += 1;
        }
        let limit = AT_ONCE.saturating_sub(in_flight.values().sum());
        if limit == 0 || !self.outbox.claiming.insert(n) {
            return;
        }
        let (store, session) = (self.world.processes[n].own.client.clone(), self.world.processes[n].session);
        let request = DeliveryClaim { session, limit, in_flight, per_host: PER_HOST };
        self.call_of_outbox(n, Request::ClaimDeliveries, async move {
            Done::Claimed(store.claim_deliveries(&request).await.unwrap_or_default())
        });
    }

    fn call_of_outbox(&mut self, n: usize, request: Request, call: impl Future<Output = Done> + Send + 'static) {
        let task = self.tasks.spawn(n, request, call);
        self.later(CALL_TIMEOUT_US, TimedEvent::Deadline { task });
    }

    pub(super) fn looked(&mut self, n: usize) {
        self.outbox.looking.remove(&n);
    }

    /// A claim is answered: each message goes on its way.
    pub(super) fn claimed_deliveries(&mut self, n: usize, claimed: Vec<Claimed>) {
        self.outbox.claiming.remove(&n);
        for claimed in claimed {
            let fate = self.fate_of_message(n);
            self.outbox.attempts += 1;
            let attempt = self.outbox.attempts;
            if let Some(after_us) = fate.heard_after_us {
                self.later(after_us, TimedEvent::Heard { attempt });
            }
            self.later(fate.answered_after_us, TimedEvent::Answered { attempt });
            let answer = fate.answer;
            if matches!(answer, Answer::Refused { permanent: true, .. }) {
                *self.outbox.refused_for_good.entry(claimed.id).or_default() += 1;
            }
            self.outbox.under_way.insert(attempt, Attempt { process: n, claimed, answer, tries: 0 });
        }
    }

    /// The attempt is over for its node: it writes the answer down. A node that is dead writes nothing, so its lease runs out.
    pub(super) fn message_answered(&mut self, attempt: u64) {
        let Some(one) = self.outbox.under_way.get_mut(&attempt) else { return };
        let process = &self.world.processes[one.process];
        if !process.alive || one.tries >= ANSWER_TRIES {
            self.outbox.under_way.remove(&attempt);
            return;
        }
        if process.is_frozen(self.world.now_us) {
            let after = process.frozen_until_us - self.world.now_us;
            return self.later(after, TimedEvent::Answered { attempt });
        }
        one.tries += 1;
        let (n, id, answer, session) = (one.process, one.claimed.id, one.answer.clone(), process.session);
        let (store, jitter) = (process.own.client.clone(), u32::try_from(self.dice.below(1_001)).unwrap_or(0));
        self.call_of_outbox(n, Request::Answer(attempt), async move {
            let written = settle(&store, session, id, &answer, jitter).await;
            Done::AnswerWritten { attempt, written }
        });
    }

    /// The answer is kept, or comes too late; `None` if nobody knows, so that it is written again.
    pub(super) fn answer_written(&mut self, attempt: u64, written: Option<bool>) {
        match written {
            Some(held) => {
                if !held {
                    self.fault_plan.strike("an answer after its lease");
                }
                self.outbox.under_way.remove(&attempt);
            }
            None => self.later(BETWEEN_TRIES_US, TimedEvent::Answered { attempt }),
        }
    }

    /// All nodes are gone for good, some while they sent. Others, who do nothing but watch and send, tell and send what is left.
    pub(super) fn leave_the_rest_to_others(&mut self) {
        for n in 0..self.world.processes.len() {
            self.world.processes[n].alive = false;
            self.tasks.drop_of(n);
        }
        for place in [0, 1] {
            self.survivor(place);
        }
    }

    /// How long it may take until everything is told, and then sent: the longest looks; the longest wait, and leases of senders that died
    /// and slept.
    pub(super) const fn last_messages_us() -> (u64, u64) {
        (150 * SECOND_US, (Delivery::LONGEST_WAIT.as_micros() + 4 * Delivery::LEASE.as_micros()) as u64)
    }
}

/// Whether none is on its way.
pub(super) fn are_sent(deliveries: &[DeliveryView]) -> bool {
    deliveries.iter().all(|view| matches!(view.delivery.state, DeliveryState::Sent { .. } | DeliveryState::Dead { .. }))
}

async fn settle(store: &Client, session: SessionId, id: u64, answer: &Answer, jitter: u32) -> Option<bool> {
    store.settle_delivery(session, id, answer, jitter).await.ok()
}

impl Simulation {
    /// Every delivery, oldest first.
    pub(super) fn deliveries(&mut self) -> Result<Vec<DeliveryView>, Violation> {
        let store = self.people.clone();
        let all = DeliveryQuery { limit: 1_000_000, ..DeliveryQuery::default() };
        let mut deliveries = self.answer_to(async move { Ok(store.deliveries(&all).await?.items) })?;
        deliveries.reverse();
        Ok(deliveries)
    }

    /// S9 and L3 over everything that was told.
    pub(super) fn judge_messages(&mut self, deliveries: &[DeliveryView]) -> Result<Counts, Violation> {
        let store = self.people.clone();
        let routes = self.answer_to(async move { store.routes().await })?;
        let places: BTreeMap<SessionId, usize> =
            self.world.processes.iter().map(|process| (process.session, process.own.place)).collect();
        self.outbox.judge(&routes, deliveries, |session| format!("node-{}", places[&session]))
    }

    /// Asks the store after all trouble, and waits.
    fn answer_to<T: Send + 'static>(
        &mut self,
        call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, Violation> {
        let slot = Arc::new(Mutex::new(None));
        let answer = slot.clone();
        self.ask(async move {
            let found = call.await.ok();
            let is_one = found.is_some();
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = found;
            is_one
        });
        self.run_until(self.world.now_us + SECOND_US)?;
        let found = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let sentence = "a store that nothing troubles gives no answer".to_owned();
        found.ok_or(Violation { invariant: Invariant::L2, sentence })
    }
}
