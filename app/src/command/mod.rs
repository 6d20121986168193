//! The commands of `carillon`, and which code each one calls.
//!
//! `serve`, `init`, `doctor`, `backup`, `restore` and `copy` are the server itself. All others are clients ([`carillon_cli`]).

mod backup;
mod copy;
mod doctor;

use std::process::ExitCode;

use carillon_cli::alert::{self, AlertCommand};
use carillon_cli::args::ClusterArgs;
use carillon_cli::audit::{self, AuditArgs};
use carillon_cli::export::{self, ExportArgs};
use carillon_cli::failure::CommandFailure;
use carillon_cli::import::{self, ImportArgs};
use carillon_cli::job::{self, JobCommand};
use carillon_cli::mcp::{self, McpArgs};
use carillon_cli::out::{Out, note};
use carillon_cli::plugin::{self, PluginCommand};
use carillon_cli::run::{self, RunCommand};
use carillon_cli::schedule::{self, ExplainArgs, NextArgs};
use carillon_cli::server::open::OpenArgs;
use carillon_cli::server::ready::ReadyArgs;
use carillon_cli::server::{cluster, open, ready};
use carillon_cli::shell::{self, CompletionsArgs, ManArgs};
use carillon_cli::table::Colour;
use carillon_cli::why::{self, WhyArgs};
use carillon_server::serve;
use carillon_server::serve::args::{InitArgs, ServeArgs};
use clap::{CommandFactory, Parser, Subcommand};
use tokio::runtime::{Builder, Runtime};

use self::backup::{BackupArgs, RestoreArgs};
use self::copy::CopyArgs;
use self::doctor::DoctorArgs;

/// A distributed crontab server: identical nodes share one database and nothing else.
#[derive(Debug, Parser)]
#[command(name = "carillon", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 bad usage, 3 not found, 4 conflict, 70 fenced.")]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Whether tables have colours; NO_COLOR is honoured
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Colour::Auto, global = true, help_heading = "Server")]
    pub color: Colour,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node: schedule, execute and answer the HTTP API
    Serve(ServeArgs),
    /// Create or migrate the database schema; `serve` does it too
    Init(InitArgs),
    /// Check what `serve` would find here, and say what to do about it; changes nothing
    #[command(after_help = "Exit codes: 0 all is well, or there are warnings only; 1 there is an error.")]
    Doctor(DoctorArgs),
    /// Copy the database file, also while a server runs on it
    Backup(BackupArgs),
    /// Put a backup in the place of the database file; the server must be stopped
    Restore(RestoreArgs),
    /// Read a crontab, or definitions as JSON, YAML or TOML, into jobs
    Import(ImportArgs),
    /// Write the jobs as a crontab, or as JSON, YAML or TOML
    Export(ExportArgs),
    /// Add, change, look at and run jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Look at runs and cancel them
    #[command(subcommand)]
    Run(RunCommand),
    /// Say why a due time of a job ran, did not, or has not yet
    Why(WhyArgs),
    /// Show the executors of a server, or what a plugin file says of itself
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Say who is told of what, and look at what was told
    #[command(subcommand)]
    Alert(AlertCommand),
    /// Show who changed what, from where
    Audit(AuditArgs),
    /// Show the live sessions and what they hold, and whether the database lost commits
    Cluster(ClusterArgs),
    /// Tell whether a node schedules, as a health check wants to know it; needs no token
    #[command(after_help = "Exit codes: 0 it schedules; 1 it does not, or does not answer.")]
    Ready(ReadyArgs),
    /// Copy a whole store into another, empty database; resumes one that was interrupted
    Copy(CopyArgs),
    /// Open the page in the browser, signed in by a link that is good once
    Open(OpenArgs),
    /// Serve the Model Context Protocol on standard input and output, so that an agent can look, explain, schedule and run
    #[command(mut_arg("json", |json| json.hide(true)))]
    Mcp(McpArgs),
    /// Print the next due times of a schedule; needs no server
    Next(NextArgs),
    /// Say in words when a schedule is due; needs no server
    Explain(ExplainArgs),
    /// Print a script with which a shell completes commands, options, and names of the server
    Completions(CompletionsArgs),
    /// Write a man page for each command
    Man(ManArgs),
}

/// The life of the process: reads its arguments, does what they say, answers the exit code.
pub fn main() -> ExitCode {
    shell::answer(Cli::command);
    let Cli { command, color } = Cli::parse();
    let mut out = Out::stdout(color);
    let done = answer(command, &mut out);
    let flushed = out.flush();
    match done.and_then(|code| flushed.map(|()| code)) {
        Ok(code) => code,
        Err(failure) => {
            note(&format!("error: {failure}"));
            failure.exit_code()
        }
    }
}

/// A runtime for a command that waits for several things at a time.
fn runtime(mut builder: Builder) -> Result<Runtime, CommandFailure> {
    let built = builder.enable_all().build();
    built.map_err(|error| CommandFailure::failed(format!("no runtime can be had: {error}; try again")))
}

fn answer(command: Command, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let done = ExitCode::SUCCESS;
    match command {
        Command::Serve(args) => Ok(serve::serve(&args)),
        Command::Init(args) => Ok(serve::init(&args)),
        Command::Doctor(args) => doctor::doctor(&args, out),
        Command::Backup(args) => backup::backup(&args, out).map(|()| done),
        Command::Restore(args) => backup::restore(&args, out).map(|()| done),
        Command::Import(args) => import::import(&args, out),
        Command::Export(args) => export::export(&args, out).map(|()| done),
        Command::Job(command) => job::job(&command, out),
        Command::Run(command) => run::run(&command, out).map(|()| done),
        Command::Plugin(command) => plugin::plugin(&command, out).map(|()| done),
        Command::Alert(command) => alert::alert(&command, out),
        Command::Audit(args) => audit::audit(&args, out).map(|()| done),
        Command::Cluster(args) => cluster::cluster(&args, out).map(|()| done),
        Command::Ready(args) => ready::ready(&args, out).map(|()| done),
        Command::Copy(args) => copy::run(&args, out).map(|()| done),
        Command::Why(args) => why::why(&args, out).map(|()| done),
        Command::Open(args) => open::open(&args, out).map(|()| done),
        Command::Mcp(args) => Ok(mcp::mcp(&args)),
        Command::Completions(args) => shell::completions(&args, out).map(|()| done),
        Command::Man(args) => shell::man(&args, Cli::command(), out).map(|()| done),
        Command::Next(args) => schedule::next(&args, out).map(|()| done),
        Command::Explain(args) => schedule::explain(&args, out).map(|()| done),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        Cli::command().debug_assert();
    }
}
