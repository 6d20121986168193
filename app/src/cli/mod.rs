//! The command line: arguments in, calls of the HTTP API or of the domain, tables or JSON out.
//!
//! `next` and `explain` need no server. `serve`, `init`, `doctor`, `backup`, `restore` and `copy` are the server itself. All others are
//! clients of the HTTP API and know nothing that it does not tell: no database, no configuration file. Everything here is
//! blocking; a command has one thing to do at a time.

mod alert;
pub mod args;
mod audit;
mod client;
mod command;
mod document;
mod export;
pub(crate) mod failure;
mod import;
mod job;
mod mcp;
pub(crate) mod out;
mod plugin;
mod progress;
mod run;
mod schedule;
mod server;
mod shell;
pub(crate) mod table;
mod watch;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use self::command::{Cli, Command};
use self::out::{Out, note};

/// The life of the process: reads its arguments, does what they say, answers the exit code.
pub fn main() -> ExitCode {
    shell::answer(Cli::command);
    let Cli { command, color } = Cli::parse();
    let command = match command {
        Command::Serve(args) => return crate::serve::serve(&args),
        Command::Init(args) => return crate::serve::init(&args),
        Command::Mcp(args) => return mcp::mcp(&args),
        command => command,
    };
    let mut out = Out::stdout(color);
    let done = client_command(command, &mut out);
    let flushed = out.flush();
    match done.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => code,
        Err(failure) => {
            note(&format!("error: {failure}"));
            failure.exit_code()
        }
    }
}

fn client_command(command: Command, out: &mut Out) -> Result<ExitCode, failure::CommandFailure> {
    let done = ExitCode::SUCCESS;
    match command {
        Command::Serve(_) | Command::Init(_) | Command::Mcp(_) => Ok(done),
        Command::Doctor(args) => crate::doctor::doctor(&args, out),
        Command::Backup(args) => server::backup::backup(&args, out).map(|()| done),
        Command::Restore(args) => server::backup::restore(&args, out).map(|()| done),
        Command::Import(args) => import::import(&args, out),
        Command::Export(args) => export::export(&args, out).map(|()| done),
        Command::Job(command) => job::job(&command, out),
        Command::Run(command) => run::run(&command, out).map(|()| done),
        Command::Plugin(command) => plugin::plugin(&command, out).map(|()| done),
        Command::Alert(command) => alert::alert(&command, out),
        Command::Audit(args) => audit::audit(&args, out).map(|()| done),
        Command::Cluster(args) => server::cluster::cluster(&args, out).map(|()| done),
        Command::Ready(args) => server::ready::ready(&args, out).map(|()| done),
        Command::Copy(args) => server::copy::run(&args, out).map(|()| done),
        Command::Why(args) => why::why(&args, out).map(|()| done),
        Command::Open(args) => server::open::open(&args, out).map(|()| done),
        Command::Completions(args) => shell::completions(&args, out).map(|()| done),
        Command::Man(args) => shell::man(&args, Cli::command(), out).map(|()| done),
        Command::Next(args) => schedule::next(&args, out).map(|()| done),
        Command::Explain(args) => schedule::explain(&args, out).map(|()| done),
    }
}
