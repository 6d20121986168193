//! `carillon doctor`: the findings, for people or as JSON.

use std::process::ExitCode;

use carillon_cli::failure::CommandFailure;
use carillon_cli::out::{Out, note};
use carillon_cli::table::printable;
use carillon_server::doctor::{Level, look};
use carillon_server::serve::args::NodeArgs;
use clap::Args;
use tokio::runtime::Builder;

/// Arguments of `doctor`: those of `serve` that say which configuration is looked at.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Which configuration.
    #[command(flatten)]
    pub node: NodeArgs,
    /// Answer in JSON, one finding a line
    #[arg(long)]
    pub json: bool,
}

/// Looks, and tells. Exit code 1 if there is an error; warnings leave it at 0.
pub fn doctor(args: &DoctorArgs, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let findings = super::runtime(Builder::new_current_thread())?.block_on(look(&args.node));
    for finding in &findings {
        match args.json {
            true => out.json(&finding.json())?,
            // Words of a plugin or of a database may be in it.
            false => finding.text().lines().try_for_each(|line| out.line(&printable(line)))?,
        }
    }
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if !args.json {
        out.flush()?;
        note(&format!("{} checked: {}, {}", findings.len(), counted(errors, "error"), counted(warnings, "warning")));
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Such as `1 error` or `2 errors`.
fn counted(count: usize, thing: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{ending}")
}
