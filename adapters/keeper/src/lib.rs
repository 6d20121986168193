//! The keeper: the small process that starts every child, and ends it when the node no longer can.
//!
//! SIGSTOP freezes a node but not its children, and SIGKILL orphans them. So a node cannot be trusted to kill them. Yet they must be
//! dead before another node takes over (invariant S8). So `carillon serve` starts one keeper. It spawns the children and holds the
//! node's lease deadline on its own timer. It kills all of them as soon as the deadline passes or the socket to the node closes. It
//! exits when it has reaped the last one.
//!
//! The keeper has one thread and no runtime. So PDEATHSIG is reliable, and between two readings of the clock it does a bounded amount
//! of work. Children borrow its memory until their exec (`process::launch`). It asks no name service and opens no file of a job:
//! those may hang, and the fence must not. It ignores every signal but SIGKILL: only the node decides.
//!
//! **A run is its main process.** When that ends, the keeper kills its process group, its cgroup and its descendants. It reports the
//! exit when nothing is left. Background processes do not outlive a run,
//! and one that keeps the output pipe open does not prolong it. A descendant that sheds every mark of its run (cgroup,
//! session, group, environment) is killed as soon as it becomes an orphan.
//!
//! Where plugins run in the node itself, the keeper ends the node as well, if that is frozen when its lease is over.
//!
//! The keeper cannot end a process in uninterruptible sleep. If the server is not root and has no cgroup of its own, it cannot end a
//! setuid program that has become another user. If the keeper itself is killed, main processes die by PDEATHSIG. The node then kills
//! the process groups and the cgroups that it knows.

mod clock;
mod exit;
mod node_side;
pub mod output;
mod process;
pub mod protocol;
mod spawn_request;

pub use carillon_domain::run::Outcome;
pub use clock::boottime_ms;
pub use exit::{Exit, LEASE_OVER, Live, Stop};
pub use node_side::handle::{KeeperHandle, KeeperOptions, RunningChild};
pub use process::cgroup::{CgroupPlace, cgroup_places};
pub use process::startup::main;
pub use spawn_request::{Spawn, UserIds};
