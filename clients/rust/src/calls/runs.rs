// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Runs and their output.

use crate::call::Call;
use crate::models::*;
use crate::{Client, Error};

/// Parameters of [`Client::list_runs_of_job`].
#[derive(Debug, Clone, Default)]
pub struct ListRunsOfJob {
    /// The namespace of the job; `default` if it is not given.
    pub namespace: Option<String>,
    /// How the runs stand. One of `running`, `succeeded`, `failed`, `timed_out`, `cancelled`, `lost`, `skipped`.
    pub status: Option<String>,
    /// Due at this time or later.
    pub since: Option<String>,
    /// Due before this time.
    pub until: Option<String>,
    /// How many items a page has at the most.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Parameters of [`Client::list_runs`].
#[derive(Debug, Clone, Default)]
pub struct ListRuns {
    /// One namespace, or `*` for all; `default` if it is not given.
    pub namespace: Option<String>,
    /// How the runs stand. One of `running`, `succeeded`, `failed`, `timed_out`, `cancelled`, `lost`, `skipped`.
    pub status: Option<String>,
    /// Due at this time or later.
    pub since: Option<String>,
    /// Due before this time.
    pub until: Option<String>,
    /// How many items a page has at the most.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// List the runs of a job, newest first.
    ///
    /// `GET /v1/jobs/{name}/runs`. Needs a token with the role viewer.
    pub fn list_runs_of_job(&self, name: &str, query: &ListRunsOfJob) -> Result<RunPage, Error> {
        let call = Call::new("GET", "/v1/jobs/{name}/runs")
            .at("name", name)
            .with("namespace", query.namespace.as_ref())
            .with("status", query.status.as_ref())
            .with("since", query.since.as_ref())
            .with("until", query.until.as_ref())
            .with("limit", query.limit.as_ref())
            .with("cursor", query.cursor.as_ref());
        self.json(&call)
    }

    /// List runs, newest first.
    ///
    /// `GET /v1/runs`. Needs a token with the role viewer.
    pub fn list_runs(&self, query: &ListRuns) -> Result<RunPage, Error> {
        let call = Call::new("GET", "/v1/runs")
            .with("namespace", query.namespace.as_ref())
            .with("status", query.status.as_ref())
            .with("since", query.since.as_ref())
            .with("until", query.until.as_ref())
            .with("limit", query.limit.as_ref())
            .with("cursor", query.cursor.as_ref());
        self.json(&call)
    }

    /// Read a run and its output.
    ///
    /// `GET /v1/runs/{id}`. Needs a token with the role viewer.
    pub fn read_run(&self, id: &str) -> Result<RunDetails, Error> {
        let call = Call::new("GET", "/v1/runs/{id}")
            .at("id", id);
        self.json(&call)
    }

    /// Ask a run to end: 202 while it ends, 200 if it had not started.
    ///
    /// `POST /v1/runs/{id}/cancel`. Needs a token with the role operator.
    pub fn cancel_run(&self, id: &str) -> Result<Run, Error> {
        let call = Call::new("POST", "/v1/runs/{id}/cancel")
            .at("id", id);
        self.json(&call)
    }

    /// Read the output of a run as it was printed.
    ///
    /// `GET /v1/runs/{id}/output`. Needs a token with the role viewer.
    pub fn read_output(&self, id: &str, follow: Option<bool>) -> Result<crate::Output, Error> {
        let call = Call::new("GET", "/v1/runs/{id}/output")
            .at("id", id)
            .with("follow", follow);
        self.output(&call)
    }
}
