//! The page: what a browser sees of a server, made as HTML by the server itself.
//!
//! A screen is a function from a [`Visit`](visit::Visit) to a [`View`](layout::View): it reads, and answers markup. The layout puts the
//! frame around it, or leaves it away where only a fragment is asked for. So there is one rendering of everything, and the script
//! renders nothing. Everything works by links and forms; the script adds what moves.

mod address;
mod answer;
mod assets;
mod chart;
mod layout;
pub(crate) mod links;
mod outcome;
mod params;
mod screens;
mod sign_in;
mod usual;
mod visit;
mod zone;

use std::sync::Arc;

use serde_json::json;
use warp::Filter;
use warp::filters::BoxedFilter;
use warp::http::header::HeaderMap;
use warp::http::{Method, StatusCode};
use warp::path::FullPath;
use warp::reply::Response;

use crate::http::connection::{Connection, connection};
use crate::http::problem::{HttpResult, Problem, json_response};
use crate::http::request::access::unauthorized;
use crate::http::request::body;
use crate::http::request::caller::Call;
use crate::http::request::query::raw_query;
use crate::http::request::session::LINK_LIVES_FOR;
use crate::http::state::ApiState;
use crate::page::address::{Address, is_browser};
use crate::page::layout::Shown;
use crate::page::params::Params;
use crate::page::visit::{Fault, Request};

/// Every page, action of a page and static file. A path that is none of them is left to the API.
pub(crate) fn routes(api: &Arc<ApiState>) -> BoxedFilter<(Response,)> {
    let api = Arc::clone(api);
    let address = warp::path::full().and(warp::method()).and(warp::header::headers_cloned()).and_then(
        async |path: FullPath, method: Method, headers: HeaderMap| {
            Address::of(path.as_str(), &method, &headers).ok_or_else(warp::reject::not_found)
        },
    );
    address
        .and(warp::path::full())
        .and(warp::method())
        .and(warp::header::headers_cloned())
        .and(raw_query())
        .and(connection())
        .and(warp::body::stream())
        .then(
            move |address: Address, path: FullPath, method, headers, query: String, connection: Connection, stream| {
                let mut request = Request {
                    api: Arc::clone(&api),
                    method,
                    path: path.as_str().to_owned(),
                    headers,
                    params: Params::parse(&query),
                    connection,
                    body: Some(body::boxed(stream)),
                };
                async move { respond(address, &mut request).await }
            },
        )
        .boxed()
}

async fn respond(address: Address, request: &mut Request) -> Response {
    if let Address::Static(name) = &address {
        return assets::response(name, &request.headers).unwrap_or_else(|| {
            let detail = "there is no such file: open the page again, this server may have been upgraded";
            Problem::new(StatusCode::NOT_FOUND, detail).into_response()
        });
    }
    let shown = match request.api.hosts.check(&request.headers) {
        Ok(()) => address.show(request).await,
        Err(problem) => Err(problem.into()),
    };
    if !request.method.is_safe() {
        // A change is seen at once by its author.
        request.api.reads.forget();
    }
    let for_people = is_browser(&request.headers);
    match shown {
        Ok(Shown::Response(response)) => response,
        Ok(Shown::View(visit, view)) => layout::page(&visit, &view),
        Err(Fault::SignIn) if for_people => sign_in::ask(request),
        Err(Fault::Problem(problem)) if for_people => layout::problem(request, &problem),
        Err(Fault::SignIn) => unauthorized("a token is needed: Authorization: Bearer TOKEN").into_response(),
        Err(Fault::Problem(problem)) => problem.into_response(),
    }
}

/// `POST /v1/sign-in-links`: a link that opens the page and signs in with the caller's token, once, within a minute.
pub(crate) async fn make_sign_in_link(mut call: Call) -> HttpResult {
    call.no_query()?;
    call.nothing_more().await?;
    let secret = call.api.sessions.make_link(&call.caller).await?;
    // Behind the address by which the caller reaches the server, whatever a proxy puts before it.
    let path = format!("/sign-in/link/{secret}");
    let expires_in_secs = LINK_LIVES_FOR.as_secs();
    Ok(json_response(StatusCode::CREATED, &json!({"path": path, "expires_in": format!("{expires_in_secs}s")})))
}
