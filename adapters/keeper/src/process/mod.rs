//! The keeper's own process: its event loop, its runs, and the way in which it kills what they leave behind.

pub(crate) mod cgroup;
mod child_run;
mod event_loop;
mod frozen_node;
mod launch;
mod leftovers;
mod node_socket;
mod orphans;
mod run_supervisor;
mod signals;
pub(crate) mod startup;
