//! Tools that change jobs. Those that write a definition make a dry run unless they are told otherwise.

use carillon_store::run_params::lay_over;
use serde_json::{Value, json};

use super::parts::{job_name, namespace, picked};
use crate::client::Call;
use crate::failure::CommandFailure;
use crate::job::definition_of;
use crate::mcp::arguments::{Arguments, JobPlace};
use crate::mcp::schema::{definition, flag, object, of_api, or_null, reference, text, time, told};
use crate::mcp::surroundings::Surroundings;

type Answer = Result<Value, CommandFailure>;

fn dry_run() -> Value {
    flag(true, "Whether to store nothing and tell what would change.")
}

fn version() -> Value {
    json!({"type": "integer", "minimum": 0, "description": "The version that the dry run answered; needed with dry_run = false."})
}

/// The answer of a write of a definition, whether it was done or only looked at.
pub fn outcome() -> Value {
    let fields = [
        ("applied", json!({"type": "boolean", "description": "Whether it is stored."})),
        ("sentence", text("What happened, and what to do next.")),
        (
            "version",
            told(or_null(json!({"type": "integer"})), "The version of the stored job; null where there is none."),
        ),
        ("plan", told(or_null(reference("JobPlan")), "What would change; null where it is done.")),
        ("job", told(json!({"type": ["object", "null"]}), "The job as it is stored, as show_job answers it.")),
    ];
    object(&fields, fields.len())
}

fn answered(applied: bool, sentence: &str, (plan, job): (Value, Value)) -> Value {
    let version = if job.is_null() { &plan["generation"] } else { &job["generation"] };
    json!({"applied": applied, "sentence": sentence, "version": version, "plan": plan, "job": job})
}

pub fn new_job() -> Value {
    let job = told(definition(&["name", "schedule", "params"]), "The definition of the job.");
    object(&[("job", job), ("dry_run", dry_run())], 1)
}

pub fn create_job(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let mut job = asked.object("job", true).unwrap_or_default();
    let dry_run = asked.flag("dry_run").unwrap_or(true);
    let name = job.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Err(error) = carillon_domain::name::check_job_name(&name) {
        asked.fault("job.name", &error.to_string());
    }
    asked.finish()?;
    job.entry("namespace").or_insert_with(|| json!(surroundings.namespace.as_ref()));
    let body = Value::Object(job);
    if !dry_run {
        let job = surroundings.client.call(Call::post("/v1/jobs").body(body))?.body;
        return Ok(answered(true, "The job is created.", (Value::Null, job)));
    }
    let plan = surroundings.client.call(Call::post(format!("/v1/jobs/{name}/plan")).if_none_match().body(body))?.body;
    let sentence = "Nothing is stored. To create it, call again with the same job and dry_run = false.";
    Ok(answered(false, sentence, (plan, Value::Null)))
}

pub fn changed_job() -> Value {
    let changes =
        "Fields to change, as a JSON merge patch: inner objects are merged, null takes a field back to its default.";
    let fields = [
        ("name", job_name()),
        ("changes", told(definition(&[]), changes)),
        ("namespace", namespace()),
        ("dry_run", dry_run()),
        ("version", version()),
    ];
    object(&fields, 2)
}

pub fn change_job(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let place = asked.job();
    let changes = asked.object("changes", true).unwrap_or_default();
    let (dry_run, version) = write(&mut asked);
    asked.finish()?;
    let client = &surroundings.client;
    let read = read(surroundings, &place)?;
    let version = version.map_or_else(|| read["generation"].clone(), |version| json!(version));
    let mut body = Value::Object(definition_of(read.clone())?);
    lay_over(&mut body, Value::Object(changes));
    let to = |below: &str| if dry_run { Call::post(place.path(below)) } else { Call::put(place.path("")) };
    let call = to("/plan").with("namespace", &place.namespace).if_match(&version).body(body);
    let answer = client.call(call)?.body;
    if !dry_run {
        return Ok(answered(true, "The job is changed.", (Value::Null, answer)));
    }
    let sentence = match answer["change"].as_str() {
        Some("unchanged") => "Nothing would change: the job is so already.".to_owned(),
        _ => format!(
            "Nothing is stored. To change it, call again with the same changes, dry_run = false and version = {version}."
        ),
    };
    Ok(answered(false, &sentence, (answer, read)))
}

