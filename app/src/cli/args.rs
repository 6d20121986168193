//! What may be written after `carillon` (SPEC section 5), and what every part of it must look like.
//!
//! Whatever can be judged without a server is judged here, so that clap names the argument and answers exit code 2.

use std::path::PathBuf;

use carillon_domain::time::Timestamp;
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::schedule::{ExplainArgs, NextArgs};

/// A distributed crontab server: identical nodes share one database and nothing else.
#[derive(Debug, Parser)]
#[command(name = "carillon", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 bad usage, 3 not found, 4 conflict, 70 fenced.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a node: schedule, execute and answer the HTTP API
    Serve(ServeArgs),
    /// Create or migrate the database schema; `serve` does it too
    Init(InitArgs),
    /// Print the next due times of a schedule; needs no server
    Next(NextArgs),
    /// Say in words when a schedule is due; needs no server
    Explain(ExplainArgs),
}

/// Arguments of `serve`; each one overrides `carillon.toml` and the environment.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// The configuration [default: carillon.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The database: sqlite://FILE or mysql://USER:PASSWORD@HOST:PORT/NAME
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Where the HTTP API listens [default: 127.0.0.1:7650]
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<String>,
    /// The node's name [default: the host's name]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// How the log is written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Arguments of `init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// The configuration [default: carillon.toml, where there is one]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The database: sqlite://FILE or mysql://USER:PASSWORD@HOST:PORT/NAME
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
}

/// An RFC 3339 time.
pub fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse_rfc3339(text)
        .ok_or_else(|| "it is not an RFC 3339 time of the years 1970 to 9999, such as 2027-01-01T00:00:00Z".to_owned())
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
