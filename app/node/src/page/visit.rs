//! A request for a page: by whom, for which state of it, in which time zone.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::time::Timestamp;
use carillon_store::Author;
use chrono_tz::Tz;
use warp::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap};
use warp::http::{Method, StatusCode};

use crate::config::{PublicUrl, Role};
use crate::events::Position;
use crate::http::connection::Connection;
use crate::http::problem::Problem;
use crate::http::request::access::Caller;
use crate::http::request::author::author;
use crate::http::request::body::{BodyStream, collect};
use crate::http::request::session::{Session, cookie, is_csrf};
use crate::http::state::ApiState;
use crate::page::links::Links;
use crate::page::params::Params;

/// The cookie with the reader's time zone, which the script sets.
const ZONE_COOKIE: &str = "carillon_zone";
/// The longest body of a form, in bytes.
const LONGEST_FORM: usize = 256 * 1024;

/// A request, whoever makes it.
pub(crate) struct Request {
    pub api: Arc<ApiState>,
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub params: Params,
    /// The connection that it came over.
    pub connection: Connection,
    pub body: Option<BodyStream>,
}

/// A request of somebody who has signed in.
pub(crate) struct Visit {
    pub api: Arc<ApiState>,
    pub caller: Caller,
    /// The caller as the audit log names it.
    pub author: Author,
    /// The CSRF token of the session; `None` for a bearer token, which no browser sends by itself.
    pub csrf: Option<String>,
    pub path: String,
    pub params: Params,
    pub headers: HeaderMap,
    pub links: Links,
    /// Scheme and host under which the reader reaches this server.
    pub origin: String,
    /// The reader's zone.
    pub zone: Tz,
    /// Whether the zone was told, by the address or by the cookie.
    pub zone_known: bool,
    /// The database's time at which the page is made.
    pub now: Timestamp,
    /// Where the events go on from here, if this node looks at them: taken before anything is read.
    pub position: Option<Position>,
}

/// Why a page is not shown.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Nobody has signed in.
    SignIn,
    /// Anything else.
    Problem(Problem),
}

impl<E: Into<Problem>> From<E> for Fault {
    fn from(error: E) -> Self {
        Fault::Problem(error.into())
    }
}

impl Request {
    /// Addresses of this server.
    pub fn links(&self) -> Links {
        Links::under(self.api.base_path.as_str())
    }

    /// The host that the request names.
    fn host(&self) -> &str {
        self.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
    }

    /// Whether the reader speaks TLS, with this server or with the proxy of `http.public_url`. Headers that anybody may send, such as
    /// `X-Forwarded-Proto`, are not believed.
    pub fn is_over_tls(&self) -> bool {
        let public = self.api.public_url.as_ref().filter(|url| url.is_named(self.host()));
        self.connection.tls || public.is_some_and(PublicUrl::is_https)
    }

    /// Scheme and host under which the reader reaches this server.
    fn origin(&self) -> String {
        format!("{}://{}", if self.is_over_tls() { "https" } else { "http" }, self.host())
    }

    /// Who has signed in by cookie.
    pub async fn session(&self) -> Result<Option<Session>, Problem> {
        Ok(self.api.sessions.of(&self.headers, &self.api.tokens).await?)
    }

    /// Reads the request of somebody who may do as much as `role`.
    pub async fn visit(&self, role: Role) -> Result<Visit, Fault> {
        let (caller, csrf) = if self.headers.contains_key(AUTHORIZATION) {
            (self.api.tokens.caller(&self.headers, None)?, None)
        } else {
            let session = self.session().await?.ok_or(Fault::SignIn)?;
            (session.caller, Some(session.csrf))
        };
        caller.needs(role)?;
        let told = self.params.get("zone").or_else(|| cookie(&self.headers, ZONE_COOKIE));
        let zone: Option<Tz> = told.and_then(|name| name.parse().ok());
        let position = self.api.events.position();
        Ok(Visit {
            api: Arc::clone(&self.api),
            author: author(caller.name(), self.connection, &self.headers),
            caller,
            csrf,
            path: self.path.clone(),
            params: self.params.clone(),
            headers: self.headers.clone(),
            links: self.links(),
            origin: self.origin(),
            zone: zone.unwrap_or(Tz::UTC),
            zone_known: zone.is_some(),
            now: self.api.store.now().await?,
            position,
        })
    }

    /// Reads a form, and who sends it: it must carry the CSRF token of the session.
    pub async fn form(&mut self, role: Role) -> Result<(Visit, Params), Fault> {
        let visit = self.visit(role).await?;
        let form = self.fields().await?;
        if let Some(csrf) = &visit.csrf {
            let session = Session { caller: visit.caller.clone(), csrf: csrf.clone() };
            if !is_csrf(&session, form.get("csrf").unwrap_or_default()) {
                let detail = "the form is not from this session: open the page again and repeat what you did";
                return Err(Problem::new(StatusCode::FORBIDDEN, detail).into());
            }
        }
        Ok((visit, form))
    }

    /// Reads a form that anybody may send.
    pub async fn fields(&mut self) -> Result<Params, Problem> {
        let given = self.headers.get(CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
        let essence = given.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            let detail = "a page takes forms; programs use the API under /v1 with JSON";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let body = self.body.take().ok_or_else(|| Problem::bad("the body was read already"))?;
        let text = String::from_utf8(collect(body, LONGEST_FORM).await?);
        Ok(Params::parse(&text.map_err(|_| Problem::bad("the form is not UTF-8"))?))
    }
}

impl Visit {
    /// The answer to a question about the database, which followers share.
    pub async fn shared<T: Send + Sync + 'static>(
        &self,
        question: String,
        read: impl AsyncFnOnce() -> Result<T, Fault>,
    ) -> Result<Arc<T>, Fault> {
        self.api.reads.get(self.api.events.version(), question, read).await
    }

    /// The same for an answer that changes seldom: it may be `good_for` old.
    pub async fn kept<T: Send + Sync + 'static>(
        &self,
        good_for: Duration,
        question: String,
        read: impl AsyncFnOnce() -> Result<T, Fault>,
    ) -> Result<Arc<T>, Fault> {
        self.api.reads.kept(good_for, question, read).await
    }

    /// The same for an answer that takes long to read: it is read again before it is too old, and nobody waits meanwhile.
    pub async fn ahead<T: Send + Sync + 'static, F>(
        &self,
        (good_for, version): (Duration, Option<u64>),
        question: String,
        read: impl FnOnce() -> F,
    ) -> Result<Arc<T>, Fault>
    where
        F: Future<Output = Result<T, Fault>> + Send + 'static,
    {
        self.api.reads.ahead((good_for, version), question, read).await
    }

    /// Whether the caller may do as much as `role`: a button that would be refused is not shown.
    pub fn may(&self, role: Role) -> bool {
        self.caller.role() >= role
    }

    /// The part of the page that is asked for; `None` for all of it.
    pub fn fragment(&self) -> Option<&str> {
        self.params.get("fragment")
    }

    /// The state of the page as its address says it, without what belongs to one request only.
    pub fn state(&self) -> Params {
        self.params.without(|key| matches!(key, "fragment" | "said") || key.starts_with("undo-"))
    }

    /// The same page in another state.
    pub fn here(&self, key: &str, value: Option<&str>) -> String {
        self.links.with(&self.path, &self.state().with("cursor", None).with(key, value))
    }
}
