//! `GET /v1/runs/{id}/output`: what a run printed, and with `follow=true` what it prints until it ends.
//!
//! A follower of a run that waits, or that runs on another node, looks at the database until the run runs here or has
//! ended; a node that dies takes no follower with it, since the others record its runs as lost.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use carillon_adapters::store::{RunStage, RunView};
use carillon_domain::id::RunId;
use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use warp::filters::BoxedFilter;
use warp::http::StatusCode;
use warp::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use warp::hyper::body::Bytes;
use warp::reply::Response;
use warp::{Filter, Reply, path};

use super::call::{Admitted, call, reading};
use super::problem::{Answer, Problem, answer};
use super::runs::visible_run;
use super::state::ApiState;
use crate::config::Role;
use crate::engine::LiveOutput;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const TRUNCATED: HeaderName = HeaderName::from_static("carillon-output-truncated");
/// How often a follower looks at a run that does not run here.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many chunks may wait for a slow reader.
const CHUNKS_WAITING: usize = 16;
/// How often in a row the database may fail a follower.
const MOST_FAILURES: u32 = 20;

/// `GET /v1/runs/{id}/output`
pub(super) fn route(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let route = path!("v1" / "runs" / String / "output").and(reading()).and(call(api, Role::Viewer));
    let handler = async |segment: String, admitted: Admitted| -> Answer {
        let call = admitted?;
        let follow = {
            let mut query = call.query()?;
            let follow = query.flag("follow").unwrap_or(false);
            query.finish()?;
            follow
        };
        let view = visible_run(&call, &segment).await?;
        match (&view.stage, follow) {
            (RunStage::Recorded { .. }, _) => kept(&call.api, view.id).await,
            (RunStage::Waiting { .. } | RunStage::Running { .. }, true) => Ok(followed(Arc::clone(&call.api), view.id)),
            (RunStage::Waiting { .. } | RunStage::Running { .. }, false) => so_far(&call.api, &view),
        }
    };
    route.then(move |id, call| answer(handler(id, call))).boxed()
}

async fn kept(api: &ApiState, run: RunId) -> Answer {
    let output = api.store.output(run).await?;
    let content_type = if std::str::from_utf8(&output.bytes).is_ok() { TEXT } else { BYTES };
    let mut response = Response::new(output.bytes.into());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    let truncated = if output.truncated { "true" } else { "false" };
    response.headers_mut().insert(TRUNCATED, HeaderValue::from_static(truncated));
    Ok(response)
}

fn so_far(api: &ApiState, view: &RunView) -> Answer {
    let bytes = match (&view.stage, api.engine.live_output(view.id)) {
        (_, Some(live)) => live.so_far,
        (RunStage::Waiting { .. }, None) => Vec::new(),
        _ => {
            let node = view.node.as_deref().unwrap_or("another node");
            let told = format!("the run is on {node}; ask there, or with follow=true for its output when it has ended");
            return Err(Problem::new(StatusCode::CONFLICT, told));
        }
    };
    let mut response = Response::new(bytes.into());
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    Ok(response)
}

fn followed(api: Arc<ApiState>, run: RunId) -> Response {
    let (to_reader, mut chunks) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(async move {
        // Ends when the run has ended or the reader has gone, whichever comes first.
        tokio::select! {
            () = follow(&api, run, &to_reader) => {}
            () = to_reader.closed() => {}
        }
    });
    let stream = poll_fn(move |context| chunks.poll_recv(context)).map(Ok::<_, Infallible>);
    let mut response = warp::reply::stream(stream).into_response();
    response.headers_mut().insert(CONTENT_TYPE, TEXT);
    response
}

async fn follow(api: &ApiState, run: RunId, reader: &mpsc::Sender<Bytes>) {
    let mut failures = 0;
    while failures < MOST_FAILURES {
        if let Some(live) = api.engine.live_output(run) {
            return pass_on(live, reader).await;
        }
        match api.store.run(run).await.map(|view| view.stage) {
            Ok(RunStage::Recorded { .. }) => match api.store.output(run).await {
                Ok(output) => {
                    // A reader that has gone needs nothing more.
                    let _ = reader.send(output.bytes.into()).await;
                    return;
                }
                Err(_) => failures += 1,
            },
            Ok(RunStage::Waiting { .. } | RunStage::Running { .. }) => failures = 0,
            Err(_) => failures += 1,
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

pub(super) async fn pass_on(mut live: LiveOutput, reader: &mpsc::Sender<Bytes>) {
    let mut next = Bytes::from(live.so_far);
    loop {
        if !next.is_empty() && reader.send(next).await.is_err() {
            return;
        }
        next = match live.chunks.recv().await {
            Ok(chunk) => chunk.into(),
            Err(RecvError::Lagged(chunks)) => format!("\n[{chunks} pieces of output were left out]\n").into(),
            Err(RecvError::Closed) => return,
        };
    }
}
