//! `carillon open`: the page in the browser, signed in by a link that is good once.

use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use crate::args::ServerArgs;
use crate::client::{Call, Client};
use crate::failure::CommandFailure;
use crate::out::Out;

/// The programs that open a browser, in the order in which they are tried.
const OPENERS: [&str; 3] = ["xdg-open", "open", "wslview"];

/// Arguments of `open`.
#[derive(Debug, Args)]
pub struct OpenArgs {
    /// Print the link instead of opening it
    #[arg(long)]
    print: bool,
    /// Which server.
    #[command(flatten)]
    server: ServerArgs,
}

/// Asks for a link and opens it. Where no browser can be opened, the link is printed.
pub fn open(args: &OpenArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let client = Client::new(&args.server)?;
    let reply = client.call(Call::post("/v1/sign-in-links"))?;
    let path = reply.body["path"].as_str().unwrap_or_default();
    let link = client.address_of(path);
    if args.server.json {
        return out.json(&json!({"link": link, "expires_in": reply.body["expires_in"]}));
    }
    if args.print || !opened(&link) {
        return out.line(&link);
    }
    out.line("The page is open in the browser. Its link is good once, for a minute.")
}

/// Whether a program took the link.
fn opened(link: &str) -> bool {
    let open = |program: &&str| {
        let mut command = Command::new(program);
        command.arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    OPENERS.iter().any(open)
}
