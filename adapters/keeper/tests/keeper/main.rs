//! The keeper and the shell executor against real processes and real signals.
//!
//! This binary plays several parts: `keeper` is the keeper process, `node` is a server that can be frozen and killed, `load`
//! one that is kept busy, `raw` is what measurements are held against, and without any of them it runs the tests, as
//! `cargo test` expects (a filter, `--exact`, `--list`, `--ignored`).

mod bomb;
mod ends;
mod escape;
mod fence;
mod hang;
mod harness;
mod load;
mod node;
mod output;
mod raw;
mod shell;
mod speed;
mod start;
mod support;
mod usage;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    match arguments.peek().and_then(|first| first.to_str()) {
        Some("keeper") => carillon_keeper::main(arguments.skip(1)),
        Some("node") => node::main(arguments.skip(1)),
        Some("load") => load::main(arguments.skip(1)),
        Some("raw") => raw::main(arguments.skip(1)),
        _ => harness::main(&[
            start::TESTS,
            output::TESTS,
            ends::TESTS,
            escape::TESTS,
            fence::TESTS,
            hang::TESTS,
            bomb::TESTS,
            shell::TESTS,
            speed::TESTS,
            usage::TESTS,
        ]),
    }
}
