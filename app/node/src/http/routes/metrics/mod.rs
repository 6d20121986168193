//! `/metrics` in the text format of Prometheus.
//!
//! Every label has few values, whatever jobs there are: no job, run, namespace or address of a caller becomes one.

mod cluster;
mod node;
mod text;

use warp::http::header::{CONTENT_TYPE, HeaderValue};
use warp::reply::Response;

use crate::http::problem::HttpResult;
use crate::http::request::caller::Call;
use crate::http::state::ApiState;

const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// `GET /metrics`
pub(in crate::http) async fn read(call: Call) -> HttpResult {
    call.no_query()?;
    let mut response = Response::new(metrics(&call.api).await.into());
    response.headers_mut().insert(CONTENT_TYPE, FORMAT);
    Ok(response)
}

async fn metrics(api: &ApiState) -> String {
    let (mut text, counts) = (String::new(), api.engine.counts());
    node::counts(&counts, &mut text);
    node::last_answer(&counts, &mut text);
    node::events(&api.events.counts(), &mut text);
    node::alerts(&api.alerts.counts(), &mut text);
    node::process(api, &mut text);
    node::disks(api, &mut text).await;
    if let Some(server) = api.store.server() {
        node::server(&server, &mut text);
    }
    if let Some(spans) = &api.spans {
        node::spans(spans, &mut text);
    }
    if let Some(tls) = &api.tls {
        node::encryption(tls, &mut text);
    }
    cluster::write(api, &mut text).await;
    text
}
