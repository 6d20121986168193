//! A node's process with its keeper and the keeper's children.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::lease::Timing;
use carillon_domain::node::{Config, Input, Node};
use carillon_domain::time::BootTime;
use carillon_doubles::innodb::Client;

use super::clocks::BootClock;
use super::plan::Plan;
use super::tasks::TaskId;

/// How long a call to the store may take, in microseconds.
pub(super) const STATEMENT_TIMEOUT_US: u64 = 1_000_000;

/// A node from its registration to its end.
pub(super) struct Process {
    /// Its place in the cluster: a process that takes another one's place has the same.
    pub place: usize,
    pub node: Option<Node>,
    pub session: SessionId,
    pub client: Client,
    pub clock: BootClock,
    /// When the registration was sent.
    pub sent: BootTime,
    /// Until when it hears and does nothing (SIGSTOP).
    pub frozen_until_us: u64,
    /// Calls that may go on and inputs, from the time when it was frozen.
    pub asleep: Vec<TaskId>,
    pub inbox: Vec<Input>,
    /// When the keeper kills every child.
    pub keeper_until: BootTime,
    /// Whether that, or the node's end, was noticed.
    pub killing: bool,
    pub children: BTreeMap<RunId, ()>,
    pub alive: bool,
}

impl Process {
    pub fn is_frozen(&self, now_us: u64) -> bool {
        self.frozen_until_us > now_us
    }

    /// When it is to be looked at again, in true microseconds.
    pub fn wake_us(&self) -> u64 {
        let keeper =
            if self.children.is_empty() || self.killing { u64::MAX } else { self.clock.when(self.keeper_until) };
        let Some(node) = self.node.as_ref().filter(|_| self.alive) else { return keeper };
        keeper.min(self.clock.when(node.next_wake()).max(self.frozen_until_us))
    }

    /// Not every node can run every job.
    pub fn executors(&self) -> Vec<String> {
        let names: &[&str] = if self.place.is_multiple_of(3) { &["shell"] } else { &["http", "shell"] };
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// The configuration that all nodes of a plan share.
pub(super) fn config(plan: Plan) -> Config {
    let ms = Duration::from_millis;
    let timing = Timing {
        heartbeat: ms(500),
        heartbeat_timeout: ms(300),
        self_kill_after: ms(2_000),
        fence_grace: ms(500),
        pause: ms(500),
        expire_after: ms(4_000),
    };
    let (max_executing, max_batch) = match plan {
        Plan::Calm => (2_000, 500),
        Plan::Overload | Plan::Everything => (60, 200),
        _ => (400, 200),
    };
    Config {
        timing,
        self_kill: true,
        partitions: PARTITIONS,
        horizon: ms(3_000),
        max_in_flight: 4 * max_executing,
        max_executing,
        max_batch,
        peek_every: ms(500),
        steal_after: ms(1_500),
        recover_every: ms(1_000),
        flow: carillon_domain::node::FlowKind::Tuned,
        drain_timeout: ms(1_500),
    }
}

/// How many partitions every cluster has.
pub(super) const PARTITIONS: u16 = 8;
