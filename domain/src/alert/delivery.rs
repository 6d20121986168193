//! Deliveries: the way of one notice to one target. Any node sends, at least once.
//!
//! A delivery waits, is sent under a lease, and is sent or dead in the end. A sender that dies leaves a lease that runs out, and another
//! node sends again. So a receiver may hear a notice twice, and tells it by the id.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::guard::{Guard, enabled};
use crate::id::SessionId;
use crate::time::Timestamp;

/// How a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// It is to be sent. Any node claims it.
    Waiting {
        /// Not before this.
        next_at: Timestamp,
    },
    /// A node sends it. Its answer moves it on, or another node's claim once the lease ran out.
    Sending {
        /// The end of the lease.
        until: Timestamp,
        /// The session of the node.
        session: SessionId,
    },
    /// The receiver took it. Only a person moves it on.
    Sent {
        /// When.
        at: Timestamp,
    },
    /// It was given up. Only a person moves it on.
    Dead {
        /// When.
        at: Timestamp,
    },
}

/// One notice on its way to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// How it stands.
    pub state: DeliveryState,
    /// How often it was claimed since it was made or resent.
    pub tries: u32,
    /// How often the receiver refused it for good since then.
    pub refusals: u32,
    /// When it was first claimed since then.
    pub first_try_at: Option<Timestamp>,
    /// The words of the last answer.
    pub answer: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The receiver took it.
    Delivered {
        /// Its words, such as `200 OK`.
        words: String,
    },
    /// Some receivers of a mail have it. Each of the others gets a delivery of its own, so that nobody gets the mail twice.
    Partly {
        /// The words about all of them.
        words: String,
        /// Those who were refused.
        refused: Vec<RefusedReceiver>,
    },
    /// The receiver refused it.
    Refused {
        /// Its words, such as `404 Not Found`.
        words: String,
        /// Whether another attempt will hardly help, such as after a 4xx that is neither 408 nor 429.
        permanent: bool,
    },
    /// There is no answer, so it may have arrived.
    Unknown {
        /// The error.
        words: String,
    },
}

/// A receiver of a mail who was refused while others were not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedReceiver {
    /// The address, as the target has it.
    pub to: String,
    /// The words of the server.
    pub words: String,
    /// As in [`Answer::Refused`].
    pub permanent: bool,
}

/// Why a delivery does not move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Its time has not come, or another node sends it.
    #[error("the delivery is not to be sent now")]
    NotNow,
    /// The session does not hold it, so its answer comes too late.
    #[error("another node sends the delivery by now")]
    NotHeld,
    /// It waits or is being sent, so it need not be sent again.
    #[error("the delivery is still on its way: only one that was sent or given up can be sent again")]
    OnItsWay,
}

/// A delivery that could be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate<K> {
    /// The identity of its row.
    pub key: K,
    /// The host of its target, as [`super::Target::host`] tells it.
    pub host: String,
}

impl Delivery {
    /// The wait after the first attempt. Each later wait is twice as long.
    pub const FIRST_WAIT: Duration = Duration::from_secs(10);
    /// The longest wait.
    pub const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
    /// How long after the first attempt it is given up.
    pub const GIVE_UP_AFTER: Duration = Duration::from_secs(86_400);
    /// How many permanent refusals it takes to give it up.
    pub const MOST_REFUSALS: u32 = 5;
    /// How long a node may send it. Every attempt must end within it.
    pub const LEASE: Duration = Duration::from_secs(330);
    /// The most bytes of an answer that are kept.
    pub const MOST_ANSWER: usize = 500;

    /// A delivery that is to be sent at once.
    pub const fn new(now: Timestamp) -> Self {
        let state = DeliveryState::Waiting { next_at: now };
        Self { state, tries: 0, refusals: 0, first_try_at: None, answer: None }
    }

    /// When it may be claimed; `None` if it is sent or dead.
    pub const fn claim_at(&self) -> Option<Timestamp> {
        match self.state {
            DeliveryState::Waiting { next_at } => Some(next_at),
            DeliveryState::Sending { until, .. } => Some(until),
            DeliveryState::Sent { .. } | DeliveryState::Dead { .. } => None,
        }
    }

