//! The `carillon` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    // The keeper must begin with one thread and nothing else: it forks.
    if arguments.next_if(|argument| argument == "keeper").is_some() {
        return carillon_adapters::keeper::main(arguments);
    }
    carillon::cli::main()
}
