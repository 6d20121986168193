//! `carillon ready`: whether a node schedules, as an exit code. It is the health check of a container, which has no curl.

use clap::Args;

use crate::args::ServerArgs;
use crate::client::{Call, Client};
use crate::failure::CommandFailure;
use crate::out::Out;

/// Arguments of `ready`.
#[derive(Debug, Args)]
pub struct ReadyArgs {
    /// Which server.
    #[command(flatten)]
    server: ServerArgs,
}

/// Asks the node once. A node that does not schedule says why, and that is the failure.
pub fn ready(args: &ReadyArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let reply = Client::new(&args.server)?.call(Call::get("/readyz"))?;
    if args.server.json { out.json(&reply.body) } else { out.line("ready") }
}
