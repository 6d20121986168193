// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Nodes, events, the audit log, and how a node stands.

use crate::call::Call;
use crate::models::*;
use crate::{Client, Error};

/// Parameters of [`Client::list_changes`].
#[derive(Debug, Clone, Default)]
pub struct ListChanges {
    /// One namespace, or `*` for all; `default` if it is not given.
    pub namespace: Option<String>,
    /// Only of this job.
    pub job: Option<String>,
    /// Changes by the token of this name.
    pub who: Option<String>,
    /// Changes of this kind. One of `job.created`, `job.updated`, `job.deleted`, `job.paused`, `job.resumed`, `job.run`, `run.cancelled`, `losses.accepted`, `alert.put`, `alert.deleted`, `alert.tested`, `delivery.resent`.
    pub action: Option<String>,
    /// Due at this time or later.
    pub since: Option<String>,
    /// Due before this time.
    pub until: Option<String>,
    /// How many items a page has at the most.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Parameters of [`Client::read_events`].
#[derive(Debug, Clone, Default)]
pub struct ReadEvents {
    /// One namespace, or `*` for all; `default` if it is not given.
    pub namespace: Option<String>,
    /// Only of this job.
    pub job: Option<String>,
    /// Types of events, separated by commas; all but `audit.written` if it is not given.
    pub types: Option<String>,
    /// As `Last-Event-ID`, for readers that send no header; the header goes before.
    pub since: Option<String>,
    /// The `id` of the last event that was read, to go on behind it.
    pub last_event_id: Option<String>,
}

impl Client {
    /// Tell that the process answers.
    ///
    /// `GET /healthz`. Needs no token.
    pub fn is_alive(&self) -> Result<Health, Error> {
        let call = Call::new("GET", "/healthz");
        self.json(&call)
    }

    /// Read the counters in the text format of Prometheus.
    ///
    /// `GET /metrics`. Needs a token with the role viewer.
    pub fn read_metrics(&self) -> Result<String, Error> {
        let call = Call::new("GET", "/metrics");
        self.text(&call)
    }

    /// Read this document.
    ///
    /// `GET /openapi.json`. Needs a token with the role viewer.
    pub fn read_document(&self) -> Result<serde_json::Value, Error> {
        let call = Call::new("GET", "/openapi.json");
        self.json(&call)
    }

    /// Tell whether the node schedules.
    ///
    /// `GET /readyz`. Needs no token.
    pub fn is_ready(&self) -> Result<Health, Error> {
        let call = Call::new("GET", "/readyz");
        self.json(&call)
    }

    /// List who changed what, newest first.
    ///
    /// `GET /v1/audit`. Needs a token with the role viewer.
    pub fn list_changes(&self, query: &ListChanges) -> Result<AuditPage, Error> {
        let call = Call::new("GET", "/v1/audit")
            .with("namespace", query.namespace.as_ref())
            .with("job", query.job.as_ref())
            .with("who", query.who.as_ref())
            .with("action", query.action.as_ref())
            .with("since", query.since.as_ref())
            .with("until", query.until.as_ref())
            .with("limit", query.limit.as_ref())
            .with("cursor", query.cursor.as_ref());
        self.json(&call)
    }

    /// List sessions and what they hold, and lost commits.
    ///
    /// `GET /v1/cluster`. Needs a token with the role viewer.
    pub fn read_cluster(&self) -> Result<Cluster, Error> {
        let call = Call::new("GET", "/v1/cluster");
        self.json(&call)
    }

    /// Go on although the database lost commits.
    ///
    /// `POST /v1/cluster/accept`. Needs a token with the role admin.
    pub fn accept_lost_commits(&self) -> Result<LostCommits, Error> {
        let call = Call::new("POST", "/v1/cluster/accept");
        self.json(&call)
    }

    /// Read what happens as server-sent events, until the caller goes.
    ///
    /// `GET /v1/events`. Needs a token with the role viewer.
    pub fn read_events(&self, query: &ReadEvents) -> Result<crate::Events, Error> {
        let call = Call::new("GET", "/v1/events")
            .with("namespace", query.namespace.as_ref())
            .with("job", query.job.as_ref())
            .with("types", query.types.as_ref())
            .with("since", query.since.as_ref())
            .header("Last-Event-ID", query.last_event_id.as_ref());
        self.events(&call)
    }

    /// List the executors of this node.
    ///
    /// `GET /v1/executors`. Needs a token with the role viewer.
    pub fn list_executors(&self) -> Result<Executors, Error> {
        let call = Call::new("GET", "/v1/executors");
        self.json(&call)
    }

    /// Make a link that opens the page, once, within a minute.
    ///
    /// `POST /v1/sign-in-links`. Needs a token with the role viewer.
    pub fn make_sign_in_link(&self) -> Result<SignInLink, Error> {
        let call = Call::new("POST", "/v1/sign-in-links");
        self.json(&call)
    }
}
