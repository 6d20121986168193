//! The actions on a job.

use std::sync::Arc;

use carillon_domain::time::Timestamp;
use carillon_store::JobKey;
use chrono::{NaiveDateTime, TimeZone};
use chrono_tz::Tz;
use warp::http::StatusCode;

use super::forms::{Action, again};
use crate::config::Role;
use crate::http::problem::Problem;
use crate::page::answer::see_other;
use crate::page::layout::{Shown, sentence};
use crate::page::links::job_path;
use crate::page::params::Params;
use crate::page::screens::parts::{UNDO_REASON, UNDO_UNTIL};
use crate::page::visit::{Fault, Request, Visit};
use carillon_json::{checked_run_params, parse_json};

/// The longest reason of a pause, in characters.
const LONGEST_REASON: usize = 1_000;

/// Does an action and leads to the page that shows its effect. A fault of the form leads back to the form.
pub(crate) async fn act(request: &mut Request, key: &JobKey, action: Action) -> Result<Shown, Fault> {
    let (visit, form) = request.form(action.needs()).await?;
    visit.caller.enters(&key.namespace)?;
    let done = match action {
        Action::Run => run(&visit, key, &form).await,
        Action::Pause => pause(&visit, key, &form).await,
        Action::Resume => resume(&visit, key).await,
        Action::Delete => delete(&visit, key, &form).await,
    };
    match done {
        Ok(path) => {
            visit.api.engine.look();
            Ok(Shown::Response(see_other(&path)))
        }
        Err(problem) if problem.status == StatusCode::BAD_REQUEST => {
            let view = again(&visit, key, action, &form, &problem).await?;
            Ok(Shown::View(Box::new(visit), Box::new(view)))
        }
        Err(problem) => Err(problem.into()),
    }
}

async fn run(visit: &Visit, key: &JobKey, form: &Params) -> Result<String, Problem> {
    let changed = form.get("params").filter(|text| !is_same_json(text, form.get("unchanged").unwrap_or_default()));
    let params = match changed {
        None => None,
        Some(text) => {
            // Params may be a command, so whoever gives them must be allowed to change the definition.
            visit.caller.needs(Role::Admin)?;
            let params = parse_json(text.as_bytes()).map_err(|error| Problem::field("params", error.to_string()))?;
            let job = visit.api.store.job(key).await?.job;
            let checked = checked_run_params(params, &job, &visit.api.engine.executors());
            Some(checked.map_err(Problem::fields)?)
        }
    };
    let run = visit.api.engine.draw_run_id();
    visit.api.store.trigger_with(key, run, params.map(Arc::from), &visit.author).await?;
    Ok(format!("/runs/{run}?said=asked"))
}

/// Browsers change line ends, so texts are compared by their meaning.
fn is_same_json(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    read(one).is_some_and(|value| Some(value) == read(other))
}

async fn pause(visit: &Visit, key: &JobKey, form: &Params) -> Result<String, Problem> {
    let until = match form.get("until") {
        None => None,
        Some(text) => {
            let fault = || Problem::field("until", "it must be a date and a time that there is in this zone");
            // The fields of a form are in the reader's zone; a pause that comes back says its end in UTC.
            let at = Timestamp::parse_rfc3339(text).or_else(|| instant(text, visit.zone));
            Some(at.ok_or_else(fault)?)
        }
    };
    if until.is_some_and(|until| until <= visit.now) {
        return Err(Problem::field("until", "it has passed"));
    }
    let reason = form.get("reason").map(str::trim).filter(|reason| !reason.is_empty()).map(str::to_owned);
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > LONGEST_REASON) {
        return Err(Problem::field("reason", format!("it is longer than {LONGEST_REASON} characters")));
    }
    if reason.as_ref().is_some_and(|reason| reason.chars().any(char::is_control)) {
        return Err(Problem::field("reason", "it holds characters that cannot be printed"));
    }
    visit.api.store.pause(key, until, reason, &visit.author).await?;
    Ok(format!("{}?said=paused", job_path(key)))
}

/// A wall-clock time of a zone. One that a clock change skips is none; of two, the first counts.
fn instant(text: &str, zone: Tz) -> Option<Timestamp> {
    let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"];
    let wall = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())?;
    let at = zone.from_local_datetime(&wall).earliest()?;
    Some(Timestamp::from_ms(at.timestamp_millis()))
}

async fn resume(visit: &Visit, key: &JobKey) -> Result<String, Problem> {
    let before = visit.api.store.job(key).await?;
    visit.api.store.resume(key, &visit.author).await?;
    let pause = before.pause();
    let until = pause.and_then(|pause| pause.until).map(|until| until.to_string());
    let reason = pause.and_then(|pause| pause.reason.as_deref());
    let back = Params::default().with("said", Some("resumed"));
    let back = back.with(UNDO_REASON, reason).with(UNDO_UNTIL, until.as_deref());
    Ok(format!("{}{}", job_path(key), back.to_query()))
}

/// Deletes the job as it was when the form was shown.
async fn delete(visit: &Visit, key: &JobKey, form: &Params) -> Result<String, Problem> {
    let generation = form.get("generation").and_then(|text| text.parse().ok());
    let generation = generation.ok_or_else(|| Problem::bad(sentence("the form is not complete: open it again")))?;
    visit.api.store.delete_job(key, Some(generation), &visit.author).await?;
    Ok("/jobs?said=deleted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_clock_time_is_of_the_readers_zone() {
        let at = |text| instant(text, Tz::Europe__Berlin).map(Timestamp::to_rfc3339_short);
        assert_eq!(at("2027-01-01T12:00").as_deref(), Some("2027-01-01T11:00:00Z"));
        assert_eq!(at("2027-03-28T02:30"), None, "the clock skips it");
        assert_eq!(at("2027-10-31T02:30").as_deref(), Some("2027-10-31T00:30:00Z"), "the first of two");
        assert_eq!(at("tomorrow"), None);
    }
}
