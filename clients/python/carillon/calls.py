# Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.
"""Every call of the API."""

from typing import Any, Generator, Optional

from .models import (
    Alert,
    AlertDefinition,
    Alerts,
    AuditPage,
    Batch,
    BatchResult,
    Cluster,
    Deliveries,
    Delivery,
    DeliveryPage,
    DueTimes,
    Executors,
    Explanation,
    Health,
    Incidents,
    Job,
    JobDefinition,
    JobPage,
    JobPlan,
    LostCommits,
    PauseRequest,
    Run,
    RunAsked,
    RunDetails,
    RunPage,
    RunRequest,
    ScheduleAnswer,
    ScheduleQuestion,
    SignInLink,
)
from .transport import Event, Transport


class Calls(Transport):
    """A method for each call of the API."""

    def is_alive(
        self,
    ) -> Health:
        """Tell that the process answers.

        ``GET /healthz``. Needs no token.
        """
        answer: Health = self._json(
            "GET",
            "/healthz",
        )
        return answer

    def read_metrics(
        self,
    ) -> str:
        """Read the counters in the text format of Prometheus.

        ``GET /metrics``. Needs a token with the role viewer.
        """
        return self._text(
            "GET",
            "/metrics",
        )

    def read_document(
        self,
    ) -> Any:
        """Read this document.

        ``GET /openapi.json``. Needs a token with the role viewer.
        """
        return self._json(
            "GET",
            "/openapi.json",
        )

    def is_ready(
        self,
    ) -> Health:
        """Tell whether the node schedules.

        ``GET /readyz``. Needs no token.
        """
        answer: Health = self._json(
            "GET",
            "/readyz",
        )
        return answer

    def list_alerts(
        self,
    ) -> Alerts:
        """List the routes of alerts.

        ``GET /v1/alerts``. Needs a token with the role viewer.
        """
        answer: Alerts = self._json(
            "GET",
            "/v1/alerts",
        )
        return answer

    def delete_alert(
        self,
        alert: str,
        *,
        if_match: Optional[str] = None,
    ) -> None:
        """Delete a route; what it has not sent is dropped.

        ``DELETE /v1/alerts/{alert}``. Needs a token with the role admin.

        alert: The route.
        if_match: The ETag of the definition as it was read; 412 if it has changed since.
        """
        self._nothing(
            "DELETE",
            "/v1/alerts/{alert}",
            path_values={"alert": alert},
            headers={"If-Match": if_match},
        )

    def read_alert(
        self,
        alert: str,
    ) -> Alert:
        """Read a route without its secrets.

        ``GET /v1/alerts/{alert}``. Needs a token with the role viewer.

        alert: The route.
        """
        answer: Alert = self._json(
            "GET",
            "/v1/alerts/{alert}",
            path_values={"alert": alert},
        )
        return answer

    def put_alert(
        self,
        alert: str,
        body: AlertDefinition,
        *,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
    ) -> Alert:
        """Create or replace a route: who is told of what.

        ``PUT /v1/alerts/{alert}``. Needs a token with the role admin.

        alert: The route.
        if_match: The ETag of the definition as it was read; 412 if it has changed since.
        if_none_match: Only if there is no such job; 412 if there is one.
        """
        answer: Alert = self._json(
            "PUT",
            "/v1/alerts/{alert}",
            path_values={"alert": alert},
            headers={"If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def test_alert(
        self,
        alert: str,
    ) -> Deliveries:
        """Send a message to every target of a route.

        ``POST /v1/alerts/{alert}/test``. Needs a token with the role operator.

        alert: The route.
        """
        answer: Deliveries = self._json(
            "POST",
            "/v1/alerts/{alert}/test",
            path_values={"alert": alert},
        )
        return answer

    def list_changes(
        self,
        *,
        namespace: Optional[str] = None,
        job: Optional[str] = None,
        who: Optional[str] = None,
        action: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> AuditPage:
        """List who changed what, newest first.

        ``GET /v1/audit``. Needs a token with the role viewer.

        namespace: One namespace, or `*` for all; `default` if it is not given.
        job: Only of this job.
        who: Changes by the token of this name.
        action: Changes of this kind. One of `job.created`, `job.updated`, `job.deleted`, `job.paused`, `job.resumed`, `job.run`, `run.cancelled`, `losses.accepted`, `alert.put`, `alert.deleted`, `alert.tested`, `delivery.resent`.
        since: Due at this time or later.
        until: Due before this time.
        limit: How many items a page has at the most.
        cursor: `next_cursor` of the page before.
        """
        answer: AuditPage = self._json(
            "GET",
            "/v1/audit",
            query={"namespace": namespace, "job": job, "who": who, "action": action, "since": since, "until": until, "limit": limit, "cursor": cursor},
        )
        return answer

    def read_cluster(
        self,
    ) -> Cluster:
        """List sessions and what they hold, and lost commits.

        ``GET /v1/cluster``. Needs a token with the role viewer.
        """
        answer: Cluster = self._json(
            "GET",
            "/v1/cluster",
        )
        return answer

    def accept_lost_commits(
        self,
    ) -> LostCommits:
        """Go on although the database lost commits.

        ``POST /v1/cluster/accept``. Needs a token with the role admin.
        """
        answer: LostCommits = self._json(
            "POST",
            "/v1/cluster/accept",
        )
        return answer

    def list_deliveries(
        self,
        *,
        route: Optional[str] = None,
        state: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> DeliveryPage:
        """List messages with the answers to them, newest first.

        ``GET /v1/deliveries``. Needs a token with the role viewer.

        route: Only of this route.
        state: How the deliveries stand. One of `waiting`, `sending`, `sent`, `dead`.
        limit: How many items a page has at the most.
        cursor: `next_cursor` of the page before.
        """
        answer: DeliveryPage = self._json(
            "GET",
            "/v1/deliveries",
            query={"route": route, "state": state, "limit": limit, "cursor": cursor},
        )
        return answer

    def resend_delivery(
        self,
        delivery: int,
    ) -> Delivery:
        """Send a message again that was sent or given up.

        ``POST /v1/deliveries/{delivery}/resend``. Needs a token with the role operator.

        delivery: The delivery.
        """
        answer: Delivery = self._json(
            "POST",
            "/v1/deliveries/{delivery}/resend",
            path_values={"delivery": delivery},
        )
        return answer

    def read_events(
        self,
        *,
        namespace: Optional[str] = None,
        job: Optional[str] = None,
        types: Optional[str] = None,
        since: Optional[str] = None,
        last_event_id: Optional[str] = None,
    ) -> Generator[Event, None, None]:
        """Read what happens as server-sent events, until the caller goes.

        ``GET /v1/events``. Needs a token with the role viewer.

        namespace: One namespace, or `*` for all; `default` if it is not given.
        job: Only of this job.
        types: Types of events, separated by commas; all but `audit.written` if it is not given.
        since: As `Last-Event-ID`, for readers that send no header; the header goes before.
        last_event_id: The `id` of the last event that was read, to go on behind it.
        """
        return self._events(
            "GET",
            "/v1/events",
            query={"namespace": namespace, "job": job, "types": types, "since": since},
            headers={"Last-Event-ID": last_event_id},
        )

    def list_executors(
        self,
    ) -> Executors:
        """List the executors of this node.

        ``GET /v1/executors``. Needs a token with the role viewer.
        """
        answer: Executors = self._json(
            "GET",
            "/v1/executors",
        )
        return answer

    def list_incidents(
        self,
        *,
        route: Optional[str] = None,
        namespace: Optional[str] = None,
    ) -> Incidents:
        """List open troubles that a route is told of, oldest first.

        ``GET /v1/incidents``. Needs a token with the role viewer.

        route: Only of this route.
        namespace: One namespace, or `*` for all; `default` if it is not given.
        """
        answer: Incidents = self._json(
            "GET",
            "/v1/incidents",
            query={"route": route, "namespace": namespace},
        )
        return answer

    def list_jobs(
        self,
        *,
        namespace: Optional[str] = None,
        prefix: Optional[str] = None,
        label: Optional[str] = None,
        state: Optional[str] = None,
        paused: Optional[bool] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> JobPage:
        """List jobs in the order of their names.

        ``GET /v1/jobs``. Needs a token with the role viewer.

        namespace: One namespace, or `*` for all; `default` if it is not given.
        prefix: Names that begin so.
        label: `KEY` or `KEY=VALUE`.
        state: How the jobs stand. One of `idle`, `prepared`, `executing`.
        paused: Paused jobs, or the others.
        limit: How many items a page has at the most.
        cursor: `next_cursor` of the page before.
        """
        answer: JobPage = self._json(
            "GET",
            "/v1/jobs",
            query={"namespace": namespace, "prefix": prefix, "label": label, "state": state, "paused": paused, "limit": limit, "cursor": cursor},
        )
        return answer

    def create_job(
        self,
        body: JobDefinition,
        *,
        namespace: Optional[str] = None,
    ) -> Job:
        """Create a job.

        ``POST /v1/jobs``. Needs a token with the role admin.

        namespace: The namespace of the job; `default` if it is not given.
        """
        answer: Job = self._json(
            "POST",
            "/v1/jobs",
            query={"namespace": namespace},
            body=body,
        )
        return answer

    def delete_job(
        self,
        name: str,
        *,
        namespace: Optional[str] = None,
        if_match: Optional[str] = None,
    ) -> None:
        """Delete a job; a run goes on, and the history stays.

        ``DELETE /v1/jobs/{name}``. Needs a token with the role admin.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        if_match: The ETag of the definition as it was read; 412 if it has changed since.
        """
        self._nothing(
            "DELETE",
            "/v1/jobs/{name}",
            path_values={"name": name},
            query={"namespace": namespace},
            headers={"If-Match": if_match},
        )

    def read_job(
        self,
        name: str,
        *,
        namespace: Optional[str] = None,
    ) -> Job:
        """Read a job and how it stands.

        ``GET /v1/jobs/{name}``. Needs a token with the role viewer.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        """
        answer: Job = self._json(
            "GET",
            "/v1/jobs/{name}",
            path_values={"name": name},
            query={"namespace": namespace},
        )
        return answer

    def put_job(
        self,
        name: str,
        body: JobDefinition,
        *,
        namespace: Optional[str] = None,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
    ) -> Job:
        """Create or replace a job.

        ``PUT /v1/jobs/{name}``. Needs a token with the role admin.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        if_match: The ETag of the definition as it was read; 412 if it has changed since.
        if_none_match: Only if there is no such job; 412 if there is one.
        """
        answer: Job = self._json(
            "PUT",
            "/v1/jobs/{name}",
            path_values={"name": name},
            query={"namespace": namespace},
            headers={"If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def next_due_times(
        self,
        name: str,
        *,
        namespace: Optional[str] = None,
        count: Optional[int] = None,
    ) -> DueTimes:
        """List the coming due times of a job.

        ``GET /v1/jobs/{name}/next``. Needs a token with the role viewer.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        count: How many due times.
        """
        answer: DueTimes = self._json(
            "GET",
            "/v1/jobs/{name}/next",
            path_values={"name": name},
            query={"namespace": namespace, "count": count},
        )
        return answer

    def pause_job(
        self,
        name: str,
        body: Optional[PauseRequest] = None,
        *,
        namespace: Optional[str] = None,
    ) -> Job:
        """Keep a job from coming up; a run goes on.

        ``POST /v1/jobs/{name}/pause``. Needs a token with the role operator.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        """
        answer: Job = self._json(
            "POST",
            "/v1/jobs/{name}/pause",
            path_values={"name": name},
            query={"namespace": namespace},
            body=body,
        )
        return answer

    def plan_job(
        self,
        name: str,
        body: JobDefinition,
        *,
        namespace: Optional[str] = None,
        if_match: Optional[str] = None,
        if_none_match: Optional[str] = None,
    ) -> JobPlan:
        """Tell what a put would change, and store nothing.

        ``POST /v1/jobs/{name}/plan``. Needs a token with the role admin.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        if_match: The ETag of the definition as it was read; 412 if it has changed since.
        if_none_match: Only if there is no such job; 412 if there is one.
        """
        answer: JobPlan = self._json(
            "POST",
            "/v1/jobs/{name}/plan",
            path_values={"name": name},
            query={"namespace": namespace},
            headers={"If-Match": if_match, "If-None-Match": if_none_match},
            body=body,
        )
        return answer

    def resume_job(
        self,
        name: str,
        *,
        namespace: Optional[str] = None,
    ) -> Job:
        """End a pause.

        ``POST /v1/jobs/{name}/resume``. Needs a token with the role operator.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        """
        answer: Job = self._json(
            "POST",
            "/v1/jobs/{name}/resume",
            path_values={"name": name},
            query={"namespace": namespace},
        )
        return answer

    def run_job(
        self,
        name: str,
        body: Optional[RunRequest] = None,
        *,
        namespace: Optional[str] = None,
    ) -> RunAsked:
        """Run a job now; params for this run need the role admin.

        ``POST /v1/jobs/{name}/run``. Needs a token with the role operator.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        """
        answer: RunAsked = self._json(
            "POST",
            "/v1/jobs/{name}/run",
            path_values={"name": name},
            query={"namespace": namespace},
            body=body,
        )
        return answer

    def list_runs_of_job(
        self,
        name: str,
        *,
        namespace: Optional[str] = None,
        status: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> RunPage:
        """List the runs of a job, newest first.

        ``GET /v1/jobs/{name}/runs``. Needs a token with the role viewer.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        status: How the runs stand. One of `running`, `succeeded`, `failed`, `timed_out`, `cancelled`, `lost`, `skipped`.
        since: Due at this time or later.
        until: Due before this time.
        limit: How many items a page has at the most.
        cursor: `next_cursor` of the page before.
        """
        answer: RunPage = self._json(
            "GET",
            "/v1/jobs/{name}/runs",
            path_values={"name": name},
            query={"namespace": namespace, "status": status, "since": since, "until": until, "limit": limit, "cursor": cursor},
        )
        return answer

    def explain_due_time(
        self,
        name: str,
        *,
        namespace: Optional[str] = None,
        at: Optional[str] = None,
    ) -> Explanation:
        """Tell why a due time ran, did not, or has not yet.

        ``GET /v1/jobs/{name}/why``. Needs a token with the role viewer.

        name: The job.
        namespace: The namespace of the job; `default` if it is not given.
        at: The due time; the latest that has passed if it is not given.
        """
        answer: Explanation = self._json(
            "GET",
            "/v1/jobs/{name}/why",
            path_values={"name": name},
            query={"namespace": namespace, "at": at},
        )
        return answer

    def put_jobs(
        self,
        body: Batch,
        *,
        namespace: Optional[str] = None,
    ) -> BatchResult:
        """Create or replace up to 10,000 jobs, each with a result of its own.

        ``POST /v1/jobs:batch``. Needs a token with the role admin.

        namespace: The namespace of the job; `default` if it is not given.
        """
        answer: BatchResult = self._json(
            "POST",
            "/v1/jobs:batch",
            query={"namespace": namespace},
            body=body,
        )
        return answer

    def list_runs(
        self,
        *,
        namespace: Optional[str] = None,
        status: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> RunPage:
        """List runs, newest first.

        ``GET /v1/runs``. Needs a token with the role viewer.

        namespace: One namespace, or `*` for all; `default` if it is not given.
        status: How the runs stand. One of `running`, `succeeded`, `failed`, `timed_out`, `cancelled`, `lost`, `skipped`.
        since: Due at this time or later.
        until: Due before this time.
        limit: How many items a page has at the most.
        cursor: `next_cursor` of the page before.
        """
        answer: RunPage = self._json(
            "GET",
            "/v1/runs",
            query={"namespace": namespace, "status": status, "since": since, "until": until, "limit": limit, "cursor": cursor},
        )
        return answer

    def read_run(
        self,
        id: str,
    ) -> RunDetails:
        """Read a run and its output.

        ``GET /v1/runs/{id}``. Needs a token with the role viewer.

        id: The run.
        """
        answer: RunDetails = self._json(
            "GET",
            "/v1/runs/{id}",
            path_values={"id": id},
        )
        return answer

    def cancel_run(
        self,
        id: str,
    ) -> Run:
        """Ask a run to end: 202 while it ends, 200 if it had not started.

        ``POST /v1/runs/{id}/cancel``. Needs a token with the role operator.

        id: The run.
        """
        answer: Run = self._json(
            "POST",
            "/v1/runs/{id}/cancel",
            path_values={"id": id},
        )
        return answer

    def read_output(
        self,
        id: str,
        *,
        follow: Optional[bool] = None,
    ) -> Generator[bytes, None, None]:
        """Read the output of a run as it was printed.

        ``GET /v1/runs/{id}/output``. Needs a token with the role viewer.

        id: The run.
        follow: Go on until the run ends.
        """
        return self._bytes(
            "GET",
            "/v1/runs/{id}/output",
            path_values={"id": id},
            query={"follow": follow},
        )

    def explain_schedule(
        self,
        body: ScheduleQuestion,
    ) -> ScheduleAnswer:
        """Describe a schedule and list its due times.

        ``POST /v1/schedules/explain``. Needs a token with the role viewer.
        """
        answer: ScheduleAnswer = self._json(
            "POST",
            "/v1/schedules/explain",
            body=body,
        )
        return answer

    def make_sign_in_link(
        self,
    ) -> SignInLink:
        """Make a link that opens the page, once, within a minute.

        ``POST /v1/sign-in-links``. Needs a token with the role viewer.
        """
        answer: SignInLink = self._json(
            "POST",
            "/v1/sign-in-links",
        )
        return answer
