//! Executors dropped into a directory as dynamic libraries (SPEC section 4, DESIGN section 7).
//!
//! A plugin is somebody else's code, so the server loads none but those that it is told to trust. dlopen alone runs
//! constructors: looking at a plugin happens in a short-lived *host* process, and running it in a long-lived one, and what
//! crashes, exits or loops there ends that process and not the server. Hosts are children of the
//! [keeper](carillon_keeper), which kills them when the node's lease is over or the node is gone.
//!
//! The way of a file:
//! 1. [`Folder`] walks to the plugins directory from `/`, following no symbolic link, and refuses what others than root
//!    and the server's user could have put there or can change (`trust`). It looks again now and then.
//! 2. The file is copied into sealed memory (`image`). Only the copy is ever loaded, so that nothing can change between
//!    check and use, and overwriting the file hurts nobody.
//! 3. A host process loads the copy and prints its descriptor (`inspection`).
//! 4. [`DylibExecutor`] checks params against the plugin's JSON Schema, and begins runs in the plugin's host (`hosts`,
//!    `link`), which has a thread for each (`stage`, `call`), or, if the plugin is trusted, on threads of the server
//!    (`server`). Both tell the same table of runs how they go (`slots`), and the same judge makes the exit (`verdict`). A
//!    task follows a run that has a timeout, waits for its place or is to stop (`ongoing`); the others need none (`alone`).
//!
//! **When a host ends**, the run that it happened in is known for crashes and `exit`, because the dying host says so
//! (`host::dying`); every run that the plugin had been called for fails with a reason that says what happened, and by
//! whom if that is known. Those that it had not been called for yet go to the next host.
//!
//! **A run that does not stop** within its kill_grace ends its host: new runs go to a fresh one at once; the others in it
//! may go on for as long as the most patient of them has to stop; then the process is killed, and only when it is dead is
//! the run reported. A run is never said to be over while its code may still run; in the server, where threads cannot be
//! killed, it therefore stays until it returns.
//!
//! A copy is one file: a library that a plugin brings along must be linked into it, as `$ORIGIN` leads nowhere. Host
//! processes reach the copy through /proc/PID/fd of the server, so a server that makes itself undumpable while not being
//! root cannot have plugins.

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

/// What a host may hold of the machine's memory, in bytes, where nobody says otherwise.
pub const MEMORY_BYTES: u64 = 1 << 30;

/// Runs that one host takes at a time; for more there is another one.
const MOST_RUNS: usize = 256;
