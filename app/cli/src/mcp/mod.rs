//! `carillon mcp`: a server of the Model Context Protocol on standard input and output, for agents.
//!
//! It is a client of the HTTP API like the other commands. So an agent may do what the token may do, and the audit log tells of it.
//! Nothing but the protocol goes to standard output; what a person should know goes to standard error.

mod arguments;
mod resources;
mod schema;
mod server;
mod surroundings;
mod tools;
mod waiting;

use std::process::ExitCode;

use clap::Args;
use rmcp::ServiceExt;
use rmcp::service::{QuitReason, ServerInitializeError};
use rmcp::transport::stdio_pipes;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use self::server::Bridge;
use super::args::PlaceArgs;
use super::client::Client;
use super::failure::CommandFailure;
use super::out::note;

/// The levels of messages on standard error, as the server's log takes them.
const LEVELS: &str = "CARILLON_LOG";

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// The server, and the namespace of jobs where a tool is not told another one.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// `carillon mcp`: answers until standard input ends.
pub fn mcp(args: &McpArgs) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            note(&format!("error: {failure}"));
            failure.exit_code()
        }
    }
}

fn serve(args: &McpArgs) -> Result<(), CommandFailure> {
    let client = Client::new(&args.place.server)?;
    log_to_standard_error();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandFailure::failed(format!("no runtime can be made: {error}")))?;
    let done = runtime.block_on(async {
        let bridge = Bridge::new(client, &args.place.namespace);
        let session = match bridge.serve(stdio_pipes()).await {
            Ok(session) => session,
            // The client has gone before it said anything, which is its right.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => {
                return Err(CommandFailure::failed(format!(
                    "the client does not begin as the Model Context Protocol has it: {error}; it must send initialize first"
                )));
            }
        };
        match session.waiting().await {
            Ok(QuitReason::JoinError(error)) | Err(error) => {
                Err(CommandFailure::failed(format!("the session broke off: {error}; start `carillon mcp` again")))
            }
            Ok(_) => Ok(()),
        }
    });
    // Nobody is there for the answers of calls that still wait for a run.
    runtime.shutdown_background();
    done
}

fn log_to_standard_error() {
    let levels = std::env::var(LEVELS).unwrap_or_default();
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::ERROR.into()).parse_lossy(levels);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
