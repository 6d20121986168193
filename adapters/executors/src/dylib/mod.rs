//! Executors from dynamic libraries in the plugins directory.
//!
//! A plugin is foreign code, so the server loads only plugins that it was told to trust. `dlopen` alone runs constructors.
//! Therefore a short-lived *host* process inspects a plugin, and a long-lived one runs it. A crash, an exit or an endless loop
//! ends that process and not the server. Hosts are children of the [keeper](carillon_keeper), which kills them when the
//! node's lease is over or the node is gone.
//!
//! The way of a file:
//! 1. [`Folder`] walks to the plugins directory from `/` and follows no symbolic link. It refuses files that a user other than
//!    root and the server's own can put there or change (`catalog::trust`). It looks again every few seconds.
//! 2. It copies the file into sealed memory (`catalog::image`). Only the copy is loaded, so nothing can change between check
//!    and use.
//! 3. A host process loads the copy and prints its descriptor (`catalog::inspection`).
//! 4. [`DylibExecutor`] checks params against the plugin's JSON Schema and starts runs.
//!
//! The way of a run: the node's side (`host::node_side`) starts host processes and gives each run to one of them. The host
//! process (`host::process`) has one thread for each run (`run_threads`, `call`). A trusted plugin may run on threads of the
//! server instead (`in_server`). Both report to the same `run_table`, and `exit_reason` makes the exit. A task supervises a run
//! that has a timeout, waits for a place or has to stop (`supervise`). All other runs are detached: a task would cost as much
//! as the rest of a short run.
//!
//! **When a host ends** by a crash or by `exit`, it reports the run in which that happened (`host::process::dying`). Every run
//! that was in the plugin's code fails, with a reason that names the cause. Runs that had not begun go to the next host.
//!
//! **A run that does not stop** within its kill_grace ends its host. New runs go to a new host at once. The other runs in the
//! old host may continue for the longest kill_grace among them; then the keeper kills the process. A run is reported as ended
//! only when its code can no longer run. Threads of the server cannot be killed, so there a run stays until it returns.
//!
//! A copy is one file: link every library that a plugin needs into it, because `$ORIGIN` points to no directory. Host processes
//! reach the copy through /proc/PID/fd of the server, so a server that is not root and not dumpable cannot have plugins.

mod abi_input;
mod call;
mod catalog;
mod executor;
mod frames;
mod host;
mod library;
mod run_threads;

pub use catalog::folder::{Change, Folder};
pub use catalog::{Description, Host, Plugin, Refused, inspect};
pub use executor::DylibExecutor;
pub use host::process::{host_main, leave};

/// The hidden subcommand that leads to [`host_main`].
pub const SUBCOMMAND: &str = "plugin-host";

/// The default memory limit of a host, in bytes.
pub const MEMORY_BYTES: u64 = 1 << 30;

/// The most runs in one host at a time. More runs go to another host.
const MOST_RUNS: usize = 256;
