//! The receivers of messages, as the dice want them.

use carillon_domain::alert::{Answer, Delivery};
use carillon_store::alerts::Message;

use crate::simulator::simulation::{SECOND_US, Simulation};

/// How long a node waits for an answer.
const TIMEOUT_US: u64 = 15 * SECOND_US;
/// How many senders sleep past their leases at the most: each keeps the story waiting.
const MOST_SLEEPS: u32 = 4;

/// A message that reached its receiver.
pub(super) struct Heard {
    /// The delivery that it is of.
    pub delivery: u64,
    /// The content as it arrived.
    pub message: Message,
}

/// The outcome of an attempt.
pub(super) struct Fate {
    /// When the receiver hears it, if it does.
    pub heard_after_us: Option<u64>,
    /// When its node has an answer, or waits no longer.
    pub answered_after_us: u64,
    /// The answer, as the node has it.
    pub answer: Answer,
}

impl Simulation {
    /// While there is trouble, half of the attempts go wrong.
    pub(super) fn fate_of_message(&mut self, n: usize) -> Fate {
        let soon = 1_000 + self.dice.below(400_000);
        let delivered = Answer::Delivered { words: "200 OK".into() };
        let refused = |words: &str, permanent| Answer::Refused { words: words.into(), permanent };
        let unknown = || Answer::Unknown { words: "no answer".into() };
        let fate = |heard: bool, answered_after_us, answer| {
            let heard_after_us = heard.then_some(soon / 2);
            Fate { heard_after_us, answered_after_us, answer }
        };
        let is_survivor = self.world.processes[n].node.is_none();
        if !self.troubled {
            if is_survivor && self.outbox.slept < MOST_SLEEPS && self.dice.one_in(8) {
                self.outbox.slept += 1;
                self.fault_plan.strike("a sender that sleeps past its lease");
                return fate(true, Delivery::LEASE.as_micros() as u64 + TIMEOUT_US, refused("503", false));
            }
            return fate(true, soon, delivered);
        }
        match self.dice.below(10) {
            0 => {
                self.fault_plan.strike("a receiver that refuses");
                fate(false, soon, refused("500", false))
            }
            1 => {
                self.fault_plan.strike("a receiver that refuses for good");
                fate(false, soon, refused("404", true))
            }
            2 => {
                self.fault_plan.strike("a receiver that hangs");
                fate(false, TIMEOUT_US, unknown())
            }
            3 => {
                self.fault_plan.strike("a receiver that hears and hangs");
                fate(true, TIMEOUT_US, unknown())
            }
            4 => {
                self.fault_plan.strike("an answer of a receiver lost");
                fate(true, soon, unknown())
            }
            _ => fate(true, soon, delivered),
        }
    }

    /// A message reaches its receiver. One of a node that died on the way may have been sent before.
    pub(in crate::simulator) fn message_heard(&mut self, attempt: u64) {
        let Some(one) = self.outbox.under_way.get(&attempt) else { return };
        let (delivery, message, n) = (one.claimed.id, one.claimed.message.clone(), one.process);
        if !self.world.processes[n].alive {
            self.fault_plan.strike("a node that died while it sent");
            if self.dice.one_in(2) {
                return;
            }
        }
        self.checks.trace.note("heard", [delivery, n as u64]);
        self.outbox.heard.push(Heard { delivery, message });
    }
}
