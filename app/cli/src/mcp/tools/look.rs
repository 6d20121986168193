//! Tools that look at jobs, schedules and the cluster, and change nothing.

use carillon_domain::schedule::Dst;
use serde_json::{Value, json};

use super::parts::{FEW, MANY, cursor, job_name, limit, namespace, namespaces, picked};
use crate::client::Call;
use crate::failure::CommandFailure;
use crate::mcp::arguments::Arguments;
use crate::mcp::schema::{number, object, of_api, or_null, text, time};
use crate::mcp::surroundings::Surroundings;
use crate::schedule::{Question, explained, now};
use carillon_json::MOST_DUE_TIMES;
use carillon_json::schema::STATES;

type Answer = Result<Value, CommandFailure>;

/// The fields of a job in a listing. A whole job takes a model's attention from the others.
const IN_SHORT: [&str; 8] = ["namespace", "name", "schedule", "timezone", "paused", "state", "next_due_at", "labels"];

pub fn nothing() -> Value {
    object(&[], 0)
}

pub fn listing() -> Value {
    let fields = [
        ("namespace", namespaces()),
        ("prefix", text("Names that begin so.")),
        ("label", text("KEY or KEY=VALUE.")),
        ("state", json!({"enum": STATES, "description": "How the jobs stand."})),
        ("paused", json!({"type": "boolean", "description": "Paused jobs, or the others."})),
        ("limit", limit()),
        ("cursor", cursor()),
    ];
    object(&fields, 0)
}

pub fn job_page() -> Value {
    let of_job = of_api("Job");
    let mut fields: Vec<(&str, Value)> = IN_SHORT.map(|name| (name, of_job["properties"][name].clone())).into();
    fields.push((
        "last_run",
        json!({"anyOf": [{"type": "null"}, {"type": "object", "properties": {
        "id": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": ["string", "null"]},
        "finished_at": {"type": ["string", "null"]}}}]}),
    ));
    let job = object(&fields, fields.len());
    object(&[("items", json!({"type": "array", "items": job})), ("next_cursor", or_null(json!({"type": "string"})))], 2)
}

pub fn list_jobs(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let namespace = asked.namespaces();
    let (prefix, label) = (asked.text("prefix"), asked.text("label"));
    let state = asked.choice("state", &STATES);
    let paused = asked.flag("paused");
    let (limit, cursor) = (asked.number("limit", 1, MANY).unwrap_or(FEW), asked.text("cursor"));
    asked.finish()?;
    let call = Call::get("/v1/jobs")
        .with("namespace", namespace)
        .with_some("prefix", prefix)
        .with_some("label", label)
        .with_some("state", state)
        .with_some("paused", paused)
        .with("limit", limit.to_string())
        .with_some("cursor", cursor);
    let mut reply = surroundings.client.call(call)?;
    let in_short = |job: Value| {
        let mut short = picked(&job, &IN_SHORT);
        let last = &job["last_run"];
        short["last_run"] = match last.is_object() {
            true => picked(last, &["id", "status", "reason", "finished_at"]),
            false => Value::Null,
        };
        short
    };
    let items: Vec<Value> = reply.take_items().into_iter().map(in_short).collect();
    Ok(json!({"items": items, "next_cursor": reply.body["next_cursor"]}))
}

pub fn one_job() -> Value {
    object(&[("name", job_name()), ("namespace", namespace())], 1)
}

pub fn job() -> Value {
    of_api("Job")
}

pub fn show_job(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let job = asked.job();
    asked.finish()?;
    Ok(surroundings.client.call(Call::get(job.path("")).with("namespace", job.namespace))?.body)
}

pub fn schedule_question() -> Value {
    let fields = [
        ("schedule", text("Such as \"*/15 9-17 * * MON-FRI\", @daily, @every 90s, @at 2027-01-01T00:00:00Z.")),
        ("timezone", text("A zone of the IANA database, such as Europe/Berlin; UTC if it is not given.")),
        ("count", number(1, MOST_DUE_TIMES, 5, "How many due times.")),
        ("after", time("Only due times later than this; now if it is not given.")),
        ("name", text("NAMESPACE/NAME of the job, which the letter H in a schedule hashes.")),
    ];
    object(&fields, 1)
}

pub fn schedule_answer() -> Value {
    let fields = [
        ("schedule", json!({"type": "string"})),
        ("timezone", json!({"type": "string"})),
        ("after", json!({"type": "string"})),
        ("description", json!({"type": "string"})),
        ("next", json!({"type": "array", "items": {"type": "string", "format": "date-time"}})),
    ];
    object(&fields, fields.len())
}

pub fn explain_schedule(_: &Surroundings, mut asked: Arguments) -> Answer {
    let question = Question {
        schedule: asked.required_text("schedule"),
        timezone: asked.text("timezone"),
        after: asked.time("after").unwrap_or_else(now),
        count: asked.number("count", 1, MOST_DUE_TIMES).unwrap_or(5).into(),
        key: asked.text("name").unwrap_or_default(),
        dst: Dst::default(),
    };
    asked.finish()?;
    explained(&question)
}

pub fn next_question() -> Value {
    let count = number(1, MOST_DUE_TIMES, 10, "How many due times.");
    object(&[("name", job_name()), ("namespace", namespace()), ("count", count)], 1)
}

pub fn due_times() -> Value {
    of_api("DueTimes")
}

pub fn next_due_times(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let job = asked.job();
    let count = asked.number("count", 1, MOST_DUE_TIMES).unwrap_or(10);
    asked.finish()?;
    let call = Call::get(job.path("/next")).with("namespace", job.namespace).with("count", count.to_string());
    Ok(surroundings.client.call(call)?.body)
}

pub fn why_question() -> Value {
    let at = time("The due time; the latest that has passed if it is not given.");
    object(&[("name", job_name()), ("namespace", namespace()), ("at", at)], 1)
}

pub fn explanation() -> Value {
    of_api("Explanation")
}

pub fn explain_due_time(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let job = asked.job();
    let at = asked.time("at");
    asked.finish()?;
    let call = Call::get(job.path("/why")).with("namespace", job.namespace).with_some("at", at);
    Ok(surroundings.client.call(call)?.body)
}

pub fn executors() -> Value {
    of_api("Executors")
}

pub fn list_executors(surroundings: &Surroundings, asked: Arguments) -> Answer {
    asked.finish()?;
    Ok(surroundings.client.call(Call::get("/v1/executors"))?.body)
}

pub fn cluster() -> Value {
    of_api("Cluster")
}

pub fn show_cluster(surroundings: &Surroundings, asked: Arguments) -> Answer {
    asked.finish()?;
    Ok(surroundings.client.call(Call::get("/v1/cluster"))?.body)
}
