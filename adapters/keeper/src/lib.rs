//! The keeper: the small process that starts every child, and ends it when the node no longer can.
//!
//! SIGSTOP freezes a node but not its children, and SIGKILL orphans them: a node cannot be trusted to kill them, yet they
//! must be dead before another node takes over (invariant S8). So `carillon serve` starts one keeper,
//! which spawns the children, holds the node's lease deadline on its own timer, and kills all of them as soon as the
//! deadline passes or the socket to the node closes. It exits when it has reaped the last one.
//!
//! The keeper has one thread and no runtime: PDEATHSIG means what it says, and between two looks at the clock it does a
//! bounded amount of work. Children borrow its memory until their exec (`process::launch`). It
//! looks nothing up in name services and opens no file of a job's: those may hang, and the fence must not. It ignores every
//! signal but SIGKILL: only the node decides.
//!
//! **A run is its main process.** When that ends, whatever it left in its process group, in its cgroup or among its
//! descendants is killed, and only when nothing is left is the exit reported. Background processes do not outlive a run,
//! and one that keeps the output pipe open does not prolong it. A descendant that sheds every mark of its run (cgroup,
//! session, group, environment) is killed as soon as it becomes an orphan.
//!
//! Where plugins run in the node itself, the keeper ends the node as well, if that is frozen when its lease is over.
//!
//! What the keeper cannot end: a process in uninterruptible sleep, and, where the server is not root and has no cgroup
//! of its own, a setuid program that has become another user. If the keeper itself is killed, main processes die by
//! PDEATHSIG, and the node kills the process groups and the cgroups that it knows of.

mod clock;
mod exit;
mod node_side;
pub mod output;
mod process;
pub mod protocol;
mod spawn_request;

pub use carillon_domain::run::Outcome;
pub use clock::boottime_ms;
pub use exit::{Exit, Live, Stop};
pub use node_side::handle::{KeeperHandle, KeeperOptions, RunningChild};
pub use process::startup::main;
pub use spawn_request::{Spawn, UserIds};
