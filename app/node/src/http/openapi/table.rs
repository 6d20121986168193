//! Every call of the API and what performs it. The routes, their roles, the document, the answers 405 and the tests follow from this table.

use warp::http::Method;

use crate::config::Role::{Admin, Operator, Viewer};

use super::operation::{Handler, Operation, delete, get, json, of_type, open, post, put};
use super::parameter::Parameter::{
    Action, At, Count, Cursor, DeliveryState, Follow, IfMatch, IfNoneMatch, Job, Label, LastEventId, Limit, Namespace,
    Namespaces, Paused, Prefix, Route, Since, SinceEvent, State, Status, Types, Until, Who,
};
use crate::http::routes::{
    actions, alerts, audit, batch, cluster, events, health, jobs, listing, metrics, output, plan, runs,
};
use crate::page;

/// The handler that calls this function for every caller with a token.
macro_rules! by {
    ($handler:path) => {
        Handler::Admitted(Viewer, |call| Box::pin($handler(call)))
    };
}

const TEXT: &str = "text/plain";
const EVENTS: &str = "text/event-stream";
const BYTES: &str = "application/octet-stream";

/// The calls, those of one path together.
pub(in crate::http) const OPERATIONS: &[Operation] = &[
    get("/v1/jobs", "listJobs", by!(listing::list), "List jobs in the order of their names")
        .takes(&[Namespaces, Prefix, Label, State, Paused, Limit, Cursor])
        .answers(&[json(200, "JobPage")]),
    post("/v1/jobs", "createJob", by!(jobs::create), "Create a job")
        .needs(Admin)
        .takes(&[Namespace])
        .body("JobDefinition")
        .answers(&[json(201, "Job")])
        .problems(&[409, 422]),
    post(
        "/v1/jobs:batch",
        "putJobs",
        by!(batch::put_all),
        "Create or replace up to 10,000 jobs, each with a result of its own",
    )
    .needs(Admin)
    .takes(&[Namespace])
    .body("Batch")
    .answers(&[json(200, "BatchResult")]),
    get("/v1/jobs/{name}", "readJob", by!(jobs::read), "Read a job and how it stands")
        .takes(&[Namespace])
        .answers(&[json(200, "Job")]),
    put("/v1/jobs/{name}", "putJob", by!(jobs::replace), "Create or replace a job")
        .needs(Admin)
        .takes(&[Namespace, IfMatch, IfNoneMatch])
        .body("JobDefinition")
        .answers(&[json(200, "Job"), json(201, "Job")])
        .problems(&[409, 412, 422]),
    delete("/v1/jobs/{name}", "deleteJob", by!(jobs::delete), "Delete a job; a run goes on, and the history stays")
        .needs(Admin)
        .takes(&[Namespace, IfMatch])
        .answers(&[of_type(204, &[])])
        .problems(&[409, 412]),
    post("/v1/jobs/{name}/plan", "planJob", by!(plan::plan), "Tell what a put would change, and store nothing")
        .needs(Admin)
        .takes(&[Namespace, IfMatch, IfNoneMatch])
        .body("JobDefinition")
        .answers(&[json(200, "JobPlan")])
        .problems(&[412]),
    post("/v1/jobs/{name}/pause", "pauseJob", by!(actions::pause), "Keep a job from coming up; a run goes on")
        .needs(Operator)
        .takes(&[Namespace])
        .optional_body("PauseRequest")
        .answers(&[json(200, "Job")])
        .problems(&[409]),
    post("/v1/jobs/{name}/resume", "resumeJob", by!(actions::resume), "End a pause")
        .needs(Operator)
        .takes(&[Namespace])
        .optional_body("Nothing")
        .answers(&[json(200, "Job")])
        .problems(&[409]),
    post(
        "/v1/jobs/{name}/run",
        "runJob",
        by!(actions::run_now),
        "Run a job now; params for this run need the role admin",
    )
    .needs(Operator)
    .takes(&[Namespace])
    .optional_body("RunRequest")
    .answers(&[json(202, "RunAsked")])
    .problems(&[409]),
    get("/v1/jobs/{name}/runs", "listRunsOfJob", by!(runs::of_job), "List the runs of a job, newest first")
        .takes(&[Namespace, Status, Since, Until, Limit, Cursor])
        .answers(&[json(200, "RunPage")]),
    get("/v1/jobs/{name}/next", "nextDueTimes", by!(listing::next), "List the coming due times of a job")
        .takes(&[Namespace, Count])
        .answers(&[json(200, "DueTimes")])
        .problems(&[422]),
    get(
        "/v1/jobs/{name}/why",
        "explainDueTime",
        by!(listing::explained),
        "Tell why a due time ran, did not, or has not yet",
    )
    .takes(&[Namespace, At])
    .answers(&[json(200, "Explanation")])
    .problems(&[422]),
    get("/v1/runs", "listRuns", by!(runs::of_all), "List runs, newest first")
        .takes(&[Namespaces, Status, Since, Until, Limit, Cursor])
        .answers(&[json(200, "RunPage")]),
    get("/v1/runs/{id}", "readRun", by!(runs::one), "Read a run and its output").answers(&[json(200, "RunDetails")]),
    get("/v1/runs/{id}/output", "readOutput", by!(output::read), "Read the output of a run as it was printed")
        .takes(&[Follow])
        .answers(&[of_type(200, &[TEXT, BYTES])]),
    post(
        "/v1/runs/{id}/cancel",
        "cancelRun",
        by!(actions::cancel),
        "Ask a run to end: 202 while it ends, 200 if it had not started",
    )
    .needs(Operator)
    .optional_body("Nothing")
    .answers(&[json(200, "Run"), json(202, "Run")])
    .problems(&[409]),
    get(
        "/v1/events",
        "readEvents",
        by!(events::read),
        "Read what happens as server-sent events, until the caller goes",
    )
    .takes(&[Namespaces, Job, Types, SinceEvent, LastEventId])
    .answers(&[of_type(200, &[EVENTS])])
    .problems(&[503]),
    get("/v1/alerts", "listAlerts", by!(alerts::list), "List the routes of alerts").answers(&[json(200, "Alerts")]),
    get("/v1/alerts/{alert}", "readAlert", by!(alerts::read), "Read a route without its secrets")
        .answers(&[json(200, "Alert")]),
    put("/v1/alerts/{alert}", "putAlert", by!(alerts::put), "Create or replace a route: who is told of what")
        .needs(Admin)
        .takes(&[IfMatch, IfNoneMatch])
        .body("AlertDefinition")
        .answers(&[json(200, "Alert"), json(201, "Alert")])
        .problems(&[412]),
    delete("/v1/alerts/{alert}", "deleteAlert", by!(alerts::delete), "Delete a route; what it has not sent is dropped")
        .needs(Admin)
        .takes(&[IfMatch])
        .answers(&[of_type(204, &[])])
        .problems(&[412]),
    post("/v1/alerts/{alert}/test", "testAlert", by!(alerts::test), "Send a message to every target of a route")
        .needs(Operator)
        .optional_body("Nothing")
        .answers(&[json(202, "Deliveries")]),
    get(
        "/v1/deliveries",
        "listDeliveries",
        by!(alerts::deliveries),
        "List messages with the answers to them, newest first",
    )
    .takes(&[Route, DeliveryState, Limit, Cursor])
    .answers(&[json(200, "DeliveryPage")])
    .problems(&[404]),
    post(
        "/v1/deliveries/{delivery}/resend",
        "resendDelivery",
        by!(alerts::resend),
        "Send a message again that was sent or given up",
    )
    .needs(Operator)
    .optional_body("Nothing")
    .answers(&[json(200, "Delivery")])
    .problems(&[409]),
    get(
        "/v1/incidents",
        "listIncidents",
        by!(alerts::incidents),
        "List open troubles that a route is told of, oldest first",
    )
    .takes(&[Route, Namespaces])
    .answers(&[json(200, "Incidents")]),
    get("/v1/audit", "listChanges", by!(audit::list), "List who changed what, newest first")
        .takes(&[Namespaces, Job, Who, Action, Since, Until, Limit, Cursor])
        .answers(&[json(200, "AuditPage")]),
    post(
        "/v1/sign-in-links",
        "makeSignInLink",
        by!(page::make_sign_in_link),
        "Make a link that opens the page, once, within a minute",
    )
    .optional_body("Nothing")
    .answers(&[json(201, "SignInLink")]),
    get("/v1/cluster", "readCluster", by!(cluster::cluster), "List sessions and what they hold, and lost commits")
        .answers(&[json(200, "Cluster")]),
    post("/v1/cluster/accept", "acceptLostCommits", by!(cluster::accept), "Go on although the database lost commits")
        .needs(Admin)
        .optional_body("Nothing")
        .answers(&[json(200, "LostCommits")]),
    get("/v1/executors", "listExecutors", by!(cluster::executors), "List the executors of this node")
        .answers(&[json(200, "Executors")]),
    post(
        "/v1/schedules/explain",
        "explainSchedule",
        by!(cluster::explain),
        "Describe a schedule and list its due times",
    )
    .body("ScheduleQuestion")
    .answers(&[json(200, "ScheduleAnswer")]),
    open("/healthz", "isAlive", health::is_alive, "Tell that the process answers").answers(&[json(200, "Health")]),
    open("/readyz", "isReady", health::is_ready, "Tell whether the node schedules")
        .answers(&[json(200, "Health")])
        .problems(&[503]),
    get("/metrics", "readMetrics", by!(metrics::read), "Read the counters in the text format of Prometheus")
        .answers(&[of_type(200, &[TEXT])]),
    get("/openapi.json", "readDocument", by!(super::read), "Read this document").answers(&[json(200, "Document")]),
];