pub fn deleted_job() -> Value {
    let fields = [("name", job_name()), ("namespace", namespace()), ("dry_run", dry_run()), ("version", version())];
    object(&fields, 1)
}

pub fn delete_job(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let place = asked.job();
    let (dry_run, version) = write(&mut asked);
    asked.finish()?;
    if dry_run {
        let job = read(surroundings, &place)?;
        let sentence = format!(
            "Nothing is deleted. To delete it, call again with dry_run = false and version = {}.",
            job["generation"]
        );
        return Ok(answered(false, &sentence, (Value::Null, job)));
    }
    let call = Call::delete(place.path("")).with("namespace", &place.namespace).if_match(&json!(version));
    surroundings.client.call(call)?;
    Ok(answered(true, "The job is deleted.", (Value::Null, Value::Null)))
}

pub fn pause_question() -> Value {
    let fields = [
        ("name", job_name()),
        ("namespace", namespace()),
        ("reason", text("Why, for those who find it paused.")),
        ("until", time("When the pause ends by itself.")),
    ];
    object(&fields, 1)
}

/// How a job stands after a pause or its end.
pub fn standing() -> Value {
    object(&[("version", json!({"type": "integer"}))].into_iter().chain(standing_fields()).collect::<Vec<_>>(), 7)
}

fn standing_fields() -> [(&'static str, Value); 6] {
    let of_job = of_api("Job");
    ["namespace", "name", "paused", "pause", "state", "next_due_at"]
        .map(|name| (name, of_job["properties"][name].clone()))
}

fn stands(job: &Value) -> Value {
    let mut standing = picked(job, &standing_fields().map(|(name, _)| name));
    standing["version"] = job["generation"].clone();
    standing
}

pub fn pause_job(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let place = asked.job();
    let (reason, until) = (asked.text("reason"), asked.time("until"));
    asked.finish()?;
    let body = json!({"reason": reason, "until": until.map(|until| until.to_string())});
    let call = Call::post(place.path("/pause")).with("namespace", &place.namespace).body(body);
    Ok(stands(&surroundings.client.call(call)?.body))
}

pub fn resume_job(surroundings: &Surroundings, mut asked: Arguments) -> Answer {
    let place = asked.job();
    asked.finish()?;
    let call = Call::post(place.path("/resume")).with("namespace", &place.namespace);
    Ok(stands(&surroundings.client.call(call)?.body))
}

fn read(surroundings: &Surroundings, place: &JobPlace) -> Answer {
    Ok(surroundings.client.call(Call::get(place.path("")).with("namespace", &place.namespace))?.body)
}

/// Whether it is a dry run, and the version that the caller knows. A write needs one: so nobody overwrites what he has not seen.
fn write(asked: &mut Arguments) -> (bool, Option<u64>) {
    let (dry_run, version) = (asked.flag("dry_run").unwrap_or(true), asked.version());
    if !dry_run && version.is_none() {
        asked.fault(
            "version",
            "it is required with dry_run = false: make a dry run, and use the version that it answers",
        );
    }
    // A dry run begins with what is stored.
    (dry_run, version.filter(|_| !dry_run))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_laid_over_as_rfc_7396_has_it() {
        for (object, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({"a": "x"}), json!({"a": {"b": 1, "c": null}}), json!({"a": {"b": 1}})),
        ] {
            let mut object = object;
            lay_over(&mut object, patch);
            assert_eq!(object, expected);
        }
    }
}
