//! Stories of messages: whole clusters of the simulator, in trouble that each of these guards is there for.

use carillon_domain::invariants::Verdict;

use crate::simulator::{Plan, run};

/// Few jobs, so that a story is told quickly.
const JOBS: u64 = 6;

fn clusters(plan: Plan, seeds: std::ops::Range<u64>) -> Verdict {
    seeds.into_iter().try_for_each(|seed| run(plan, seed, JOBS).map(drop))
}

/// Each node steps every other second, so some step at once.
pub fn nodes_step_at_once() -> Verdict {
    clusters(Plan::Locks, 0..2)
}

/// Records become visible after others with higher numbers. It takes a look in between, so few clusters come across it: this one does.
pub fn commits_come_late() -> Verdict {
    run(Plan::Network, 20, 5 * JOBS).map(drop)
}

/// Nodes crash with messages on their way.
pub fn senders_die() -> Verdict {
    clusters(Plan::Nodes, 0..3)
}