/// The call that a request makes, and the segment of its path that stands for something, such as a name; empty where none does.
pub(in crate::http) fn find<'a>(method: &Method, path: &'a str) -> Option<(&'static Operation, &'a str)> {
    let read_as = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut of_method = OPERATIONS.iter().filter(|operation| operation.method == read_as);
    of_method.find_map(|operation| Some((operation, matched(operation.path, path)?)))
}

/// The segment of a path that stands where the pattern has its `{...}`, empty if the pattern has none. `None` if it is another path.
fn matched<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let (mut expected, mut found) = (pattern.split('/'), path.split('/'));
    let mut segment = "";
    loop {
        match (expected.next(), found.next()) {
            (None, None) => return Some(segment),
            (Some(expected), Some(found)) if expected == found => {}
            (Some(expected), Some(found)) if expected.starts_with('{') && !found.is_empty() => segment = found,
            _ => return None,
        }
    }
}

/// The methods of a path as the header `Allow` lists them; `None` if there is no such path.
pub(in crate::http) fn allowed(path: &str) -> Option<String> {
    let of_path = OPERATIONS.iter().filter(|operation| matched(operation.path, path).is_some());
    let methods: Vec<&str> = of_path
        .flat_map(|operation| if operation.method == "GET" { vec!["GET", "HEAD"] } else { vec![operation.method] })
        .collect();
    (!methods.is_empty()).then(|| methods.join(", "))
}
