//! `carillon cluster`: the live sessions and what they hold.

use super::args::ClusterArgs;
use super::client::{Call, Client};
use super::failure::Failure;
use super::out::Out;
use super::table::{Table, cell as text};

/// `carillon cluster`
pub fn cluster(args: &ClusterArgs, out: &mut Out) -> Result<(), Failure> {
    let sessions = Client::new(&args.server)?.call(Call::get("/v1/cluster"))?.take_items();
    if args.server.json {
        return sessions.iter().try_for_each(|session| out.json(session));
    }
    let mut table = Table::new([
        "SESSION",
        "NODE",
        "STATE",
        "PARTITIONS",
        "PREPARED",
        "EXECUTING",
        "HEARTBEAT",
        "STARTED",
        "ADDRESS",
        "VERSION",
    ]);
    for session in &sessions {
        let partitions = session["partitions"].as_array();
        table.row([
            text(&session["id"]),
            text(&session["node"]),
            text(&session["state"]),
            partitions.map(|partitions| partitions.len().to_string()).unwrap_or_default(),
            text(&session["prepared"]),
            text(&session["executing"]),
            text(&session["heartbeat_at"]),
            text(&session["started_at"]),
            text(&session["address"]),
            text(&session["version"]),
        ]);
    }
    out.bytes(table.text().as_bytes())
}
