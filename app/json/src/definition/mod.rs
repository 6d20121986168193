//! A job as a client writes it, read into the domain's.

pub(super) mod told;

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::job::{Job, Misfire, MisfirePolicy, OnLost, Overlap, Retry};
use carillon_domain::name::{check_job_name, check_label_key, check_label_value, check_namespace};
use carillon_domain::schedule::{Dst, Gap, Overlap as Repeated, ScheduleError};
use carillon_domain::time::Timestamp;
use carillon_executors::registry::ByName;
use serde_json::{Map, Value};

use super::fields::quoted;
use super::{FieldError, Fields, secret};

const DAY: Duration = Duration::from_secs(86_400);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(365 * 86_400);
const LONGEST_KILL_GRACE: Duration = Duration::from_secs(3_600);
const MOST_LABELS: usize = 64;
/// The longest params, as JSON text in bytes: what an argument list can carry is shorter.
pub(super) const MOST_PARAMS: usize = 256 * 1024;
/// Fields that reading a job adds to its definition; ignored when a job is put back as it was read.
pub const ADDED_BY_READING: [&str; 10] = [
    "state",
    "next_due_at",
    "previous_due_at",
    "last_run",
    "current_run",
    "node",
    "generation",
    "created_at",
    "updated_at",
    "pause",
];

/// Takes those fields away, so that a job that was read is left as somebody would write it.
pub fn as_written(job: &mut Map<String, Value>) {
    job.retain(|field, _| !ADDED_BY_READING.contains(&field.as_str()));
}

/// A definition and what it says about pausing.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The definition.
    pub job: Job,
    /// `None` leaves a pause as it is.
    pub paused: Option<bool>,
}

/// The surroundings of a definition: its address and the executors of the node.
pub struct DefinitionContext<'a> {
    /// The namespace of the query; the body's must be the same.
    pub namespace: Option<&'a str>,
    /// The name of the path; the body's must be the same.
    pub name: Option<&'a str>,
    /// The executors of this node; `None` where they are not known, and params are not checked.
    pub executors: Option<&'a ByName>,
    /// The stored definition of that name, where the body left out values of secrets.
    pub stored: Option<&'a Job>,
}

/// Reads a definition.
///
/// # Errors
/// Every fault of the body.
pub fn definition(body: Value, place: &DefinitionContext<'_>) -> Result<Definition, Vec<FieldError>> {
    let mut fields = Fields::of(body, "a job")?;
    let namespace = namespace(&mut fields, place.namespace);
    let name = name(&mut fields, place.name);
    let schedule = fields.required_text("schedule");
    let timezone = fields.text("timezone");
    let executor = fields.text("executor").unwrap_or_else(|| "shell".into());
    let params = params(&mut fields, &executor, place);
    let (start_at, end_at) = bounds(&mut fields);
    let job = Job {
        namespace: namespace.unwrap_or_default(),
        name: name.unwrap_or_default(),
        schedule: schedule.clone().unwrap_or_default(),
        timezone,
        dst: dst(&mut fields),
        jitter: fields.duration("jitter", Duration::ZERO..=DAY).unwrap_or_default(),
        start_at,
        end_at,
        executor,
        params,
        overlap: fields.choice("overlap", &Overlap::ALL, Overlap::as_str).unwrap_or_default(),
        misfire: misfire(&mut fields),
        timeout: fields.duration("timeout", Duration::from_millis(1)..=LONGEST_TIMEOUT),
        kill_grace: fields
            .duration("kill_grace", Duration::ZERO..=LONGEST_KILL_GRACE)
            .unwrap_or(Job::DEFAULT_KILL_GRACE),
        retry: retry(&mut fields),
        on_lost: fields.choice("on_lost", &OnLost::ALL, OnLost::as_str).unwrap_or_default(),
        labels: labels(&mut fields),
        expect: told::expect(&mut fields),
        ping: told::ping(&mut fields),
    };
    let paused = fields.flag("paused");
    if schedule.is_some() {
        check_schedule(&fields, &job);
    }
    fields.ignore(&ADDED_BY_READING);
    fields.finish()?;
    Ok(Definition { job, paused })
}

fn namespace(fields: &mut Fields, of_query: Option<&str>) -> Option<String> {
    let given = fields.text("namespace");
    if let Some(error) = given.as_deref().and_then(|given| check_namespace(given).err()) {
        fields.fault("namespace", error.to_string());
        return None;
    }
    match (given, of_query) {
        (Some(given), Some(of_query)) if given != of_query => {
            fields.fault("namespace", format!("it is {given} here and {of_query} in the query"));
            None
        }
        (given, of_query) => Some(given.or(of_query.map(str::to_owned)).unwrap_or_else(|| "default".into())),
    }
}

fn name(fields: &mut Fields, of_path: Option<&str>) -> Option<String> {
    let given = if of_path.is_some() { fields.text("name") } else { fields.required_text("name") };
    match (given, of_path) {
        (Some(given), Some(of_path)) if given != of_path => {
            fields.fault("name", format!("it is {} here and {of_path} in the path", quoted(&given)));
            None
        }
        (Some(given), None) => match check_job_name(&given) {
            Ok(()) => Some(given),
            Err(error) => {
                fields.fault("name", error.to_string());
                None
            }
        },
        (_, of_path) => of_path.map(str::to_owned),
    }
}

