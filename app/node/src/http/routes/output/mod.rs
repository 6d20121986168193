//! `GET /v1/runs/{id}/output`: what a run printed, and with `follow=true` what it prints until it ends.
//!
//! Nodes speak only through the database. A reader of a run at another node asks there, and that node publishes its output there until
//! the run is recorded. A reader survives the death of that node, since the others record its runs as lost.

mod resume;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::duration::spoken;
use carillon_domain::id::RunId;
use carillon_store::{ControlError, LivePart, RunStage, RunView};
use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use warp::Reply;
use warp::http::StatusCode;
use warp::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use warp::hyper::body::Bytes;
use warp::reply::Response;

use self::resume::Passed;
use crate::engine::LiveOutput;
use crate::http::problem::{HttpResult, Problem};
use crate::http::request::caller::Call;
use crate::http::routes::runs::visible_run;
use crate::http::state::ApiState;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const BYTES: HeaderValue = HeaderValue::from_static("application/octet-stream");
const TRUNCATED: HeaderName = HeaderName::from_static("carillon-output-truncated");
/// How often a follower looks at a run that does not run yet.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often a follower asks another node for what is new.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long another node has to tell for the first time what a run has printed.
const FIRST_WORD: Duration = Duration::from_secs(3);
/// How many chunks may wait for a slow reader.
const CHUNKS_WAITING: usize = 16;
/// How often in a row the database may fail a follower.
const MOST_FAILURES: u32 = 20;

/// `GET /v1/runs/{id}/output`
pub(in crate::http) async fn read(call: Call) -> HttpResult {
    let follow = {
        let mut query = call.query()?;
        let follow = query.flag("follow").unwrap_or(false);
        query.finish()?;
        follow
    };
    let view = visible_run(&call).await?;
    match (&view.stage, follow) {
        (RunStage::Recorded { .. }, _) => kept(&call.api, view.id).await,
        (RunStage::Waiting { .. } | RunStage::Running { .. }, true) => Ok(followed(Arc::clone(&call.api), view.id)),
        (RunStage::Waiting { .. } | RunStage::Running { .. }, false) => so_far(&call.api, view).await,
    }
}

async fn kept(api: &ApiState, run: RunId) -> HttpResult {
    let output = api.store.output(run).await?.unwrap_or_default();
    let content_type = if std::str::from_utf8(&output.bytes).is_ok() { TEXT } else { BYTES };
    Ok(whole(output.bytes, content_type, output.truncated))
}

fn whole(bytes: Vec<u8>, content_type: HeaderValue, truncated: bool) -> Response {
    let mut response = Response::new(bytes.into());
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    let truncated = if truncated { "true" } else { "false" };
    response.headers_mut().insert(TRUNCATED, HeaderValue::from_static(truncated));
    response
}

/// The output so far of a run that has not ended, wherever it runs.
async fn so_far(api: &ApiState, view: RunView) -> HttpResult {
    let (run, node) = (view.id, view.node.clone().unwrap_or_else(|| "another node".to_owned()));
    let Ok(live) = tokio::time::timeout(FIRST_WORD, live(api, view)).await else {
        let told =
            format!("the run is on {node}, which has not told its output within {}; ask again", spoken(FIRST_WORD));
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, told);
        return Err(problem.with_header(RETRY_AFTER, HeaderValue::from_static("1")));
    };
    match live? {
        Some(part) => {
            let truncated = part.is_truncated();
            Ok(whole(part.tail, TEXT, truncated))
        }
        None => kept(api, run).await,
    }
}

/// The same as it comes from the node that runs it, which may take its time; `None` when the run has ended meanwhile.
pub(crate) async fn live(api: &ApiState, mut view: RunView) -> Result<Option<LivePart>, ControlError> {
    let run = view.id;
    loop {
        if let Some(LiveOutput { written, so_far, .. }) = api.engine.live_output(run) {
            return Ok(Some(LivePart { written, tail: so_far }));
        }
        match view.stage {
            RunStage::Waiting { .. } => return Ok(Some(LivePart::default())),
            RunStage::Recorded { .. } => return Ok(None),
            RunStage::Running { held, .. } if held.session == api.engine.session() => {}
            RunStage::Running { .. } => {
                if let Some(part) = api.store.ask_output(run).await? {
                    return Ok(Some(part));
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
        view = api.store.run(run).await?;
    }
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

pub(crate) async fn follow(api: &ApiState, run: RunId, reader: &mpsc::Sender<Bytes>) {
    let (mut passed, mut failures) = (Passed::default(), 0);
    while failures < MOST_FAILURES {
        if let Some(live) = api.engine.live_output(run) {
            return pass_on(live, reader).await;
        }
        let (news, wait) = match look(api, run, &mut passed).await {
            Ok(Look::Ended(rest)) => {
                // A reader that has gone needs nothing more.
                let _ = reader.send(rest.into()).await;
                return;
            }
            Ok(Look::Printed(news)) => (news, ASK_EVERY),
            Ok(Look::NotYet) => (Vec::new(), LOOK_EVERY),
            Err(_) => {
                failures += 1;
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            }
        };
        failures = 0;
        if !news.is_empty() && reader.send(news.into()).await.is_err() {
            return;
        }
        tokio::time::sleep(wait).await;
    }
}

/// The state of a run that does not run here.
enum Look {
    /// It waits, or is about to run here.
    NotYet,
    /// It runs at another node, which has printed this since the last look.
    Printed(Vec<u8>),
    /// It has ended, and this is what was not passed on before.
    Ended(Vec<u8>),
}

async fn look(api: &ApiState, run: RunId, passed: &mut Passed) -> Result<Look, ControlError> {
    Ok(match api.store.run(run).await?.stage {
        RunStage::Recorded { .. } => Look::Ended(passed.rest(&api.store.output(run).await?.unwrap_or_default())),
        RunStage::Running { held, .. } if held.session != api.engine.session() => {
            let part = api.store.ask_output(run).await?;
            Look::Printed(part.map(|part| passed.news(&part)).unwrap_or_default())
        }
        RunStage::Waiting { .. } | RunStage::Running { .. } => Look::NotYet,
    })
}

pub(in crate::http) async fn pass_on(mut live: LiveOutput, reader: &mpsc::Sender<Bytes>) {
    let mut next = Bytes::from(Passed::default().news(&LivePart { written: live.written, tail: live.so_far }));
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
