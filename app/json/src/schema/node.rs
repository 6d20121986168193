//! Sessions, lost commits, executors, schedules, and how a node stands.

use carillon_store::SessionState;
use serde_json::{Value, json};

use super::{array, count, name, object, or_null, reference, text, time};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let partitions = or_null(array(&count()));
    let session = object(
        &[
            ("id", text()),
            ("node", text()),
            ("address", text()),
            ("version", text()),
            ("started_at", time()),
            ("heartbeat_at", time()),
            ("server", or_null(text())),
            ("dead_after", or_null(text())),
            ("expire_after", or_null(text())),
            ("partitions", partitions),
            ("prepared", count()),
            ("executing", count()),
            ("state", json!({"enum": SessionState::ALL.map(SessionState::as_str)})),
        ],
        &[],
    );
    let loss = object(
        &[
            ("from_at", time()),
            ("until_at", time()),
            ("noticed_at", time()),
            ("node", or_null(text())),
            ("session", text()),
            ("accepted_at", or_null(time())),
        ],
        &[],
    );
    let losses = array(&reference("LossWindow"));
    vec![
        ("Session", session),
        ("LossWindow", loss),
        (
            "Cluster",
            object(
                &[
                    ("items", array(&reference("Session"))),
                    ("lost_commits", losses.clone()),
                    ("still_unknown", or_null(reference("StillUnknown"))),
                    ("database", or_null(reference("DatabaseServer"))),
                    ("timing", or_null(reference("Timing"))),
                    ("timing_misfits", array(&text())),
                ],
                &[],
            ),
        ),
        ("StillUnknown", still_unknown()),
        ("DatabaseServer", database_server()),
        ("Timing", timing()),
        ("LostCommits", object(&[("lost_commits", losses)], &[])),
        ("Executors", object(&[("items", array(&executor()))], &[])),
        ("ScheduleQuestion", question()),
        ("ScheduleAnswer", schedule()),
        ("AuditEntry", audit_entry()),
        ("AuditPage", super::page("AuditEntry")),
        ("SignInLink", object(&[("path", text()), ("expires_in", text())], &[])),
        (
            "Health",
            object(&[("status", json!({"enum": ["ok", "ready"]}))], &[("timing", or_null(reference("Timing")))]),
        ),
    ]
}

/// The nodes and jobs of which an open loss leaves something unknown.
fn still_unknown() -> Value {
    let job = object(&[("namespace", name()), ("name", name()), ("due_at", or_null(time())), ("on_lost", text())], &[]);
    let fields = [
        ("nodes", array(&text())),
        ("until", or_null(time())),
        ("why", or_null(text())),
        ("jobs", array(&job)),
        ("more_jobs", json!({"type": "boolean"})),
    ];
    object(&fields, &[])
}

/// The session timing of a node and its source.
fn timing() -> Value {
    object(&["heartbeat", "self_kill_after", "expire_after", "source"].map(|name| (name, text())), &[])
}

/// The server of a shared database that a node uses.
fn database_server() -> Value {
    let fields = [
        ("place", text()),
        ("identity", text()),
        ("topology", text()),
        ("why", text()),
        ("changes", count()),
        ("trouble", or_null(text())),
    ];
    object(&fields, &[])
}

fn audit_entry() -> Value {
    let state = || json!({"type": ["object", "null"]});
    object(
        &[
            ("id", count()),
            ("at", time()),
            ("who", text()),
            ("from", text()),
            ("action", text()),
            ("namespace", or_null(name())),
            ("job", or_null(name())),
            ("run", or_null(text())),
            ("before", state()),
            ("after", state()),
        ],
        &[],
    )
}

fn executor() -> Value {
    object(
        &[
            ("name", text()),
            ("version", text()),
            ("abi", or_null(count())),
            ("params_schema", json!({"type": ["object", "boolean", "null"]})),
        ],
        &[("file", text()), ("isolation", text()), ("host", or_null(text())), ("trouble", or_null(text()))],
    )
}

fn question() -> Value {
    let due_times = json!({"type": "integer", "minimum": 1, "maximum": 1000, "default": 10});
    let optional = [
        ("timezone", or_null(text())),
        ("count", or_null(due_times)),
        ("after", or_null(time())),
        ("namespace", or_null(name())),
        ("name", or_null(name())),
    ];
    object(&[("schedule", text())], &optional)
}

fn schedule() -> Value {
    object(&[("schedule", text()), ("timezone", text()), ("description", text()), ("next", array(&time()))], &[])
}