/// The checked params as JSON text, empty where they are faulty.
fn params(fields: &mut Fields, executor: &str, place: &DefinitionContext<'_>) -> String {
    let Some(mut params) = fields.any("params") else {
        fields.fault("params", "it is required");
        return String::new();
    };
    if !params.is_object() {
        fields.wrong::<()>("params", "an object", &params);
        return String::new();
    }
    let stored = place.stored.and_then(|stored| serde_json::from_str::<Value>(&stored.params).ok());
    if let Err(missing) = secret::restore(&mut params, stored.as_ref()) {
        fields.faults(missing);
        return String::new();
    }
    match place.executors.map(|executors| (executors, executors.get(executor))) {
        None => {}
        Some((executors, None)) => {
            let known: Vec<_> = executors.keys().map(String::as_str).collect();
            let shown = quoted(executor);
            fields.fault("executor", format!("this node has no executor {shown}; it has: {}", known.join(", ")));
        }
        Some((_, Some(executor))) => {
            if let Err(faults) = executor.check(&params) {
                fields.faults(faults.into_iter().map(|(field, message)| FieldError { field, message }));
            }
        }
    }
    let text = params.to_string();
    if text.len() > MOST_PARAMS {
        fields.fault("params", format!("they are {} bytes long: at most {MOST_PARAMS} are allowed", text.len()));
    }
    text
}

fn bounds(fields: &mut Fields) -> (Option<Timestamp>, Option<Timestamp>) {
    let (start_at, end_at) = (fields.time("start_at"), fields.time("end_at"));
    if let (Some(start_at), Some(end_at)) = (start_at, end_at)
        && end_at < start_at
    {
        fields.fault("end_at", format!("{end_at} lies before start_at {start_at}"));
    }
    (start_at, end_at)
}

fn dst(fields: &mut Fields) -> Dst {
    let mut dst = Dst::default();
    let Some(mut inner) = fields.object("dst") else { return dst };
    if let Some(gap) = inner.choice("gap", &[Gap::After, Gap::Skip], super::job::gap_name) {
        dst.gap = gap;
    }
    if let Some(overlap) = inner.choice("overlap", &[Repeated::First, Repeated::Both], super::job::repeated_name) {
        dst.overlap = overlap;
    }
    inner.refuse_rest();
    dst
}

fn misfire(fields: &mut Fields) -> Misfire {
    let mut misfire = Misfire::default();
    let Some(mut inner) = fields.object("misfire") else { return misfire };
    misfire.policy = inner.choice("policy", &MisfirePolicy::ALL, MisfirePolicy::as_str).unwrap_or(misfire.policy);
    misfire.grace = inner.duration("grace", Duration::ZERO..=LONGEST_TIMEOUT).unwrap_or(misfire.grace);
    inner.refuse_rest();
    misfire
}

fn retry(fields: &mut Fields) -> Retry {
    let mut retry = Retry::default();
    let Some(mut inner) = fields.object("retry") else { return retry };
    retry.max_attempts = inner.integer("max_attempts", 1..=100).unwrap_or(retry.max_attempts);
    retry.backoff = inner.duration("backoff", Duration::ZERO..=DAY).unwrap_or(retry.backoff);
    match inner.duration("max_backoff", Duration::ZERO..=30 * DAY) {
        Some(max_backoff) if max_backoff < retry.backoff => {
            inner.fault("max_backoff", "it is shorter than backoff");
        }
        given => retry.max_backoff = given.unwrap_or(retry.max_backoff.max(retry.backoff)),
    }
    inner.refuse_rest();
    retry
}

fn labels(fields: &mut Fields) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let Some(mut inner) = fields.object("labels") else { return labels };
    let given = inner.take_rest();
    if given.len() > MOST_LABELS {
        fields.fault("labels", format!("there are {} of them: at most {MOST_LABELS} are allowed", given.len()));
        return labels;
    }
    for (key, value) in given {
        if let Err(error) = check_label_key(&key) {
            fields.fault("labels", error.to_string());
            continue;
        }
        match value {
            Value::String(value) => match check_label_value(&value) {
                Ok(()) => drop(labels.insert(key, value)),
                Err(error) => inner.fault(&key, error.to_string()),
            },
            other => drop(inner.wrong::<()>(&key, "a string", &other)),
        }
    }
    labels
}

fn check_schedule(fields: &Fields, job: &Job) {
    if let Err(error) = job.timeline(Timestamp::EPOCH) {
        fields.faults([schedule_fault(&error)]);
    }
}

/// A refused schedule as a fault of the field in which it stands: the parts of a schedule all stand in one field of ours.
pub fn schedule_fault(error: &ScheduleError) -> FieldError {
    let field = if error.field() == "timezone" { "timezone" } else { "schedule" };
    let message = error.to_string();
    // The sentence begins with the part at fault, which is told already where it is the whole field.
    FieldError::new(field, message.strip_prefix(&format!("{field}: ")).unwrap_or(&message))
}
