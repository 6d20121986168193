//! The `carillon` binary.

mod command;

use std::process::ExitCode;

use carillon_executors::dylib;
use carillon_keeper as keeper;

/// A firing makes and drops some dozens of small values on several threads. With the C library's allocator a busy node spent a quarter of
/// its time there. It is built without huge pages, as a few small values would keep many of them.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    #[cfg(debug_assertions)]
    carillon_server::without_guard::from_arguments(&mut arguments);
    // The keeper must begin with one thread and nothing else: it forks.
    if arguments.next_if(|argument| argument == "keeper").is_some() {
        return keeper::main(arguments);
    }
    if arguments.next_if(|argument| argument == dylib::SUBCOMMAND).is_some() {
        return dylib::host_main(arguments);
    }
    if arguments.peek().is_some_and(|argument| argument == "serve")
        && let Some(code) = carillon_server::first_process::split()
    {
        return code;
    }
    command::main()
}
