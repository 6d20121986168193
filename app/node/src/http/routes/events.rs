//! `GET /v1/events`: what happens in the cluster, as server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use carillon_domain::name::check_job_name;
use futures_util::StreamExt;
use warp::Reply;
use warp::http::StatusCode;
use warp::http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};

use crate::events::{Filter, Kind, Kinds, NotSubscribed};
use crate::http::problem::{HttpResult, Problem};
use crate::http::request::caller::Call;
use crate::http::request::query::Namespaces;

const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Tells nginx to pass on each event at once.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// `GET /v1/events`
pub(in crate::http) async fn read(call: Call) -> HttpResult {
    let (filter, since) = asked(&call)?;
    // A mark that cannot be read is as good as one that is too old: the reader is told to load everything anew. A browser sends the
    // header when it connects again, and the address stays the same: so the header goes before.
    let last = call.headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().to_owned());
    let resume = last.or(since);
    let api = Arc::clone(&call.api);
    let (name, fingerprint) = (call.caller.name().to_owned(), call.caller.fingerprint());
    let still_admitted =
        Box::new(move || api.tokens.named(&name).is_some_and(|token| token.fingerprint() == fingerprint));
    let reader = call.api.events.subscribe(filter, resume.as_deref(), still_admitted).await?;
    let stream = reader.into_stream().map(Ok::<_, Infallible>);
    let mut response = warp::reply::stream(stream).into_response();
    response.headers_mut().insert(CONTENT_TYPE, EVENT_STREAM);
    response.headers_mut().insert(UNBUFFERED.0, UNBUFFERED.1);
    Ok(response)
}

/// Which events are asked for, and since when.
fn asked(call: &Call) -> Result<(Filter, Option<String>), Problem> {
    let mut query = call.query()?;
    let since = query.text("since");
    let namespaces = query.namespaces();
    let job = query.text("job");
    if let Some(Err(error)) = job.as_deref().map(check_job_name) {
        query.fault("job", error.to_string());
    }
    if job.is_some() && namespaces == Namespaces::All {
        query.fault("job", "a job is in one namespace: name that instead of *");
    }
    let kinds = match query.text("types").map(|text| kinds(&text)) {
        None => Kinds::USUAL,
        Some(Ok(kinds)) => kinds,
        Some(Err(message)) => {
            query.fault("types", message);
            Kinds::USUAL
        }
    };
    query.finish()?;
    let namespaces = match namespaces {
        Namespaces::One(namespace) => {
            call.caller.enters(&namespace)?;
            Some(vec![namespace])
        }
        // A listing over all is refused to a token for some. A page of several namespaces needs one stream, as a browser opens few.
        Namespaces::All => call.caller.namespaces().map(<[String]>::to_vec),
    };
    Ok((Filter { namespaces, job, kinds }, since))
}

fn kinds(text: &str) -> Result<Kinds, String> {
    let named = |name: &str| Kind::ALL.into_iter().find(|kind| kind.as_str() == name);
    let known = || Kind::ALL.map(Kind::as_str).join(", ");
    let wrong = |name: &str| {
        let shown: String = name.chars().take(64).collect();
        format!("\"{shown}\" is no type of event; use some of {}, with commas between them", known())
    };
    let kinds: Result<Vec<Kind>, String> = text.split(',').map(|name| named(name).ok_or_else(|| wrong(name))).collect();
    kinds.map(|kinds| Kinds::of(&kinds))
}

impl From<NotSubscribed> for Problem {
    fn from(reason: NotSubscribed) -> Self {
        let detail = match reason {
            NotSubscribed::Full(readers) => {
                format!("{readers} readers have events from this node already; read from another node, or later")
            }
            NotSubscribed::Away(waited) => format!("the database has not answered within {waited:?}; try again"),
            NotSubscribed::Ending => "this node ends; read from another one".to_owned(),
        };
        let problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        problem.with_header(RETRY_AFTER, HeaderValue::from_static("5"))
    }
}
