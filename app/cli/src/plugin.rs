//! `carillon plugin`: the executors of a server, and what a plugin file says of itself before anybody trusts it.

use std::path::PathBuf;

use carillon_executors::dylib::{Host, inspect};
use clap::{Args, Subcommand};
use serde_json::json;

use super::args::ServerArgs;
use super::client::{Call, Client};
use super::failure::CommandFailure;
use super::out::Out;
use super::table::{Table, cell};

/// The commands on plugins.
#[derive(Debug, Subcommand)]
pub enum PluginCommand {
    /// List the executors that a server can run
    List(ListArgs),
    /// Check a plugin file as a server would, and show what it says of itself; needs no server
    Inspect(InspectArgs),
}

/// Arguments of `plugin list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `plugin inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The dynamic library
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Answer in JSON
    #[arg(long)]
    pub json: bool,
}

/// `carillon plugin`
pub fn plugin(command: &PluginCommand, out: &mut Out) -> Result<(), CommandFailure> {
    match command {
        PluginCommand::List(args) => list(args, out),
        PluginCommand::Inspect(args) => inspected(args, out),
    }
}

fn list(args: &ListArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let executors = Client::new(&args.server)?.call(Call::get("/v1/executors"))?.take_items();
    if args.server.json {
        return executors.iter().try_for_each(|executor| out.json(executor));
    }
    let mut table = Table::new(["EXECUTOR", "VERSION", "ABI", "ISOLATION", "PROCESS", "TROUBLE"]);
    for executor in &executors {
        table.row(["name", "version", "abi", "isolation", "host", "trouble"].map(|field| cell(&executor[field])));
    }
    out.bytes(table.text().as_bytes())
}

/// The library's code runs in a host process, as its constructors would run here otherwise.
fn inspected(args: &InspectArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let plugin = inspect(&args.file, &Host::new("/proc/self/exe"))
        .map_err(|refused| CommandFailure::failed(refused.to_string()))?;
    let described = plugin.description();
    if args.json {
        return out.json(&json!({
            "name": described.name,
            "version": described.version,
            "abi": described.abi_version,
            "params_schema": described.params_schema,
        }));
    }
    let mut table = Table::new(["FIELD", "VALUE"]);
    table.row(["name", &described.name]);
    table.row(["version", &described.version]);
    table.row(["abi", &described.abi_version.to_string()]);
    table.row(["params schema", &described.params_schema.to_string()]);
    out.bytes(table.text().as_bytes())
}
