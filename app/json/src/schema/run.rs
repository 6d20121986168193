//! Runs, and the explanation of a due time.

use carillon_domain::explain::DueState;
use carillon_domain::run::Trigger;
use serde_json::{Value, json};

use super::{RUN_ID, STATUSES, count, described, object, or_null, page, params, reference, text, time};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let whole = [
        ("output", or_null(text())),
        ("output_truncated", json!({"type": "boolean"})),
        ("params", described(or_null(params()), "The params that were given for this run alone, without secrets.")),
    ];
    let asked = object(&[("id", id())], &[]);
    vec![
        ("Run", described(run(&[]), "A run, wherever it stands; a range of due times that did not run.")),
        ("RunDetails", described(run(&whole), "A run with its output.")),
        ("RunPage", page("Run")),
        ("RunAsked", described(asked, "The id under which the run will be found.")),
        ("Explanation", explanation()),
    ]
}

fn id() -> Value {
    json!({"type": "string", "pattern": RUN_ID})
}

fn run(more: &[(&str, Value)]) -> Value {
    let statuses: Vec<&str> = STATUSES.into_iter().chain(["waiting"]).collect();
    let mut always = vec![
        ("id", id()),
        ("namespace", text()),
        ("job", text()),
        ("due_at", time()),
        ("attempt", json!({"type": "integer", "minimum": 1})),
        ("trigger", json!({"enum": Trigger::ALL.map(Trigger::as_str)})),
        ("status", json!({"enum": statuses})),
        ("reason", or_null(text())),
        ("exit_code", or_null(json!({"type": "integer"}))),
        ("signal", or_null(json!({"type": "integer"}))),
        ("claimed_at", described(or_null(time()), "When its node claimed it: known of runs that ended.")),
        ("started_at", or_null(time())),
        ("finished_at", or_null(time())),
        ("lag_ms", or_null(json!({"type": "integer"}))),
        ("cpu_ms", described(or_null(count()), "The CPU time, user and system, of a command that ended.")),
        ("peak_memory_bytes", described(or_null(count()), "The peak of resident memory of its largest process.")),
        ("node", or_null(text())),
        ("session", or_null(text())),
        ("fencing_token", or_null(count())),
    ];
    always.extend(more.iter().cloned());
    let sometimes = [
        ("cancelling", json!({"type": "boolean"})),
        ("output_truncated", json!({"type": "boolean"})),
        ("count", json!({"type": "integer", "minimum": 1})),
        ("first_due_at", time()),
        ("last_due_at", time()),
    ];
    object(&always, &sometimes)
}

fn explanation() -> Value {
    let states = json!({"enum": DueState::ALL.map(DueState::as_str)});
    let why = object(
        &[
            ("due_at", time()),
            ("state", states),
            ("sentence", json!({"type": "string", "minLength": 1})),
            ("run", or_null(reference("Run"))),
            ("next_due_at", or_null(time())),
        ],
        &[],
    );
    described(why, "Why a due time ran, did not, or has not yet.")
}
