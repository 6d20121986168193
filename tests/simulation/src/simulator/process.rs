//! A node's process with its keeper and the keeper's children.

use std::time::Duration;

use carillon_domain::lease::Timing;
use carillon_domain::node::{Config, Input};
use carillon_domain::time::BootTime;
use carillon_doubles::innodb::Client;

use super::plan::Plan;
use super::tasks::TaskId;

/// How long a call to the store may take, in microseconds.
pub(super) const STATEMENT_TIMEOUT_US: u64 = 1_000_000;

/// The part of a process that only the simulator knows of.
pub(super) struct Seat {
    /// Its place in the cluster: a process that takes another one's place has the same.
    pub place: usize,
    pub client: Client,
    /// When the registration was sent.
    pub sent: BootTime,
    /// Calls that may go on and inputs, from the time when it was frozen.
    pub asleep: Vec<TaskId>,
    pub inbox: Vec<Input>,
}

pub(super) type Process = crate::world::Process<Seat>;

impl Process {
    /// When it is to be looked at again, in true microseconds.
    pub fn looked_at_us(&self) -> u64 {
        self.deadline_us().into_iter().chain(self.wake_us()).min().unwrap_or(u64::MAX)
    }
}

impl Seat {
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
        peek_every_at_rest: ms(500),
        steal_after: ms(1_500),
        recover_every: ms(1_000),
        remembered_ends: 4 * max_executing,
        flow: carillon_domain::node::FlowKind::Tuned,
        drain_timeout: ms(1_500),
    }
}

/// How many partitions every cluster has.
pub(super) const PARTITIONS: u16 = 8;
