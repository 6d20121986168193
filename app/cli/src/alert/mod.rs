//! `carillon alert …`: who is told of what, what was sent, and what is open.

mod shown;
mod test;

use std::process::ExitCode;

use carillon_domain::alert::DeliveryState;
use carillon_domain::name::check_route_name;
use clap::{Args, Subcommand};

use self::test::TestArgs;
use super::args::{ServerArgs, namespaces};
use super::client::{Call, Client};
use super::document;
use super::failure::CommandFailure;
use super::out::{Out, note};

/// The commands on alerts.
#[derive(Debug, Subcommand)]
pub enum AlertCommand {
    /// List the routes: who is told of what
    List {
        /// Which server.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Show a route without its secrets
    Show(RouteArgs),
    /// Create or replace a route from a file of JSON, YAML or TOML
    Put(PutArgs),
    /// Delete a route; what it has not sent is dropped
    Delete(RouteArgs),
    /// Send a message to every target of a route, and tell what became of it
    Test(TestArgs),
    /// List messages with the answers to them, newest first
    Deliveries(DeliveriesArgs),
    /// Send a message again that was sent or given up
    Resend {
        /// The delivery
        id: u64,
        /// Which server.
        #[command(flatten)]
        server: ServerArgs,
    },
    /// List open troubles that a route is told of
    Incidents(IncidentsArgs),
}

/// A route of a server.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// The route
    #[arg(value_parser = route_name)]
    pub name: String,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `alert put`.
#[derive(Debug, Args)]
#[command(
    after_help = "A route, such as {\"name\": \"ops\", \"when\": [\"failed\", \"recovered\"], \"to\": [{\"type\": \
                        \"mail\", \"to\": [\"ops@example.org\"]}]}. A file that `alert show --json` wrote is put back \
                        unless somebody else was faster."
)]
pub struct PutArgs {
    /// The file (JSON, YAML or TOML by its ending), `-` for stdin
    pub file: String,
    /// Its name, where the file has none
    #[arg(long, value_name = "NAME", value_parser = route_name)]
    pub name: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `alert deliveries`.
#[derive(Debug, Args)]
pub struct DeliveriesArgs {
    /// Only of this route
    #[arg(long, value_name = "NAME", value_parser = route_name)]
    pub route: Option<String>,
    /// Only those in this state
    #[arg(long, value_name = "STATE", value_parser = DeliveryState::NAMES)]
    pub state: Option<String>,
    /// How many at the most
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Arguments of `alert incidents`.
#[derive(Debug, Args)]
pub struct IncidentsArgs {
    /// Only of this route
    #[arg(long, value_name = "NAME", value_parser = route_name)]
    pub route: Option<String>,
    /// The namespace of the jobs [default: all that the token may see]
    #[arg(long, short, value_name = "NS", value_parser = namespaces)]
    pub namespace: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `carillon alert`
pub fn alert(command: &AlertCommand, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let done = ExitCode::SUCCESS;
    match command {
        AlertCommand::List { server } => list(server, out).map(|()| done),
        AlertCommand::Show(args) => show(args, out).map(|()| done),
        AlertCommand::Put(args) => put(args, out).map(|()| done),
        AlertCommand::Delete(args) => delete(args, out).map(|()| done),
        AlertCommand::Test(args) => test::test(args, out),
        AlertCommand::Deliveries(args) => deliveries(args, out).map(|()| done),
        AlertCommand::Resend { id, server } => resend(*id, server, out).map(|()| done),
        AlertCommand::Incidents(args) => incidents(args, out).map(|()| done),
    }
}

fn list(server: &ServerArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let items = Client::new(server)?.call(Call::get("/v1/alerts"))?.take_items();
    if server.json {
        return items.iter().try_for_each(|item| out.json(item));
    }
    if items.is_empty() {
        note("nobody is told of anything; make a route with `carillon alert put FILE`");
        return Ok(());
    }
    out.bytes(shown::routes(&items).as_bytes())
}

fn show(args: &RouteArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let route = Client::new(&args.server)?.call(Call::get(path(&args.name)))?.body;
    if args.server.json { out.json(&route) } else { out.bytes(shown::route(&route).as_bytes()) }
}

fn put(args: &PutArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let route = document::read(&args.file, "a route")?;
    let name = args.name.clone().or(route["name"].as_str().map(str::to_owned));
    let name =
        name.ok_or_else(|| CommandFailure::usage("the route has no name: give --name, or name it in the file"))?;
    route_name(&name).map_err(CommandFailure::usage)?;
    let (path, version) = (path(&name), route["version"].clone());
    let mut call = Call::put(path).body(route);
    if version.is_u64() {
        call = call.if_match(&version);
    }
    let saved = Client::new(&args.server)?.call(call)?.body;
    match args.server.json {
        true => out.json(&saved),
        false => {
            out.line(&format!("{name} is stored as version {}; try it: carillon alert test {name}", saved["version"]))
        }
    }
}

fn delete(args: &RouteArgs, out: &mut Out) -> Result<(), CommandFailure> {
    Client::new(&args.server)?.call(Call::delete(path(&args.name)))?;
    match args.server.json {
        true => out.json(&serde_json::json!({"name": args.name, "deleted": true})),
        false => out.line(&format!("{} is deleted", args.name)),
    }
}

fn deliveries(args: &DeliveriesArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call =
        Call::get("/v1/deliveries").with_some("route", args.route.as_ref()).with_some("state", args.state.as_ref());
    let client = Client::new(&args.server)?;
    if args.server.json {
        return client.each(&call, Some(args.limit), |delivery| out.json(&delivery));
    }
    let items = client.all(&call, Some(args.limit))?;
    if items.is_empty() {
        note("no message fits");
        return Ok(());
    }
    out.bytes(shown::deliveries(&items).as_bytes())
}

fn resend(id: u64, server: &ServerArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let delivery = Client::new(server)?.call(Call::post(format!("/v1/deliveries/{id}/resend")))?.body;
    match server.json {
        true => out.json(&delivery),
        false => out.line(&format!("{id} is sent again; look at it with `carillon alert deliveries`")),
    }
}

fn incidents(args: &IncidentsArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let call = Call::get("/v1/incidents")
        .with_some("route", args.route.as_ref())
        .with_some("namespace", args.namespace.as_ref());
    let items = Client::new(&args.server)?.call(call)?.take_items();
    if args.server.json {
        return items.iter().try_for_each(|item| out.json(item));
    }
    if items.is_empty() {
        note("nothing is open");
        return Ok(());
    }
    out.bytes(shown::incidents(&items).as_bytes())
}

fn path(name: &str) -> String {
    format!("/v1/alerts/{name}")
}

/// The name of a route.
fn route_name(text: &str) -> Result<String, String> {
    check_route_name(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}
