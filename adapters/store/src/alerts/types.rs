//! Questions and answers of [`super::AlertStore`].

use std::collections::BTreeMap;

use carillon_domain::alert::{Delivery, Notice, PingCall, Refused, Route, Target};
use carillon_domain::id::SessionId;
use carillon_domain::time::Timestamp;

use crate::StoreError;

/// A route as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRoute {
    /// The route.
    pub route: Route,
    /// 1 at first; each change raises it.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// Why a request about routes or deliveries was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AlertError {
    /// There is no such route.
    #[error("there is no route {0}")]
    NoRoute(String),
    /// It was changed since the caller read it.
    #[error(
        "the route is at version {current}, not at {expected}: read it again and repeat the change on what you find"
    )]
    Stale {
        /// The version that the caller expected.
        expected: u64,
        /// Its version now; 0 if there is no such route.
        current: u64,
    },
    /// It is stored, but this binary cannot read it.
    #[error("the route {name} cannot be used ({problem}): store it anew, or delete it")]
    Unreadable {
        /// Its name.
        name: String,
        /// Its version.
        version: u64,
        /// The fault of the stored row.
        problem: String,
    },
    /// There is no such delivery.
    #[error("there is no delivery {0}: it may have been deleted with its age")]
    NoDelivery(u64),
    /// The delivery does not move.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The effect of one watch step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stepped {
    /// How many facts it has judged.
    pub facts: usize,
    /// How many notices it has made.
    pub notices: usize,
    /// How many calls of monitors it has made.
    pub pings: usize,
    /// Whether another step has work at once.
    pub more: bool,
    /// When an incident or a storm is to be looked at next, whatever the journals tell until then.
    pub next_look: Option<Timestamp>,
}

/// The effect of looking at expectations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watched {
    /// How many jobs were looked at.
    pub jobs: usize,
    /// How many verdicts were written.
    pub verdicts: usize,
    /// Whether another look has work at once.
    pub more: bool,
    /// When the next job is to be looked at, if one is known.
    pub next_look: Option<Timestamp>,
}

/// A stored row that this binary cannot read. Everything but this row goes on without it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// `route`, `incident`, `delivery` or `fact`.
    pub noun: &'static str,
    /// The name of a route, or the id of another row.
    pub id: String,
    /// The fault, as a sentence.
    pub problem: String,
}

/// The content of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A notice of a route.
    Notice(Box<Notice>),
    /// A call of a job's monitor.
    Ping(PingCall),
}

/// Which deliveries a session takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryClaim {
    /// The session that sends.
    pub session: SessionId,
    /// At most so many.
    pub limit: usize,
    /// How many the session sends already, by the host of the target.
    pub in_flight: BTreeMap<String, usize>,
    /// At most so many at once for one host.
    pub per_host: usize,
}

/// A delivery that a session is to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its id.
    pub id: u64,
    /// The content.
    pub message: Message,
    /// The target, as the route names it now; `None` for a call of a monitor, which names its address.
    pub target: Option<Target>,
    /// The host whose limit it uses.
    pub host: String,
    /// How it stands, this attempt included.
    pub delivery: Delivery,
}

/// A delivery as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryView {
    /// Its id; later ones have higher ids.
    pub id: u64,
    /// The content.
    pub message: Message,
    /// The place of the target in its route, from 0; 0 for a call of a monitor.
    pub place: u32,
    /// The kind of the target; `ping` for a call of a monitor.
    pub kind: String,
    /// The host of the target when the delivery was made.
    pub host: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// How it stands.
    pub delivery: Delivery,
}

/// Which deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryQuery {
    /// Of this route.
    pub route: Option<String>,
    /// In the state of this name.
    pub state: Option<&'static str>,
    /// Older than the delivery with this id.
    pub after: Option<u64>,
    /// How many at the most; at least 1.
    pub limit: usize,
}

/// Which incidents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IncidentQuery {
    /// Of this route.
    pub route: Option<String>,
    /// Of jobs in these namespaces; `None` for all, those of the cluster included.
    pub namespaces: Option<Vec<String>>,
    /// How many at the most.
    pub limit: usize,
}

/// How many deliveries are in each state, each counted up to [`DeliveryCounts::MOST`]: a page asks each second, and old messages are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryCounts {
    /// They wait for an attempt.
    pub waiting: u64,
    /// A node sends them.
    pub sending: u64,
    /// The receiver took them.
    pub sent: u64,
    /// They were given up.
    pub dead: u64,
}

impl DeliveryCounts {
    /// Where counting ends: it means so many or more.
    pub const MOST: u64 = 1_000;

    /// From the number of each state by its name.
    pub fn of(counted: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut counts = Self::default();
        for (state, count) in counted {
            match state.as_str() {
                "waiting" => counts.waiting = count,
                "sending" => counts.sending = count,
                "sent" => counts.sent = count,
                "dead" => counts.dead = count,
                _ => {}
            }
        }
        counts
    }
}
