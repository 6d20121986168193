//! A node process with its keeper and the keeper's children.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::lease::Timing;
use carillon_domain::node::{Config, Node};
use carillon_domain::time::{BootTime, Timestamp};

use super::clocks::BootClock;

/// A child of a keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Child {
    /// The job that it is a run of.
    pub job: JobId,
    /// When it ends at the latest, by true time.
    pub ends_at_us: u64,
    /// Whether its node wants it to end.
    pub asked_to_stop: bool,
}

/// A node process, its keeper and the keeper's children. `Own` is what only its scheduler knows of it.
#[derive(Clone, Hash)]
pub struct Process<Own> {
    /// Its session.
    pub session: SessionId,
    /// The node; `None` until its registration is answered. A clone of the world shares it until one of them changes it.
    pub node: Option<Arc<Node>>,
    /// The clock of its machine.
    pub clock: BootClock,
    /// Neither killed, nor ended by itself, nor drained.
    pub alive: bool,
    /// Until when it hears and does nothing (SIGSTOP), by true time. Its keeper is awake.
    pub frozen_until_us: u64,
    /// When the keeper kills every child, by the machine's clock.
    pub keeper_until: BootTime,
    /// The keeper kills the children, who are dead then at the latest, by true time.
    pub dead_at_us: Option<u64>,
    /// The children that live.
    pub children: BTreeMap<RunId, Child>,
    /// The scheduler's part.
    pub own: Own,
}

impl<Own> Process<Own> {
    /// A process that has asked for its registration and not been answered.
    pub fn registering(session: SessionId, clock: BootClock, now_us: u64, own: Own) -> Self {
        Self {
            session,
            node: None,
            clock,
            alive: true,
            frozen_until_us: 0,
            keeper_until: clock.at(now_us),
            dead_at_us: None,
            children: BTreeMap::new(),
            own,
        }
    }

    /// Its registration, which was sent at `sent`, is answered with the database's time.
    pub fn register(&mut self, config: Config, utc: Timestamp, sent: BootTime, now_us: u64) {
        self.keeper_until = sent + config.timing.self_kill_after;
        let node = Node::new(config, self.session, utc, self.clock.at(now_us));
        self.node = Some(Arc::new(node.registered_at(sent)));
    }

    /// Whether it is stopped.
    pub fn is_frozen(&self, now_us: u64) -> bool {
        self.alive && self.frozen_until_us > now_us
    }

    /// Whether it hears what it is told.
    pub fn is_awake(&self, now_us: u64) -> bool {
        self.alive && self.frozen_until_us <= now_us
    }

    /// Whether its node has a run to settle.
    pub fn knows_runs(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.known_runs().next().is_some())
    }

    /// When its node is to be looked at, by true time.
    pub fn wake_us(&self) -> Option<u64> {
        let node = self.node.as_ref().filter(|_| self.alive)?;
        Some(self.clock.when(node.next_wake()).max(self.frozen_until_us))
    }

    /// When its keeper's deadline passes, by true time, if there is anything to kill that is not being killed.
    pub fn deadline_us(&self) -> Option<u64> {
        let idle = self.children.is_empty() || self.dead_at_us.is_some();
        (!idle).then(|| self.clock.when(self.keeper_until))
    }

    /// The process is gone at once. Its keeper sees that, and the children are dead at `dead_at_us` at the latest.
    pub fn die(&mut self, dead_at_us: u64) {
        self.alive = false;
        self.frozen_until_us = 0;
        self.dead_at_us = Some(self.dead_at_us.map_or(dead_at_us, |earlier| earlier.min(dead_at_us)));
    }

    /// The keeper is gone, and the children with it.
    pub fn keeper_dies(&mut self) {
        self.dead_at_us = None;
        self.children.clear();
    }

    /// The keeper's deadline has passed: as late as is allowed for, without CPU for a pause and a whole grace to kill in.
    pub fn deadline_passes(&mut self, timing: &Timing) {
        let late = timing.pause + timing.fence_grace;
        self.dead_at_us = Some(self.clock.when(self.keeper_until) + late.as_micros() as u64);
    }
}
