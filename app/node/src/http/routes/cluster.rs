//! Answers of a node without a job: the cluster, its executors, and the meaning of a schedule.

use carillon_domain::duration;
use carillon_domain::id::SessionId;
use carillon_domain::name::{check_job_name, check_namespace};
use carillon_domain::partition::share_of;
use carillon_domain::schedule::{Options, Schedule};
use carillon_domain::time::Timestamp;
use carillon_executors::executor::{Executor, ExecutorDescription, HostState, PluginDescription};
use carillon_store::{RecordedLoss, ServerReport, SessionState, SessionView};
use serde_json::{Value, json};
use tracing::warn;
use warp::http::StatusCode;

use crate::http::problem::{HttpResult, Problem, json_response};
use crate::http::request::body::ORDINARY;
use crate::http::request::caller::Call;
use crate::losses::{open_loss, patience};
use carillon_json::MOST_DUE_TIMES;
use carillon_json::{Fields, schedule_fault, timing_json, window_json};

/// `GET /v1/cluster`
pub(in crate::http) async fn cluster(call: Call) -> HttpResult {
    call.no_query()?;
    let mut sessions = call.api.store.sessions().await?;
    // As people look for them; the ids of sessions are drawn.
    sessions.sort_by(|one, next| (&one.node, one.started_at).cmp(&(&next.node, next.started_at)));
    let live: Vec<_> =
        sessions.iter().filter(|view| view.beat.state == SessionState::Live).map(|view| view.beat.id).collect();
    let items: Vec<_> = sessions.iter().map(|view| session_json(&call, view, &live)).collect();
    let losses = call.api.store.recorded_losses().await?;
    let scope = call.caller.scope();
    let unknown = open_loss(&call.api, &scope, &losses, &sessions).await?.map(|open| open.json());
    let windows: Vec<_> = losses.iter().map(window_json).collect();
    let database = call.api.store.server().as_ref().map(server_json);
    let timing = call.api.timing.as_ref().map(timing_json);
    let misfits = call.api.timing.as_ref().map(|report| report.misfits.clone()).unwrap_or_default();
    let shown = json!({
        "items": items,
        "lost_commits": windows,
        "still_unknown": unknown,
        "database": database,
        "timing": timing,
        "timing_misfits": misfits,
    });
    Ok(json_response(StatusCode::OK, &shown))
}

/// `POST /v1/cluster/accept`: claims go on although commits were lost.
pub(in crate::http) async fn accept(mut call: Call) -> HttpResult {
    call.no_query()?;
    call.nothing_more().await?;
    call.caller.enters_all()?;
    let accepted = call.api.store.accept_losses(patience(&call.api), &call.author).await?;
    for RecordedLoss { window, .. } in &accepted {
        warn!("accepted: {window}");
    }
    let windows: Vec<_> = accepted.iter().map(window_json).collect();
    Ok(json_response(StatusCode::OK, &json!({"lost_commits": windows})))
}

/// The database server that a node uses.
fn server_json(server: &ServerReport) -> Value {
    json!({
        "place": server.place,
        "identity": server.identity,
        "topology": server.topology,
        "why": server.why,
        "changes": server.changes,
        "trouble": server.trouble,
    })
}

fn session_json(call: &Call, view: &SessionView, live: &[SessionId]) -> Value {
    let id = view.beat.id;
    // This node knows its own partitions; those of the others follow from the list of live sessions.
    let partitions = match (id == call.api.engine.session(), call.api.partitions) {
        (true, _) => Some(call.api.engine.counts().partitions),
        (false, Some(partitions)) => Some(share_of(id, live, partitions)),
        (false, None) => None,
    };
    json!({
        "id": id.to_string(),
        "node": view.node,
        "address": view.address,
        "version": view.version,
        "started_at": view.started_at.to_string(),
        "heartbeat_at": view.heartbeat_at.to_string(),
        "server": view.server,
        "dead_after": view.terms.map(|terms| duration::format(terms.dead_after)),
        "expire_after": view.terms.map(|terms| duration::format(terms.expire_after)),
        "partitions": partitions,
        "prepared": view.prepared,
        "executing": view.executing,
        "state": view.beat.state.as_str(),
    })
}

/// `GET /v1/executors`
pub(in crate::http) async fn executors(call: Call) -> HttpResult {
    call.no_query()?;
    let items: Vec<_> =
        call.api.engine.executors().iter().map(|(name, executor)| executor_json(name, &**executor)).collect();
    Ok(json_response(StatusCode::OK, &json!({"items": items})))
}

fn executor_json(name: &str, executor: &dyn Executor) -> Value {
    let ExecutorDescription { version, abi, params_schema, plugin } = executor.description();
    let mut shown = json!({"name": name, "version": version, "abi": abi, "params_schema": params_schema});
    if let Some(PluginDescription { file, isolation, host, trouble }) = plugin {
        shown["file"] = json!(file.display().to_string());
        shown["isolation"] = json!(isolation.as_str());
        shown["host"] = json!(host.map(HostState::as_str));
        shown["trouble"] = json!(trouble);
    }
    shown
}

/// `POST /v1/schedules/explain`
pub(in crate::http) async fn explain(mut call: Call) -> HttpResult {
    call.no_query()?;
    let body = call.json(ORDINARY).await?;
    let now = call.api.store.now().await?;
    Ok(json_response(StatusCode::OK, &explained(body, now)?))
}

/// Describes a schedule. `namespace` and `name` are what `H` is made from; `after` is now where it is not given.
fn explained(body: Value, now: Timestamp) -> Result<Value, Problem> {
    let mut fields = Fields::of(body, "a schedule to explain").map_err(Problem::fields)?;
    let text = fields.required_text("schedule").unwrap_or_default();
    let timezone = fields.text("timezone");
    let count = fields.integer("count", 1..=MOST_DUE_TIMES).unwrap_or(10);
    let after = fields.time("after").unwrap_or(now);
    let namespace = fields.text("namespace").unwrap_or_else(|| "default".into());
    let name = fields.text("name");
    if let Err(error) = check_namespace(&namespace) {
        fields.fault("namespace", error.to_string());
    }
    if let Some(Err(error)) = name.as_deref().map(check_job_name) {
        fields.fault("name", error.to_string());
    }
    fields.finish().map_err(Problem::fields)?;
    let hash_key = format!("{namespace}/{}", name.unwrap_or_default());
    let options = Options { timezone: timezone.as_deref(), hash_key: &hash_key, ..Options::default() };
    let schedule = Schedule::parse(&text, &options).map_err(|error| Problem::fields(vec![schedule_fault(&error)]))?;
    let due = std::iter::successors(schedule.next_after(after), |due| schedule.next_after(*due));
    let next: Vec<_> = due.take(count as usize).map(|due| due.to_string()).collect();
    Ok(json!({
        "schedule": text,
        "timezone": schedule.timezone(),
        "description": schedule.describe(),
        "next": next,
    }))
}
