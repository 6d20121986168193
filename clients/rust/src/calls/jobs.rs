// Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.

//! Jobs and schedules.

use crate::call::Call;
use crate::models::*;
use crate::{Client, Error};

/// Parameters of [`Client::list_jobs`].
#[derive(Debug, Clone, Default)]
pub struct ListJobs {
    /// One namespace, or `*` for all; `default` if it is not given.
    pub namespace: Option<String>,
    /// Names that begin so.
    pub prefix: Option<String>,
    /// `KEY` or `KEY=VALUE`.
    pub label: Option<String>,
    /// How the jobs stand. One of `idle`, `prepared`, `executing`.
    pub state: Option<String>,
    /// Paused jobs, or the others.
    pub paused: Option<bool>,
    /// How many items a page has at the most.
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Parameters of [`Client::delete_job`].
#[derive(Debug, Clone, Default)]
pub struct DeleteJob {
    /// The namespace of the job; `default` if it is not given.
    pub namespace: Option<String>,
    /// The ETag of the definition as it was read; 412 if it has changed since.
    pub if_match: Option<String>,
}

/// Parameters of [`Client::put_job`].
#[derive(Debug, Clone, Default)]
pub struct PutJob {
    /// The namespace of the job; `default` if it is not given.
    pub namespace: Option<String>,
    /// The ETag of the definition as it was read; 412 if it has changed since.
    pub if_match: Option<String>,
    /// Only if there is no such job; 412 if there is one.
    pub if_none_match: Option<String>,
}

/// Parameters of [`Client::next_due_times`].
#[derive(Debug, Clone, Default)]
pub struct NextDueTimes {
    /// The namespace of the job; `default` if it is not given.
    pub namespace: Option<String>,
    /// How many due times.
    pub count: Option<i64>,
}

/// Parameters of [`Client::plan_job`].
#[derive(Debug, Clone, Default)]
pub struct PlanJob {
    /// The namespace of the job; `default` if it is not given.
    pub namespace: Option<String>,
    /// The ETag of the definition as it was read; 412 if it has changed since.
    pub if_match: Option<String>,
    /// Only if there is no such job; 412 if there is one.
    pub if_none_match: Option<String>,
}

/// Parameters of [`Client::explain_due_time`].
#[derive(Debug, Clone, Default)]
pub struct ExplainDueTime {
    /// The namespace of the job; `default` if it is not given.
    pub namespace: Option<String>,
    /// The due time; the latest that has passed if it is not given.
    pub at: Option<String>,
}

impl Client {
    /// List jobs in the order of their names.
    ///
    /// `GET /v1/jobs`. Needs a token with the role viewer.
    pub fn list_jobs(&self, query: &ListJobs) -> Result<JobPage, Error> {
        let call = Call::new("GET", "/v1/jobs")
            .with("namespace", query.namespace.as_ref())
            .with("prefix", query.prefix.as_ref())
            .with("label", query.label.as_ref())
            .with("state", query.state.as_ref())
            .with("paused", query.paused.as_ref())
            .with("limit", query.limit.as_ref())
            .with("cursor", query.cursor.as_ref());
        self.json(&call)
    }

    /// Create a job.
    ///
    /// `POST /v1/jobs`. Needs a token with the role admin.
    pub fn create_job(&self, namespace: Option<&str>, body: &JobDefinition) -> Result<Job, Error> {
        let call = Call::new("POST", "/v1/jobs")
            .with("namespace", namespace)
            .body(Some(body))?;
        self.json(&call)
    }

    /// Delete a job; a run goes on, and the history stays.
    ///
    /// `DELETE /v1/jobs/{name}`. Needs a token with the role admin.
    pub fn delete_job(&self, name: &str, query: &DeleteJob) -> Result<(), Error> {
        let call = Call::new("DELETE", "/v1/jobs/{name}")
            .at("name", name)
            .with("namespace", query.namespace.as_ref())
            .header("If-Match", query.if_match.as_ref());
        self.nothing(&call)
    }

    /// Read a job and how it stands.
    ///
    /// `GET /v1/jobs/{name}`. Needs a token with the role viewer.
    pub fn read_job(&self, name: &str, namespace: Option<&str>) -> Result<Job, Error> {
        let call = Call::new("GET", "/v1/jobs/{name}")
            .at("name", name)
            .with("namespace", namespace);
        self.json(&call)
    }

