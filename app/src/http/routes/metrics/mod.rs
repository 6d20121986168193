//! `/metrics` in the text format of Prometheus.
//!
//! Every label has few values, whatever jobs there are: no job, run, namespace or address of a caller becomes one.

mod cluster;
mod node;
mod text;

use std::sync::Arc;

use warp::filters::BoxedFilter;
use warp::http::header::{CONTENT_TYPE, HeaderValue};
use warp::reply::Response;
use warp::{Filter, path};

use crate::config::Role;
use crate::http::problem::{HttpResult, answer};
use crate::http::request::caller::{Admitted, call, reading};
use crate::http::state::ApiState;

const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// `GET /metrics`
pub(in crate::http) fn route(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let route = path!("metrics").and(reading()).and(call(api, Role::Viewer));
    let handler = async |admitted: Admitted| -> HttpResult {
        let call = admitted?;
        call.no_query()?;
        let mut response = Response::new(metrics(&call.api).await.into());
        response.headers_mut().insert(CONTENT_TYPE, FORMAT);
        Ok(response)
    };
    route.then(move |call| answer(handler(call))).boxed()
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
