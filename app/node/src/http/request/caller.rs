//! A request that was let in.
//!
//! The order is: name and origin (403), token (401), role (403).

use std::sync::Arc;

use carillon_domain::name::check_job_name;
use carillon_store::{Author, JobKey};
use serde_json::Value;
use warp::http::header::{AUTHORIZATION, HeaderMap};
use warp::http::{Method, StatusCode};

use crate::config::Role;
use crate::http::connection::Connection;
use crate::http::problem::Problem;
use crate::http::request::access::Caller;
use crate::http::request::author::author;
use crate::http::request::body::{self, BodyStream};
use crate::http::request::query::{Query, decode};
use crate::http::request::session::is_csrf;
use crate::http::state::ApiState;
use carillon_json::Fields;

/// The header that says that a write by cookie comes from a page of this server.
const CSRF: &str = "carillon-csrf";

/// A request that was let in.
pub(crate) struct Call {
    pub api: Arc<ApiState>,
    pub caller: Caller,
    /// The caller as the audit log names it.
    pub author: Author,
    /// The name in the path, as it stands there: of a job, of a run. Empty where the path has none.
    pub segment: String,
    pub headers: HeaderMap,
    query: String,
    body: Option<BodyStream>,
}

/// A request that has come in.
pub(in crate::http) struct Incoming {
    pub api: Arc<ApiState>,
    pub method: Method,
    pub headers: HeaderMap,
    pub query: String,
    pub connection: Connection,
    pub body: BodyStream,
}

/// The caller, by a bearer token or by the cookie of the page where no token is given.
async fn caller(
    api: &ApiState,
    method: &Method,
    headers: &HeaderMap,
    connection: Connection,
) -> Result<Caller, Problem> {
    let session = match headers.contains_key(AUTHORIZATION) {
        true => None,
        false => api.sessions.of(headers, &api.tokens).await?,
    };
    let Some(session) = session else { return api.tokens.caller(headers, connection.certificate) };
    let given = headers.get(CSRF).and_then(|value| value.to_str().ok());
    if method.is_safe() || given.is_some_and(|given| is_csrf(&session, given)) {
        return Ok(session.caller);
    }
    let detail = format!("a write by cookie needs the header {CSRF}, or send a token: Authorization: Bearer TOKEN");
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

impl Call {
    /// Lets in a request whose caller has the role.
    pub(in crate::http) async fn admit(request: Incoming, role: Role, segment: &str) -> Result<Self, Problem> {
        let Incoming { api, method, headers, query, connection, body } = request;
        api.hosts.check(&headers)?;
        let caller = caller(&api, &method, &headers, connection).await?;
        caller.needs(role)?;
        let author = author(caller.name(), connection, &headers);
        Ok(Self { api, caller, author, segment: segment.to_owned(), headers, query, body: Some(body) })
    }

    /// The parameters of the query.
    pub fn query(&self) -> Result<Query, Problem> {
        Query::parse(&self.query)
    }

    /// Refuses a query of any kind.
    pub fn no_query(&self) -> Result<(), Problem> {
        self.query()?.finish()
    }

    /// The namespace of the query, if it is there, and nothing else in it.
    pub fn namespace_only(&self) -> Result<Option<String>, Problem> {
        let mut query = self.query()?;
        let namespace = query.namespace();
        query.finish()?;
        Ok(namespace)
    }

    /// The job that path and query address; the caller may go there.
    pub fn job_key(&self) -> Result<JobKey, Problem> {
        let namespace = self.namespace_only()?;
        self.key(namespace)
    }

    /// As [`Call::job_key`], with the query already read.
    pub fn key(&self, namespace: Option<String>) -> Result<JobKey, Problem> {
        let namespace = namespace.unwrap_or_else(|| "default".into());
        let name = job_name(&self.segment)?;
        self.caller.enters(&namespace)?;
        Ok(JobKey { namespace, name })
    }

    /// The body as JSON.
    pub async fn json(&mut self, limit: usize) -> Result<Value, Problem> {
        self.read(limit, false).await
    }

    /// The body as JSON, `{}` where there is none.
    pub async fn optional_json(&mut self) -> Result<Value, Problem> {
        self.read(body::ORDINARY, true).await
    }

    /// The body is empty or `{}`.
    pub async fn nothing_more(&mut self) -> Result<(), Problem> {
        let body = self.optional_json().await?;
        Fields::of(body, "this").and_then(Fields::finish).map_err(Problem::fields)
    }

    async fn read(&mut self, limit: usize, may_be_empty: bool) -> Result<Value, Problem> {
        let body = self.body.take().ok_or_else(|| Problem::bad("the body was read already"))?;
        body::json(&self.headers, body, limit, may_be_empty).await
    }
}

/// The name of a job as a segment of a path.
pub(crate) fn job_name(segment: &str) -> Result<String, Problem> {
    let name = decode(segment).ok_or_else(|| Problem::bad("the path is not percent-encoded UTF-8"))?;
    check_job_name(&name).map_err(|error| Problem::field("name", error.to_string()))?;
    Ok(name)
}
