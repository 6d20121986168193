//! New and Edit: a form, the difference before it is stored, and a conflict that shows both versions.

mod fields;
mod form;
mod review;
mod schema;

use std::sync::Arc;

use carillon_domain::job::Job;
use carillon_domain::store::Refusal;
use carillon_store::{ControlError, JobKey, JobView, PutIf, PutJob};
use maud::html;
use serde_json::{Value, json};

use self::form::Form;
use crate::config::Role;
use crate::http::problem::Problem;
use crate::page::answer::see_other;
use crate::page::layout::{Shown, View};
use crate::page::links::job_path;
use crate::page::params::Params;
use crate::page::screens::job::visible;
use crate::page::visit::{Fault, Request, Visit};
use carillon_json::{Definition, DefinitionContext, FieldError, definition, definition_json};

/// The form of a new job.
pub(crate) async fn new(visit: &Visit) -> Result<View, Fault> {
    let namespace = visit.caller.namespaces().and_then(|names| names.first()).map_or("default", String::as_str);
    let start = Job::new((namespace, ""), "", "{}");
    let mut start = definition_json(&start);
    for field in ["name", "schedule"] {
        start[field] = Value::Null;
    }
    start["executor"] = json!("shell");
    let given = fields::filled(&start, &fields::params_of(visit, "shell"));
    Ok(shown(visit, None, &given, &[]))
}

/// The form of a job that there is.
pub(crate) async fn edit(visit: &Visit, key: &JobKey) -> Result<View, Fault> {
    let view = visible(visit, key).await?;
    Ok(shown(visit, Some(key), &form_of(visit, &view), &[]))
}

fn form_of(visit: &Visit, view: &JobView) -> Params {
    let flat = fields::params_of(visit, &view.job.executor);
    let form = fields::filled(&definition_json(&view.job), &flat);
    form.with("generation", Some(&view.state.generation.to_string()))
}

fn shown(visit: &Visit, key: Option<&JobKey>, given: &Params, faults: &[FieldError]) -> View {
    let flat = fields::params_of(visit, given.get("executor").unwrap_or("shell"));
    let form = Form { visit, exists: key.is_some(), given, flat: &flat, faults };
    let title = key.map_or_else(|| "New job".to_owned(), |key| format!("Edit {}", key.name));
    let body = html! {
        @match key {
            Some(key) => p { a href=(visit.links.job(key)) { "← " (key.name) } },
            None => p { a href=(visit.links.to("/jobs")) { "← Jobs" } },
        }
        h1 { (title) }
        (form.markup())
    };
    let view = View::new(title, body);
    match key {
        Some(JobKey { namespace, name }) => view.otherwise(
            format!("/v1/jobs/{name}?namespace={namespace}"),
            format!("carillon job show --namespace {namespace} --json {name}"),
        ),
        None => view.posting(
            "/v1/jobs",
            json!({"name": "hello", "schedule": "* * * * *", "params": {"command": "echo hello"}}).to_string(),
            "carillon job add hello --schedule '* * * * *' -- echo hello",
        ),
    }
}

/// Takes the form: checks it, shows the difference, or stores it.
pub(crate) async fn take(request: &mut Request, key: Option<&JobKey>) -> Result<Shown, Fault> {
    let (visit, form) = request.form(Role::Admin).await?;
    let stored = match key {
        Some(key) => Some(visible(&visit, key).await?),
        None => None,
    };
    let wanted = form.get("do").unwrap_or_default().to_owned();
    let given = form.with("csrf", None).with("do", None);
    let view = match read(&visit, key, stored.as_ref(), &given) {
        Err(faults) => shown(&visit, key, &given, &faults),
        Ok(_) if wanted == "check" => shown(&visit, key, &resplit(&visit, &given), &[]),
        Ok(read) => {
            visit.caller.enters(&read.job.namespace)?;
            match &stored {
                Some(stored) if given.get("generation") != Some(&stored.state.generation.to_string()) => {
                    review::conflict(&visit, stored, &read.job, &given)
                }
                _ if wanted == "save" => match save(&visit, stored.as_ref(), &read).await? {
                    Saved::Stored(key) => {
                        visit.api.engine.look();
                        let path = format!("{}?said=saved", job_path(&key));
                        return Ok(Shown::Response(see_other(&visit.links.to(&path))));
                    }
                    Saved::Overtaken(key) => review::conflict(&visit, &visible(&visit, &key).await?, &read.job, &given),
                    Saved::Faulty(fault) => shown(&visit, key, &given, &[fault]),
                },
                stored => review::review(&visit, stored.as_ref(), &read.job, &given),
            }
        }
    };
    Ok(Shown::View(Box::new(visit), Box::new(view)))
}

/// The same form for the executor that was chosen: params that it has no field for stand in the JSON.
fn resplit(visit: &Visit, given: &Params) -> Params {
    let flat = fields::params_of(visit, given.get("executor").unwrap_or("shell"));
    let Ok(body) = fields::body(given, &flat) else { return given.clone() };
    fields::filled(&body, &flat).with("generation", given.get("generation")).with("paused", given.get("paused"))
}

/// The definition that the form says. Secrets that are not written are those of the stored job.
fn read(
    visit: &Visit,
    key: Option<&JobKey>,
    stored: Option<&JobView>,
    given: &Params,
) -> Result<Definition, Vec<FieldError>> {
    let flat = fields::params_of(visit, given.get("executor").unwrap_or("shell"));
    let mut body = fields::body(given, &flat)?;
    if let Some(key) = key {
        body["namespace"] = json!(key.namespace);
        body["name"] = json!(key.name);
    }
    let executors = visit.api.engine.executors();
    let stored: Option<&Arc<Job>> = stored.map(|view| &view.job);
    let place =
        DefinitionContext { namespace: None, name: None, executors: Some(&executors), stored: stored.map(Arc::as_ref) };
    definition(body, &place)
}

/// The end of a form that was to be stored.
enum Saved {
    Stored(JobKey),
    /// Somebody else stored a change after this call had read the job.
    Overtaken(JobKey),
    Faulty(FieldError),
}

/// Stores it. A name that is taken is a fault of its field.
async fn save(visit: &Visit, stored: Option<&JobView>, read: &Definition) -> Result<Saved, Fault> {
    let when = stored.map_or(PutIf::Absent, |view| PutIf::Generation(view.state.generation));
    let key = JobKey { namespace: read.job.namespace.clone(), name: read.job.name.clone() };
    let put = PutJob { job: read.job.clone(), paused: read.paused, when, author: visit.author.clone() };
    match visit.api.store.put_jobs(&[put]).await?.pop() {
        Some(Ok(_)) => Ok(Saved::Stored(key)),
        Some(Err(ControlError::Refused(Refusal::Stale { .. }))) => Ok(Saved::Overtaken(key)),
        Some(Err(error @ ControlError::Refused(Refusal::NameTaken(_)))) => {
            Ok(Saved::Faulty(FieldError::new("name", error.to_string())))
        }
        Some(Err(error)) => match Problem::from(error) {
            problem if problem.errors.len() == 1 => Ok(Saved::Faulty(problem.errors[0].clone())),
            problem => Err(problem.into()),
        },
        None => Err(Problem::bad("the database did not answer: open the form again").into()),
    }
}
