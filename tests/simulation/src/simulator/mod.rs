//! Whole clusters of real node machines over a database that behaves as InnoDB does, in virtual time, under trouble of every
//! kind. Safety first: each commit and each spawn is checked as it happens. Then the trouble stops, and everything must come
//! to rest: every row Idle, every due time in exactly one record, every message at its receiver. A seed replays to the letter.
//!
//! The nodes are [`carillon_domain::node::Node`], the store's operations those of the servers. Keepers, children and clocks are
//! those of the test world ([`crate::world`]). The wire, the database's faults and the operators are modelled here.

mod calls;
mod checks;
mod dice;
mod disturbances;
mod fault_plan;
mod jobs;
mod operators;
mod outbox;
mod plan;
mod process;
mod simulation;
mod tasks;
mod trace;

use std::collections::BTreeMap;

use carillon_domain::invariants::Violation;

pub use plan::Plan;

/// The life of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Runs that were spawned.
    pub firings: u64,
    /// Due times that were accounted for.
    pub due_times: u64,
    /// Transactions that wrote something.
    pub commits: u64,
    /// How long it lasted, in seconds of its own time.
    pub virtual_s: u64,
    /// The faults and how often each happened.
    pub faults: BTreeMap<&'static str, u64>,
    /// How often rare things happened, in rows.
    pub paths: BTreeMap<&'static str, u64>,
    /// All that happened, as one number.
    pub trace: u64,
}

impl Summary {
    /// Adds another cluster's.
    pub fn add(&mut self, other: &Summary) {
        self.firings += other.firings;
        self.due_times += other.due_times;
        self.commits += other.commits;
        self.virtual_s += other.virtual_s;
        self.trace ^= other.trace;
        for (what, times) in &other.faults {
            *self.faults.entry(what).or_default() += times;
        }
        for (what, times) in &other.paths {
            *self.paths.entry(what).or_default() += times;
        }
    }
}

/// Runs one cluster with so many jobs, from its beginning to its rest.
///
/// # Errors
/// The first thing that was seen and must never be.
pub fn run(plan: Plan, seed: u64, jobs: u64) -> Result<Summary, Violation> {
    simulation::Simulation::new(plan, seed, jobs).run()
}