    /// Create or replace a job.
    ///
    /// `PUT /v1/jobs/{name}`. Needs a token with the role admin.
    pub fn put_job(&self, name: &str, query: &PutJob, body: &JobDefinition) -> Result<Job, Error> {
        let call = Call::new("PUT", "/v1/jobs/{name}")
            .at("name", name)
            .with("namespace", query.namespace.as_ref())
            .header("If-Match", query.if_match.as_ref())
            .header("If-None-Match", query.if_none_match.as_ref())
            .body(Some(body))?;
        self.json(&call)
    }

    /// List the coming due times of a job.
    ///
    /// `GET /v1/jobs/{name}/next`. Needs a token with the role viewer.
    pub fn next_due_times(&self, name: &str, query: &NextDueTimes) -> Result<DueTimes, Error> {
        let call = Call::new("GET", "/v1/jobs/{name}/next")
            .at("name", name)
            .with("namespace", query.namespace.as_ref())
            .with("count", query.count.as_ref());
        self.json(&call)
    }

    /// Keep a job from coming up; a run goes on.
    ///
    /// `POST /v1/jobs/{name}/pause`. Needs a token with the role operator.
    pub fn pause_job(&self, name: &str, namespace: Option<&str>, body: Option<&PauseRequest>) -> Result<Job, Error> {
        let call = Call::new("POST", "/v1/jobs/{name}/pause")
            .at("name", name)
            .with("namespace", namespace)
            .body(body)?;
        self.json(&call)
    }

    /// Tell what a put would change, and store nothing.
    ///
    /// `POST /v1/jobs/{name}/plan`. Needs a token with the role admin.
    pub fn plan_job(&self, name: &str, query: &PlanJob, body: &JobDefinition) -> Result<JobPlan, Error> {
        let call = Call::new("POST", "/v1/jobs/{name}/plan")
            .at("name", name)
            .with("namespace", query.namespace.as_ref())
            .header("If-Match", query.if_match.as_ref())
            .header("If-None-Match", query.if_none_match.as_ref())
            .body(Some(body))?;
        self.json(&call)
    }

    /// End a pause.
    ///
    /// `POST /v1/jobs/{name}/resume`. Needs a token with the role operator.
    pub fn resume_job(&self, name: &str, namespace: Option<&str>) -> Result<Job, Error> {
        let call = Call::new("POST", "/v1/jobs/{name}/resume")
            .at("name", name)
            .with("namespace", namespace);
        self.json(&call)
    }

    /// Run a job now; params for this run need the role admin.
    ///
    /// `POST /v1/jobs/{name}/run`. Needs a token with the role operator.
    pub fn run_job(&self, name: &str, namespace: Option<&str>, body: Option<&RunRequest>) -> Result<RunAsked, Error> {
        let call = Call::new("POST", "/v1/jobs/{name}/run")
            .at("name", name)
            .with("namespace", namespace)
            .body(body)?;
        self.json(&call)
    }

    /// Tell why a due time ran, did not, or has not yet.
    ///
    /// `GET /v1/jobs/{name}/why`. Needs a token with the role viewer.
    pub fn explain_due_time(&self, name: &str, query: &ExplainDueTime) -> Result<Explanation, Error> {
        let call = Call::new("GET", "/v1/jobs/{name}/why")
            .at("name", name)
            .with("namespace", query.namespace.as_ref())
            .with("at", query.at.as_ref());
        self.json(&call)
    }

    /// Create or replace up to 10,000 jobs, each with a result of its own.
    ///
    /// `POST /v1/jobs:batch`. Needs a token with the role admin.
    pub fn put_jobs(&self, namespace: Option<&str>, body: &Batch) -> Result<BatchResult, Error> {
        let call = Call::new("POST", "/v1/jobs:batch")
            .with("namespace", namespace)
            .body(Some(body))?;
        self.json(&call)
    }

    /// Describe a schedule and list its due times.
    ///
    /// `POST /v1/schedules/explain`. Needs a token with the role viewer.
    pub fn explain_schedule(&self, body: &ScheduleQuestion) -> Result<ScheduleAnswer, Error> {
        let call = Call::new("POST", "/v1/schedules/explain")
            .body(Some(body))?;
        self.json(&call)
    }
}
