//! Executors dropped into a directory as dynamic libraries (SPEC section 4, DESIGN section 7).
//!
//! A plugin is somebody else's code, so the server never loads one. dlopen alone runs constructors: looking at a plugin
//! happens in a short-lived *host* process just as running it does, and what crashes, exits or loops there ends that
//! inspection or that run and nothing else. Runs are children of the [keeper](crate::keeper), like those of the shell
//! executor: timeout, cancelling, lease and leftovers are its business, and nothing here repeats them.
//!
//! The way of a file:
//! 1. [`discover`] walks to the plugins directory from `/`, following no symbolic link, and refuses what others than root
//!    and the server's user could have put there or can change (`trust`).
//! 2. The file is copied into sealed memory (`image`). Only the copy is ever loaded, so that nothing can change between
//!    check and use, and overwriting the file hurts nobody.
//! 3. A host process loads the copy and prints its descriptor (`inspection`).
//! 4. [`DylibExecutor`] checks params against the plugin's JSON Schema, and runs it in a host process for each run
//!    (`host`). How the plugin's `run` returned comes back through a file in memory, never through the output, which is
//!    all the plugin's own; a host that ends without such a report has crashed or was made to exit, and the run's reason
//!    says so (`verdict`).
//!
//! A copy is one file: a library that a plugin brings along must be linked into it, as `$ORIGIN` leads nowhere. Host
//! processes reach the copy through /proc/PID/fd of the server, so a server that makes itself undumpable while not being
//! root cannot have plugins.

mod discovery;
mod executor;
mod host;
mod image;
mod inspection;
mod schema;
mod trust;
mod verdict;
mod wire;

pub use discovery::{Host, Plugin, Refused, discover, inspect};
pub use executor::DylibExecutor;
pub use host::host_main;
pub use wire::Description;

/// The hidden subcommand that leads to [`host_main`].
pub const SUBCOMMAND: &str = "plugin-host";
