//! `carillon cluster`: the live sessions and what they hold, and the times in which the database lost commits.

use serde_json::{Value, json};

use crate::args::{ClusterArgs, ClusterCommand, ServerArgs};
use crate::client::{Call, Client};
use crate::failure::CommandFailure;
use crate::out::Out;
use crate::table::{Table, cell as text};

/// `carillon cluster` and what may follow it.
pub fn cluster(args: &ClusterArgs, out: &mut Out) -> Result<(), CommandFailure> {
    match &args.command {
        None => args.watch.draw(out, |out| show(&args.server, out)),
        Some(ClusterCommand::Accept { server }) => accept(server, out),
    }
}

fn show(server: &ServerArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let mut reply = Client::new(server)?.call(Call::get("/v1/cluster"))?;
    let (sessions, windows) = (reply.take_items(), windows_of(&reply.body));
    if server.json {
        sessions.iter().try_for_each(|session| out.json(session))?;
        windows.iter().try_for_each(|window| out.json(&json!({"loss_window": window})))?;
        let unknown = &reply.body["still_unknown"];
        return if unknown.is_object() { out.json(&json!({"still_unknown": unknown})) } else { Ok(()) };
    }
    out.bytes(sessions_table(&sessions).as_bytes())?;
    let database = &reply.body["database"];
    if let [Some(identity), Some(topology), Some(why)] =
        ["identity", "topology", "why"].map(|key| database[key].as_str())
    {
        out.bytes(format!("\nThe node that answers writes through {identity} ({topology}): {why}.\n").as_bytes())?;
    }
    let timing = &reply.body["timing"];
    if let [Some(lease), Some(expire), Some(source)] =
        ["self_kill_after", "expire_after", "source"].map(|key| timing[key].as_str())
    {
        let says = format!(
            "It ends itself {lease} after its last heartbeat and takes over from others after {expire}: {source}.\n"
        );
        out.bytes(says.as_bytes())?;
    }
    for misfit in reply.body["timing_misfits"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.bytes(format!("Beware: {misfit}.\n").as_bytes())?;
    }
    if let Some(trouble) = database["trouble"].as_str() {
        out.bytes(format!("Beware: {trouble}.\n").as_bytes())?;
    }
    if windows.is_empty() {
        return Ok(());
    }
    out.bytes(b"\nThe database went back in time; what was committed in between may be lost:\n")?;
    out.bytes(windows_table(&windows).as_bytes())?;
    if windows.iter().any(|window| window["accepted_at"].is_null()) {
        out.bytes(
            b"Nothing is claimed or started until somebody has looked at it and runs `carillon cluster accept`.\n",
        )?;
    }
    still_unknown(&reply.body["still_unknown"], out)
}

/// The nodes that have to write back, and the jobs that an open loss leaves unknown.
fn still_unknown(unknown: &Value, out: &mut Out) -> Result<(), CommandFailure> {
    if let Some(why) = unknown["why"].as_str() {
        out.bytes(format!("It cannot be accepted yet: {why}.\n").as_bytes())?;
    }
    let Some(jobs) = unknown["jobs"].as_array().filter(|jobs| !jobs.is_empty()) else { return Ok(()) };
    out.bytes(b"\nNobody knows whether these firings ran. With on_lost = skip they are recorded as lost, with rerun they run:\n")?;
    let mut table = Table::new(["NAMESPACE", "JOB", "DUE", "ON_LOST"]);
    for job in jobs {
        table.row(["namespace", "name", "due_at", "on_lost"].map(|cell| text(&job[cell])));
    }
    out.bytes(table.text().as_bytes())?;
    if unknown["more_jobs"].as_bool() == Some(true) {
        out.bytes(b"More jobs are not shown.\n")?;
    }
    Ok(())
}

/// `carillon cluster accept`
fn accept(server: &ServerArgs, out: &mut Out) -> Result<(), CommandFailure> {
    let reply = Client::new(server)?.call(Call::post("/v1/cluster/accept"))?;
    let windows = windows_of(&reply.body);
    if server.json {
        return windows.iter().try_for_each(|window| out.json(window));
    }
    if windows.is_empty() {
        return out.bytes(b"There was nothing to accept.\n");
    }
    out.bytes(b"Accepted; claims and starts go on within one heartbeat:\n")?;
    out.bytes(windows_table(&windows).as_bytes())
}

fn windows_of(body: &Value) -> Vec<Value> {
    body["lost_commits"].as_array().cloned().unwrap_or_default()
}

fn sessions_table(sessions: &[Value]) -> String {
    let mut table = Table::new([
        "SESSION",
        "NODE",
        "STATE",
        "PARTITIONS",
        "PREPARED",
        "EXECUTING",
        "HEARTBEAT",
        "STARTED",
        "SERVER",
        "ADDRESS",
        "VERSION",
    ]);
    for session in sessions {
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
            text(&session["server"]),
            text(&session["address"]),
            text(&session["version"]),
        ]);
    }
    table.text()
}

fn windows_table(windows: &[Value]) -> String {
    let mut table = Table::new(["FROM", "UNTIL", "NOTICED", "NODE", "SESSION", "ACCEPTED"]);
    for window in windows {
        let cells = ["from_at", "until_at", "noticed_at", "node", "session", "accepted_at"];
        table.row(cells.map(|cell| text(&window[cell])));
    }
    table.text()
}
