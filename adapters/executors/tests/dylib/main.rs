//! Plugins against real files, real host processes and the real keeper.
//!
//! This binary plays three parts: `keeper` is the keeper process, `plugin-host` is the host of a plugin, and without
//! either it runs the tests, as `cargo test` expects. Broken plugins are made from a few lines of C when they are needed.

mod crashes;
mod discovery;
mod fixtures;
mod folder;
#[path = "../../../keeper/tests/keeper/harness.rs"]
mod harness;
mod runs;
mod speed;
mod stuck;
#[allow(dead_code, reason = "shared with the keeper's tests, which need more of it")]
#[path = "../../../keeper/tests/keeper/support.rs"]
mod support;

use std::process::ExitCode;

use carillon_executors::dylib;
use carillon_keeper as keeper;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    match arguments.peek().and_then(|first| first.to_str()) {
        Some("keeper") => keeper::main(arguments.skip(1)),
        Some(dylib::SUBCOMMAND) => dylib::host_main(arguments.skip(1)),
        _ => harness::main(&[discovery::TESTS, folder::TESTS, runs::TESTS, crashes::TESTS, stuck::TESTS, speed::TESTS]),
    }
}