    /// A session takes it to send it. It must have ended the attempt when the lease ends.
    ///
    /// # Errors
    /// [`Refused::NotNow`] if it is not to be sent now.
    pub fn claim(&self, session: SessionId, now: Timestamp) -> Result<Self, Refused> {
        let may = !matches!(self.state, DeliveryState::Sending { .. }) || enabled(Guard::DeliveryReclaimed);
        self.claim_at().filter(|at| *at <= now && may).ok_or(Refused::NotNow)?;
        let first_try_at = self.first_try_at.or(Some(now));
        let state = DeliveryState::Sending { until: now + Self::LEASE, session };
        Ok(Self { state, tries: self.tries.saturating_add(1), first_try_at, ..self.clone() })
    }

    /// The attempt of a session ended. `jitter` is in thousandths, and shortens the wait by up to a quarter.
    ///
    /// # Errors
    /// [`Refused::NotHeld`] if the session does not hold it.
    pub fn answered(&self, session: SessionId, answer: Answer, now: Timestamp, jitter: u32) -> Result<Self, Refused> {
        match self.state {
            DeliveryState::Sending { session: holder, .. } if holder == session => {}
            _ => return Err(Refused::NotHeld),
        }
        let (words, permanent) = match answer {
            Answer::Delivered { words } | Answer::Partly { words, .. } => {
                let state = DeliveryState::Sent { at: now };
                return Ok(Self { state, answer: Some(shortened(words)), ..self.clone() });
            }
            Answer::Refused { words, permanent } => (words, permanent),
            Answer::Unknown { words } => (words, false),
        };
        let refusals = self.refusals.saturating_add(u32::from(permanent));
        let next_at = now + wait_after(self.tries, jitter);
        let last_at = self.first_try_at.unwrap_or(now) + Self::GIVE_UP_AFTER;
        let state = if refusals >= Self::MOST_REFUSALS || next_at > last_at {
            DeliveryState::Dead { at: now }
        } else {
            DeliveryState::Waiting { next_at }
        };
        Ok(Self { state, refusals, answer: Some(shortened(words)), ..self.clone() })
    }

    /// The delivery to one receiver who was refused while others got the mail. That refusal is its first attempt.
    pub fn of_refused(refused: &RefusedReceiver, now: Timestamp, jitter: u32) -> Self {
        Self {
            state: DeliveryState::Waiting { next_at: now + wait_after(1, jitter) },
            tries: 1,
            refusals: u32::from(refused.permanent),
            first_try_at: Some(now),
            answer: Some(shortened(refused.words.clone())),
        }
    }

    /// A person sends it again, with all its attempts.
    ///
    /// # Errors
    /// [`Refused::OnItsWay`] unless it was sent or given up.
    pub fn resend(&self, now: Timestamp) -> Result<Self, Refused> {
        match self.state {
            DeliveryState::Sent { .. } | DeliveryState::Dead { .. } => {
                Ok(Self { answer: self.answer.clone(), ..Self::new(now) })
            }
            DeliveryState::Waiting { .. } | DeliveryState::Sending { .. } => Err(Refused::OnItsWay),
        }
    }
}

impl DeliveryState {
    /// The names of all states.
    pub const NAMES: [&'static str; 4] = ["waiting", "sending", "sent", "dead"];

    /// The name that stores keep and users read.
    pub const fn as_str(&self) -> &'static str {
        match self {
            DeliveryState::Waiting { .. } => "waiting",
            DeliveryState::Sending { .. } => "sending",
            DeliveryState::Sent { .. } => "sent",
            DeliveryState::Dead { .. } => "dead",
        }
    }
}

/// The deliveries to claim now: the first `most` of the candidates, in their order, but at most `per_host` at once for one host.
/// `in_flight` counts those that this node sends already.
pub fn choose<K>(
    candidates: Vec<Candidate<K>>,
    in_flight: &BTreeMap<String, usize>,
    per_host: usize,
    most: usize,
) -> Vec<K> {
    let mut used = in_flight.clone();
    let mut chosen = Vec::new();
    for Candidate { key, host } in candidates {
        let of_host = used.entry(host).or_default();
        if chosen.len() < most && *of_host < per_host {
            *of_host += 1;
            chosen.push(key);
        }
    }
    chosen
}

/// The wait after attempt number `tries`: 10 s, doubling to an hour, shortened so that senders spread.
fn wait_after(tries: u32, jitter: u32) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    let wait = Delivery::FIRST_WAIT.saturating_mul(1 << doublings).min(Delivery::LONGEST_WAIT);
    wait - wait / 4_000 * jitter.min(1_000)
}

/// The first part of an answer, on one line.
fn shortened(words: String) -> String {
    let one_line = crate::name::on_one_line(words.trim());
    one_line[..one_line.floor_char_boundary(Delivery::MOST_ANSWER)].to_owned()
}
