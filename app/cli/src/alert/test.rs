//! `carillon alert test`: sends a message to each target, and waits for the answers.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;

use super::{route_name, shown};
use crate::args::ServerArgs;
use crate::client::{Call, Client};
use crate::failure::CommandFailure;
use crate::out::{Out, note};

/// How often the server is asked.
const EVERY: Duration = Duration::from_millis(250);

/// Arguments of `alert test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The route
    #[arg(value_parser = route_name)]
    pub name: String,
    /// How many seconds to wait for the answers; 0 to wait for none
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub wait: u64,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Exit code 1 if a target has not taken the message in time.
pub(super) fn test(args: &TestArgs, out: &mut Out) -> Result<ExitCode, CommandFailure> {
    let client = Client::new(&args.server)?;
    let mut items = client.call(Call::post(format!("/v1/alerts/{}/test", args.name)))?.take_items();
    let ids: BTreeSet<u64> = items.iter().filter_map(|item| item["id"].as_u64()).collect();
    let until = Instant::now() + Duration::from_secs(args.wait);
    while !items.iter().all(is_answered) && Instant::now() < until {
        std::thread::sleep(EVERY);
        let call = Call::get("/v1/deliveries").with("route", args.name.as_str()).with("limit", "1000");
        let found = client.call(call)?.take_items();
        items = found.into_iter().filter(|item| item["id"].as_u64().is_some_and(|id| ids.contains(&id))).collect();
        items.sort_by_key(|item| item["id"].as_u64());
    }
    match args.server.json {
        true => items.iter().try_for_each(|item| out.json(item))?,
        false => out.bytes(shown::deliveries(&items).as_bytes())?,
    }
    if args.wait == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let missing = items.iter().filter(|item| item["state"] != "sent").count();
    if missing > 0 {
        note(&format!("{missing} of {} targets have not taken the message; it is tried again", items.len()));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the first attempt is over.
fn is_answered(delivery: &Value) -> bool {
    matches!(delivery["state"].as_str(), Some("sent" | "dead")) || !delivery["answer"].is_null()
}
