//! `GET /v1/runs`, `GET /v1/jobs/{name}/runs` and `GET /v1/runs/{id}`.

use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::run::Status;
use carillon_domain::store::Refusal;
use carillon_store::{ControlError, RunQuery, RunStage, RunView};
use serde_json::{Value, json};
use tokio::time::timeout;
use warp::http::StatusCode;

use crate::http::problem::{HttpResult, Problem, json_response};
use crate::http::request::caller::Call;
use crate::http::request::query::Query;
use crate::http::routes::listing::entered;
use crate::http::routes::output::live;
use carillon_json::{read_run_cursor, run_cursor, run_json, shown_run_params};

/// How long a run at another node is waited for. That node looks each second for what is asked of it.
const LIVE_WITHIN: Duration = Duration::from_millis(1_500);

/// `GET /v1/runs`
pub(in crate::http) async fn of_all(call: Call) -> HttpResult {
    let asked = {
        let mut query = call.query()?;
        let namespaces = query.namespaces();
        let asked = filters(&mut query);
        query.finish()?;
        RunQuery { namespace: entered(&call, namespaces)?, ..asked }
    };
    listing(&call, &asked).await
}

/// `GET /v1/jobs/{name}/runs`
pub(in crate::http) async fn of_job(call: Call) -> HttpResult {
    let asked = {
        let mut query = call.query()?;
        let namespace = query.namespace();
        let asked = filters(&mut query);
        query.finish()?;
        RunQuery { job: Some(call.key(namespace)?), ..asked }
    };
    listing(&call, &asked).await
}

fn filters(query: &mut Query) -> RunQuery {
    RunQuery {
        status: query.choice("status", &Status::ALL, Status::as_str),
        since: query.time("since"),
        until: query.time("until"),
        after: query.cursor(read_run_cursor),
        limit: query.limit(),
        ..RunQuery::default()
    }
}

async fn listing(call: &Call, query: &RunQuery) -> HttpResult {
    let page = call.api.store.runs(query).await?;
    let items: Vec<_> = page.items.iter().map(run_json).collect();
    let next = page.next.as_ref().map(run_cursor);
    Ok(json_response(StatusCode::OK, &json!({"items": items, "next_cursor": next})))
}

/// `GET /v1/runs/{id}`, with the output; bytes that are not UTF-8 are replaced, `/output` has them as they were.
pub(in crate::http) async fn one(call: Call) -> HttpResult {
    call.no_query()?;
    let view = visible_run(&call).await?;
    let mut out = run_json(&view);
    let (id, params) = (view.id, view.params.clone());
    let (output, truncated) = match &view.stage {
        RunStage::Waiting { .. } => (None, false),
        // How it stands is told in any case, what it printed where its node tells that soon.
        RunStage::Running { .. } => match timeout(LIVE_WITHIN, live(&call.api, view)).await {
            Ok(Ok(Some(part))) => {
                let truncated = part.is_truncated();
                (Some(part.tail), truncated)
            }
            _ => (None, false),
        },
        RunStage::Recorded { .. } => {
            let kept = call.api.store.output(id).await?.unwrap_or_default();
            (Some(kept.bytes), kept.truncated)
        }
    };
    out["output"] = output.map_or(Value::Null, |bytes| String::from_utf8_lossy(&bytes).into());
    out["output_truncated"] = json!(truncated);
    out["params"] = params.as_deref().map_or(Value::Null, shown_run_params);
    Ok(json_response(StatusCode::OK, &out))
}

/// A run that the caller may see; one of another namespace is not there.
pub(in crate::http) async fn visible_run(call: &Call) -> Result<RunView, Problem> {
    let run: RunId = call.segment.parse().map_err(|error| Problem::field("id", format!("{error}")))?;
    let view = call.api.store.run(run).await?;
    if call.caller.sees(&view.key.namespace) {
        Ok(view)
    } else {
        Err(ControlError::Refused(Refusal::NoRun(run)).into())
    }
}
