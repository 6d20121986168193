//! Jobs: as clients write them, and as they read them.

use carillon_domain::alert::PingKind;
use carillon_domain::job::{MisfirePolicy, OnLost, Overlap};
use serde_json::{Map, Value, json};

use super::{STATES, array, count, described, duration, name, object, or_null, page, params, reference, text, time};
use crate::ADDED_BY_READING;

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let until = or_null(time());
    let reason = or_null(json!({"type": "string", "maxLength": 1000, "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"}));
    let result = object(
        &[
            ("namespace", text()),
            ("name", text()),
            ("status", json!({"enum": ["created", "updated", "unchanged", "error"]})),
            ("errors", array(&reference("Fault"))),
        ],
        &[("generation", count()), ("outcome", json!({"enum": ["not_applied", "unknown"]}))],
    );
    // A faulty item has a result of its own, so the body as a whole may hold anything.
    let items = json!({"type": "array", "items": {"anyOf": [reference("JobDefinition"), {}]}});
    vec![
        ("JobDefinition", definition()),
        ("Job", job()),
        ("JobPage", page("Job")),
        ("Batch", object(&[("items", items)], &[])),
        ("BatchResult", object(&[("items", array(&result))], &[])),
        ("PauseRequest", object(&[], &[("until", until), ("reason", reason)])),
        ("RunRequest", object(&[], &[("params", or_null(params()))])),
        ("JobPlan", plan()),
        ("FieldChange", field_change()),
        ("DueTimes", object(&[("next", array(&time()))], &[])),
    ]
}

/// The changes that a put would make.
fn plan() -> Value {
    let state = || json!({"type": ["object", "null"]});
    let plan = object(
        &[
            ("change", json!({"enum": ["created", "updated", "unchanged"]})),
            ("generation", described(or_null(count()), "Of the stored job: to be put with `If-Match`.")),
            ("before", described(state(), "The stored definition, without values of secrets.")),
            ("after", described(json!({"type": "object"}), "The definition as it would be.")),
            (
                "changes",
                described(array(&reference("FieldChange")), "The fields that differ; none where the job is new."),
            ),
            ("next_before", or_null(array(&time()))),
            ("next", array(&time())),
        ],
        &[],
    );
    described(
        plan,
        "The changes that a put would make. A secret of which only the value changes makes it `updated` without a field.",
    )
}

/// A field that differs between two states.
fn field_change() -> Value {
    let any = || json!({"description": "Any JSON; `null` where it is not set."});
    object(&[("field", text()), ("before", any()), ("after", any())], &[])
}

fn labels() -> Value {
    json!({"type": "object", "propertyNames": name(), "additionalProperties": {"type": "string", "maxLength": 256}})
}

fn names<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Value {
    json!({"enum": all.iter().map(|value| name(*value)).collect::<Vec<_>>()})
}

