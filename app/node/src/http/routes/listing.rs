//! `GET /v1/jobs`, `GET /v1/jobs/{name}/next` and `.../why`: which jobs there are, when one is due, and why it ran or not.

use carillon_domain::name::{check_label_key, check_label_value};
use carillon_store::{JobQuery, JobSort};
use serde_json::json;
use warp::http::StatusCode;

use crate::http::problem::{HttpResult, Problem, json_response};
use crate::http::request::caller::Call;
use crate::http::request::query::Namespaces;
use crate::why::why;
use carillon_json::{MOST_DUE_TIMES, job_cursor, job_json, read_job_cursor, why_json};

/// `GET /v1/jobs`
pub(in crate::http) async fn list(call: Call) -> HttpResult {
    let query = job_query(&call)?;
    let page = call.api.store.jobs(&query).await?;
    let items: Vec<_> = page.items.iter().map(job_json).collect();
    let next = page.next.as_ref().map(job_cursor);
    Ok(json_response(StatusCode::OK, &json!({"items": items, "next_cursor": next})))
}

fn job_query(call: &Call) -> Result<JobQuery, Problem> {
    let mut query = call.query()?;
    let namespaces = query.namespaces();
    let state = query.choice("state", &["idle", "prepared", "executing"], |state| state);
    let label = query.text("label").map(|label| match label.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (label, None),
    });
    if let Some((key, value)) = &label
        && let Err(error) = check_label_key(key).and_then(|()| check_label_value(value.as_deref().unwrap_or_default()))
    {
        query.fault("label", format!("it must be KEY or KEY=VALUE: {error}"));
    }
    let prefix = query.text("prefix");
    if prefix.as_deref().is_some_and(|prefix| prefix.len() > carillon_domain::name::MAX_NAME) {
        query.fault("prefix", "it is longer than any name");
    }
    let asked = JobQuery {
        prefix,
        label,
        state: state.map(str::to_owned),
        paused: query.flag("paused"),
        sort: JobSort::Name,
        after: query.cursor(read_job_cursor),
        limit: query.limit(),
        ..JobQuery::default()
    };
    query.finish()?;
    Ok(JobQuery { namespace: entered(call, namespaces)?, ..asked })
}

/// The namespace of a listing, `None` for all; the caller may see it.
pub(in crate::http) fn entered(call: &Call, namespaces: Namespaces) -> Result<Option<String>, Problem> {
    match namespaces {
        Namespaces::All => call.caller.enters_all().map(|()| None),
        Namespaces::One(namespace) => call.caller.enters(&namespace).map(|()| Some(namespace)),
    }
}

/// `GET /v1/jobs/{name}/why`
pub(in crate::http) async fn explained(call: Call) -> HttpResult {
    let (key, at) = {
        let mut query = call.query()?;
        let (namespace, at) = (query.namespace(), query.time("at"));
        query.finish()?;
        (call.key(namespace)?, at)
    };
    let why = why(call.api.store.as_ref(), &call.api.engine, &key, at).await?;
    Ok(json_response(StatusCode::OK, &why_json(&why)))
}

/// `GET /v1/jobs/{name}/next`
pub(in crate::http) async fn next(call: Call) -> HttpResult {
    let (key, count) = {
        let mut query = call.query()?;
        let (namespace, count) = (query.namespace(), query.integer("count", 1, MOST_DUE_TIMES).unwrap_or(10));
        query.finish()?;
        (call.key(namespace)?, count)
    };
    let view = call.api.store.job(&key).await?;
    let now = call.api.store.now().await?;
    let next: Vec<_> = view.timeline.after(now).take(count as usize).map(|due| due.to_string()).collect();
    Ok(json_response(StatusCode::OK, &json!({"next": next})))
}
