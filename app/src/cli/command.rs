//! The commands of `carillon`.

use clap::{Parser, Subcommand};

use super::alert::AlertCommand;
use super::args::{ClusterArgs, DoctorArgs, InitArgs, ServeArgs};
use super::audit::AuditArgs;
use super::export::ExportArgs;
use super::import::ImportArgs;
use super::job::JobCommand;
use super::mcp::McpArgs;
use super::plugin::PluginCommand;
use super::run::RunCommand;
use super::schedule::{ExplainArgs, NextArgs};
use super::server::backup::{BackupArgs, RestoreArgs};
use super::server::copy::CopyArgs;
use super::server::open::OpenArgs;
use super::server::ready::ReadyArgs;
use super::shell::{CompletionsArgs, ManArgs};
use super::table::Colour;
use super::why::WhyArgs;

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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        Cli::command().debug_assert();
    }
}