/// How soon each due time should have started and succeeded.
fn expect() -> Value {
    let time_of_day = json!({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$"});
    let fields = [
        ("start_within", duration()),
        ("finish_within", duration()),
        ("finish_by", described(time_of_day, "A time of day in the job's zone, such as 06:00.")),
    ];
    let expect = object(&[], &fields);
    described(expect, "How soon each due time should have started and succeeded, from the due time on: 1s to 7d.")
}

/// The monitor that is called at the start and the end of runs.
fn ping() -> Value {
    let url = json!({"type": "string", "maxLength": 4096, "pattern": r#"^https?://[!-"$-.0->A-~][!-~]*$"#});
    let each = PingKind::ALL.map(|kind| (kind.as_str(), or_null(url.clone())));
    let ping = json!({"anyOf": [url, object(&[], &each)]});
    described(ping, "A URL stands for all: itself, and /start and /fail below it.")
}

/// The fields of a definition with a schema for each, in the order of the manual.
fn fields() -> Vec<(&'static str, Value)> {
    let misfire = object(&[], &[("policy", names(&MisfirePolicy::ALL, MisfirePolicy::as_str)), ("grace", duration())]);
    let attempts = json!({"type": "integer", "minimum": 1, "maximum": 100});
    let retry = object(&[], &[("max_attempts", attempts), ("backoff", duration()), ("max_backoff", duration())]);
    let dst =
        object(&[], &[("gap", json!({"enum": ["after", "skip"]})), ("overlap", json!({"enum": ["first", "both"]}))]);
    vec![
        ("namespace", name()),
        ("name", name()),
        ("schedule", described(text(), "A cron expression, `@every`, `@at` or a descriptor such as `@daily`.")),
        ("timezone", described(or_null(text()), "A zone of the IANA database; UTC if it is null.")),
        ("executor", described(text(), "`shell` for commands, or a plugin.")),
        ("params", params()),
        ("overlap", described(names(&Overlap::ALL, Overlap::as_str), "For a firing that comes due while a run lives.")),
        ("misfire", described(misfire, "For due times that no node started within the grace.")),
        ("timeout", described(or_null(duration()), "How long a run may take; any time if it is null.")),
        ("kill_grace", described(duration(), "From SIGTERM to SIGKILL.")),
        ("retry", described(retry, "Attempts of a firing whose run failed.")),
        ("on_lost", described(names(&OnLost::ALL, OnLost::as_str), "For a run whose node died.")),
        ("jitter", described(duration(), "Each due time is later by a part of this, always the same.")),
        ("dst", described(dst, "At changes of the clock.")),
        ("start_at", described(or_null(time()), "Not due before.")),
        ("end_at", described(or_null(time()), "Not due after.")),
        ("labels", labels()),
        ("expect", expect()),
        ("ping", ping()),
        ("paused", json!({"type": "boolean"})),
    ]
}

/// As clients write it: `null` counts as absent, and what reading adds is ignored.
fn definition() -> Value {
    let needed = |name: &str| ["schedule", "params"].contains(&name);
    let (required, optional): (Vec<_>, Vec<_>) = fields().into_iter().partition(|(name, _)| needed(name));
    let mut optional: Vec<(&str, Value)> =
        optional.into_iter().map(|(name, schema)| (name, inner_nulls(schema))).collect();
    optional.extend(ADDED_BY_READING.map(|name| (name, described(json!({}), "Added by reading; ignored."))));
    described(object(&required, &optional), "A job. The name may stand in the path instead.")
}

/// The same schema, in which the value and each of its fields may be `null`.
fn inner_nulls(mut schema: Value) -> Value {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut).map(std::mem::take);
    if let Some(fields) = fields {
        let fields: Map<String, Value> = fields.into_iter().map(|(name, field)| (name, or_null(field))).collect();
        schema["properties"] = Value::Object(fields);
    }
    or_null(schema)
}

/// As clients read it.
fn job() -> Value {
    let pause = object(&[("since", time()), ("until", or_null(time())), ("reason", or_null(text()))], &[]);
    let mut always: Vec<(&str, Value)> = fields();
    for (field, schema) in &mut always {
        if ["misfire", "retry", "dst"].contains(field) {
            let inner: Vec<String> =
                schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
            schema["required"] = json!(inner);
        }
        if *field == "params" {
            *schema = or_null(params());
        }
        if ["expect", "ping"].contains(field) {
            *schema = or_null(schema.clone());
        }
    }
    always.extend([
        ("pause", or_null(pause)),
        ("state", json!({"enum": STATES})),
        ("next_due_at", or_null(time())),
        ("previous_due_at", or_null(time())),
        ("last_run", or_null(reference("Run"))),
        ("current_run", or_null(reference("Run"))),
        ("node", or_null(text())),
        ("generation", count()),
        ("created_at", time()),
        ("updated_at", time()),
    ]);
    described(object(&always, &[]), "A job and how it stands. It may be put back as it was read.")
}
