# Written from the OpenAPI document by `UPDATE=1 cargo test -p carillon-tests --test clients`; not by hand.
"""What the API reads and answers, as typed dictionaries."""

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

__all__ = [
    "Alert",
    "AlertDefinition",
    "AlertDefinitionMatch",
    "AlertDefinitionTo",
    "AlertMatch",
    "AlertTo",
    "AlertWhen",
    "Alerts",
    "AuditEntry",
    "AuditPage",
    "Batch",
    "BatchResult",
    "BatchResultItem",
    "BatchResultItemOutcome",
    "BatchResultItemStatus",
    "Cluster",
    "DatabaseServer",
    "Deliveries",
    "Delivery",
    "DeliveryNotice",
    "DeliveryNoticeState",
    "DeliveryPage",
    "DeliveryPing",
    "DeliveryPingKind",
    "DeliveryState",
    "DueTimes",
    "Executors",
    "ExecutorsItem",
    "Explanation",
    "ExplanationState",
    "Fault",
    "FieldChange",
    "Health",
    "HealthStatus",
    "Incident",
    "IncidentClass",
    "Incidents",
    "Job",
    "JobDefinition",
    "JobDefinitionDst",
    "JobDefinitionExpect",
    "JobDefinitionMisfire",
    "JobDefinitionRetry",
    "JobDst",
    "JobDstGap",
    "JobDstOverlap",
    "JobExpect",
    "JobMisfire",
    "JobMisfirePolicy",
    "JobOnLost",
    "JobOverlap",
    "JobPage",
    "JobPause",
    "JobPlan",
    "JobPlanChange",
    "JobRetry",
    "JobState",
    "LossWindow",
    "LostCommits",
    "PauseRequest",
    "Problem",
    "Run",
    "RunAsked",
    "RunDetails",
    "RunPage",
    "RunRequest",
    "RunStatus",
    "RunTrigger",
    "ScheduleAnswer",
    "ScheduleQuestion",
    "Session",
    "SessionState",
    "SignInLink",
    "StillUnknown",
    "StillUnknownJob",
    "Timing",
]


class Alert(TypedDict):
    """A route. It may be put back as it was read: secrets that are not shown stay."""

    # How many runs must end badly in a row.
    after: "int"
    created_at: "str"
    match: "AlertMatch"
    name: "str"
    repeat: "Optional[str]"
    to: "List[AlertTo]"
    updated_at: "str"
    version: "int"
    when: "List[AlertWhen]"


class _AlertDefinitionAlways(TypedDict):
    to: "List[AlertDefinitionTo]"
    when: "List[AlertWhen]"


class AlertDefinition(_AlertDefinitionAlways, total=False):
    """A route. Its name stands in the path."""

    after: "Optional[int]"
    match: "Optional[AlertDefinitionMatch]"
    name: "Optional[str]"
    repeat: "Optional[str]"


class AlertDefinitionMatch(TypedDict, total=False):
    jobs: "Optional[List[str]]"
    labels: "Optional[Dict[str, str]]"
    namespaces: "Optional[List[str]]"


class AlertMatch(TypedDict):
    # Jobs of any of these names; `*` stands for any characters.
    jobs: "List[str]"
    # Jobs that have all of these.
    labels: "Dict[str, str]"
    # Jobs of any of these.
    namespaces: "List[str]"


class Alerts(TypedDict):
    items: "List[Alert]"


AuditEntry = TypedDict(
    "AuditEntry",
    {
        "action": "str",
        "after": "Optional[Dict[str, Any]]",
        "at": "str",
        "before": "Optional[Dict[str, Any]]",
        "from": "str",
        "id": "int",
        "job": "Optional[str]",
        "namespace": "Optional[str]",
        "run": "Optional[str]",
        "who": "str",
    },
)


class AuditPage(TypedDict):
    items: "List[AuditEntry]"
    next_cursor: "Optional[str]"


class Batch(TypedDict):
    items: "List[JobDefinition]"


class BatchResult(TypedDict):
    items: "List[BatchResultItem]"


class _BatchResultItemAlways(TypedDict):
    errors: "List[Fault]"
    name: "str"
    namespace: "str"
    status: "BatchResultItemStatus"


class BatchResultItem(_BatchResultItemAlways, total=False):
    generation: "int"
    outcome: "BatchResultItemOutcome"


class Cluster(TypedDict):
    database: "Optional[DatabaseServer]"
    items: "List[Session]"
    lost_commits: "List[LossWindow]"
    still_unknown: "Optional[StillUnknown]"
    timing: "Optional[Timing]"
    timing_misfits: "List[str]"


class DatabaseServer(TypedDict):
    changes: "int"
    identity: "str"
    place: "str"
    topology: "str"
    trouble: "Optional[str]"
    why: "str"


class Deliveries(TypedDict):
    items: "List[Delivery]"


class Delivery(TypedDict):
    answer: "Optional[str]"
    host: "str"
    id: "int"
    made_at: "str"
    next_at: "Optional[str]"
    notice: "Optional[DeliveryNotice]"
    ping: "Optional[DeliveryPing]"
    route: "Optional[str]"
    settled_at: "Optional[str]"
    state: "DeliveryState"
    tries: "int"
    type: "str"


class DeliveryNotice(TypedDict):
    at: "str"
    due_at: "Optional[str]"
    id: "str"
    job: "Optional[str]"
    namespace: "Optional[str]"
    run: "Optional[str]"
    sentence: "str"
    state: "DeliveryNoticeState"
    then: "str"
    when: "AlertWhen"


class DeliveryPage(TypedDict):
    items: "List[Delivery]"
    next_cursor: "Optional[str]"


class DeliveryPing(TypedDict):
    id: "str"
    kind: "DeliveryPingKind"
    run: "str"


class DueTimes(TypedDict):
    next: "List[str]"


class Executors(TypedDict):
    items: "List[ExecutorsItem]"


class _ExecutorsItemAlways(TypedDict):
    abi: "Optional[int]"
    name: "str"
    params_schema: "Any"
    version: "str"


class ExecutorsItem(_ExecutorsItemAlways, total=False):
    file: "str"
    host: "Optional[str]"
    isolation: "str"
    trouble: "Optional[str]"


class Explanation(TypedDict):
    """Why a due time ran, did not, or has not yet."""

    due_at: "str"
    next_due_at: "Optional[str]"
    run: "Optional[Run]"
    sentence: "str"
    state: "ExplanationState"


class Fault(TypedDict):
    """One fault: the path of a field, and a sentence about it."""

    field: "str"
    message: "str"


class FieldChange(TypedDict):
    # Any JSON; `null` where it is not set.
    after: "Any"
    # Any JSON; `null` where it is not set.
    before: "Any"
    field: "str"


class _HealthAlways(TypedDict):
    status: "HealthStatus"


class Health(_HealthAlways, total=False):
    timing: "Optional[Timing]"


Incident = TypedDict(
    "Incident",
    {
        "class": "IncidentClass",
        "count": "int",
        "due_at": "Optional[str]",
        "job": "Optional[str]",
        "namespace": "Optional[str]",
        "part": "Optional[str]",
        "route": "str",
        "run": "Optional[str]",
        "sentence": "Optional[str]",
        "since": "str",
        "tellings": "int",
        "then": "Optional[str]",
        "told_at": "Optional[str]",
    },
)


class Incidents(TypedDict):
    items: "List[Incident]"


class Job(TypedDict):
    """A job and how it stands. It may be put back as it was read."""

    created_at: "str"
    current_run: "Optional[Run]"
    # At changes of the clock.
    dst: "JobDst"
    # Not due after.
    end_at: "Optional[str]"
    # `shell` for commands, or a plugin.
    executor: "str"
    expect: "Optional[JobExpect]"
    generation: "int"
    # Each due time is later by a part of this, always the same.
    jitter: "str"
    # From SIGTERM to SIGKILL.
    kill_grace: "str"
    labels: "Dict[str, str]"
    last_run: "Optional[Run]"
    # For due times that no node started within the grace.
    misfire: "JobMisfire"
    name: "str"
    namespace: "str"
    next_due_at: "Optional[str]"
    node: "Optional[str]"
    # For a run whose node died.
    on_lost: "JobOnLost"
    # For a firing that comes due while a run lives.
    overlap: "JobOverlap"
    params: "Optional[Dict[str, Any]]"
    pause: "Optional[JobPause]"
    paused: "bool"
    ping: "Optional[Any]"
    previous_due_at: "Optional[str]"
    # Attempts of a firing whose run failed.
    retry: "JobRetry"
    # A cron expression, `@every`, `@at` or a descriptor such as `@daily`.
    schedule: "str"
    # Not due before.
    start_at: "Optional[str]"
    state: "JobState"
    # How long a run may take; any time if it is null.
    timeout: "Optional[str]"
    # A zone of the IANA database; UTC if it is null.
    timezone: "Optional[str]"
    updated_at: "str"


class _JobDefinitionAlways(TypedDict):
    # As the executor's params_schema says; at most 64 deep.
    params: "Dict[str, Any]"
    # A cron expression, `@every`, `@at` or a descriptor such as `@daily`.
    schedule: "str"


class JobDefinition(_JobDefinitionAlways, total=False):
    """A job. The name may stand in the path instead."""

    dst: "Optional[JobDefinitionDst]"
    end_at: "Optional[str]"
    executor: "Optional[str]"
    expect: "Optional[JobDefinitionExpect]"
    jitter: "Optional[str]"
    kill_grace: "Optional[str]"
    labels: "Optional[Dict[str, str]]"
    misfire: "Optional[JobDefinitionMisfire]"
    name: "Optional[str]"
    namespace: "Optional[str]"
    on_lost: "Optional[JobOnLost]"
    overlap: "Optional[JobOverlap]"
    paused: "Optional[bool]"
    ping: "Optional[Any]"
    retry: "Optional[JobDefinitionRetry]"
    start_at: "Optional[str]"
    timeout: "Optional[str]"
    timezone: "Optional[str]"


class JobDefinitionDst(TypedDict, total=False):
    """At changes of the clock."""

    gap: "Optional[JobDstGap]"
    overlap: "Optional[JobDstOverlap]"


class JobDefinitionExpect(TypedDict, total=False):
    """How soon each due time should have started and succeeded, from the due time on: 1s to 7d."""

    finish_by: "Optional[str]"
    finish_within: "Optional[str]"
    start_within: "Optional[str]"


class JobDefinitionMisfire(TypedDict, total=False):
    """For due times that no node started within the grace."""

    grace: "Optional[str]"
    policy: "Optional[JobMisfirePolicy]"


class JobDefinitionRetry(TypedDict, total=False):
    """Attempts of a firing whose run failed."""

    backoff: "Optional[str]"
    max_attempts: "Optional[int]"
    max_backoff: "Optional[str]"


class JobDst(TypedDict):
    """At changes of the clock."""

    gap: "JobDstGap"
    overlap: "JobDstOverlap"


class JobExpect(TypedDict, total=False):
    """How soon each due time should have started and succeeded, from the due time on: 1s to 7d."""

    # A time of day in the job's zone, such as 06:00.
    finish_by: "str"
    finish_within: "str"
    start_within: "str"


class JobMisfire(TypedDict):
    """For due times that no node started within the grace."""

    grace: "str"
    policy: "JobMisfirePolicy"


class JobPage(TypedDict):
    items: "List[Job]"
    next_cursor: "Optional[str]"


class JobPause(TypedDict):
    reason: "Optional[str]"
    since: "str"
    until: "Optional[str]"


class JobPlan(TypedDict):
    """The changes that a put would make. A secret of which only the value changes makes it `updated` without a field."""

    # The definition as it would be.
    after: "Dict[str, Any]"
    # The stored definition, without values of secrets.
    before: "Optional[Dict[str, Any]]"
    change: "JobPlanChange"
    # The fields that differ; none where the job is new.
    changes: "List[FieldChange]"
    # Of the stored job: to be put with `If-Match`.
    generation: "Optional[int]"
    next: "List[str]"
    next_before: "Optional[List[str]]"


class JobRetry(TypedDict):
    """Attempts of a firing whose run failed."""

    backoff: "str"
    max_attempts: "int"
    max_backoff: "str"


class LossWindow(TypedDict):
    accepted_at: "Optional[str]"
    from_at: "str"
    node: "Optional[str]"
    noticed_at: "str"
    session: "str"
    until_at: "str"


class LostCommits(TypedDict):
    lost_commits: "List[LossWindow]"


class PauseRequest(TypedDict, total=False):
    reason: "Optional[str]"
    until: "Optional[str]"


class _ProblemAlways(TypedDict):
    detail: "str"
    errors: "List[Fault]"
    status: "int"
    title: "str"
    type: "str"


class Problem(_ProblemAlways, total=False):
    """Why a request was not done, as RFC 9457 has it."""

    outcome: "BatchResultItemOutcome"


class _RunAlways(TypedDict):
    attempt: "int"
    # When its node claimed it: known of runs that ended.
    claimed_at: "Optional[str]"
    # The CPU time, user and system, of a command that ended.
    cpu_ms: "Optional[int]"
    due_at: "str"
    exit_code: "Optional[int]"
    fencing_token: "Optional[int]"
    finished_at: "Optional[str]"
    id: "str"
    job: "str"
    lag_ms: "Optional[int]"
    namespace: "str"
    node: "Optional[str]"
    # The peak of resident memory of its largest process.
    peak_memory_bytes: "Optional[int]"
    reason: "Optional[str]"
    session: "Optional[str]"
    signal: "Optional[int]"
    started_at: "Optional[str]"
    status: "RunStatus"
    trigger: "RunTrigger"


class Run(_RunAlways, total=False):
    """A run, wherever it stands; a range of due times that did not run."""

    cancelling: "bool"
    count: "int"
    first_due_at: "str"
    last_due_at: "str"
    output_truncated: "bool"


class RunAsked(TypedDict):
    """The id under which the run will be found."""

    id: "str"


class _RunDetailsAlways(TypedDict):
    attempt: "int"
    # When its node claimed it: known of runs that ended.
    claimed_at: "Optional[str]"
    # The CPU time, user and system, of a command that ended.
    cpu_ms: "Optional[int]"
    due_at: "str"
    exit_code: "Optional[int]"
    fencing_token: "Optional[int]"
    finished_at: "Optional[str]"
    id: "str"
    job: "str"
    lag_ms: "Optional[int]"
    namespace: "str"
    node: "Optional[str]"
    output: "Optional[str]"
    output_truncated: "bool"
    # The params that were given for this run alone, without secrets.
    params: "Optional[Dict[str, Any]]"
    # The peak of resident memory of its largest process.
    peak_memory_bytes: "Optional[int]"
    reason: "Optional[str]"
    session: "Optional[str]"
    signal: "Optional[int]"
    started_at: "Optional[str]"
    status: "RunStatus"
    trigger: "RunTrigger"


class RunDetails(_RunDetailsAlways, total=False):
    """A run with its output."""

    cancelling: "bool"
    count: "int"
    first_due_at: "str"
    last_due_at: "str"


class RunPage(TypedDict):
    items: "List[Run]"
    next_cursor: "Optional[str]"


class RunRequest(TypedDict, total=False):
    params: "Optional[Dict[str, Any]]"


class ScheduleAnswer(TypedDict):
    description: "str"
    next: "List[str]"
    schedule: "str"
    timezone: "str"


class _ScheduleQuestionAlways(TypedDict):
    schedule: "str"


class ScheduleQuestion(_ScheduleQuestionAlways, total=False):
    after: "Optional[str]"
    count: "Optional[int]"
    name: "Optional[str]"
    namespace: "Optional[str]"
    timezone: "Optional[str]"


class Session(TypedDict):
    address: "str"
    dead_after: "Optional[str]"
    executing: "int"
    expire_after: "Optional[str]"
    heartbeat_at: "str"
    id: "str"
    node: "str"
    partitions: "Optional[List[int]]"
    prepared: "int"
    server: "Optional[str]"
    started_at: "str"
    state: "SessionState"
    version: "str"


class SignInLink(TypedDict):
    expires_in: "str"
    path: "str"


class StillUnknown(TypedDict):
    jobs: "List[StillUnknownJob]"
    more_jobs: "bool"
    nodes: "List[str]"
    until: "Optional[str]"
    why: "Optional[str]"


class StillUnknownJob(TypedDict):
    due_at: "Optional[str]"
    name: "str"
    namespace: "str"
    on_lost: "str"


class Timing(TypedDict):
    expire_after: "str"
    heartbeat: "str"
    self_kill_after: "str"
    source: "str"


class _AlertDefinitionToWebhookAlways(TypedDict):
    type: 'Literal["webhook"]'
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertDefinitionToWebhook(_AlertDefinitionToWebhookAlways, total=False):
    secret: "Optional[str]"


class AlertDefinitionToSlack(TypedDict):
    type: 'Literal["slack"]'
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertDefinitionToMattermost(TypedDict):
    type: 'Literal["mattermost"]'
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertDefinitionToTeams(TypedDict):
    type: 'Literal["teams"]'
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertDefinitionToMail(TypedDict):
    type: 'Literal["mail"]'
    to: "List[str]"


class _AlertDefinitionToCommandAlways(TypedDict):
    type: 'Literal["command"]'
    command: "str"


class AlertDefinitionToCommand(_AlertDefinitionToCommandAlways, total=False):
    timeout: "Optional[str]"


AlertDefinitionTo = Union[
    AlertDefinitionToWebhook,
    AlertDefinitionToSlack,
    AlertDefinitionToMattermost,
    AlertDefinitionToTeams,
    AlertDefinitionToMail,
    AlertDefinitionToCommand,
]


class AlertToWebhook(TypedDict):
    type: 'Literal["webhook"]'
    secret: "Optional[str]"
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertToSlack(TypedDict):
    type: 'Literal["slack"]'
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertToMattermost(TypedDict):
    type: 'Literal["mattermost"]'
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertToTeams(TypedDict):
    type: 'Literal["teams"]'
    # Read without what follows the host; put back so, the stored one stays.
    url: "str"


class AlertToMail(TypedDict):
    type: 'Literal["mail"]'
    to: "List[str]"


class AlertToCommand(TypedDict):
    type: 'Literal["command"]'
    command: "str"
    timeout: "str"


AlertTo = Union[
    AlertToWebhook,
    AlertToSlack,
    AlertToMattermost,
    AlertToTeams,
    AlertToMail,
    AlertToCommand,
]


AlertWhen = Literal[
    "failed",
    "timed_out",
    "lost",
    "skipped",
    "late_start",
    "late_finish",
    "recovered",
    "output",
    "node_lost",
    "commits_lost",
    "clock_drift",
    "database_away",
    "disk_full",
    "plugin_refused",
    "certificate_expires",
]


BatchResultItemOutcome = Literal[
    "not_applied",
    "unknown",
]


BatchResultItemStatus = Literal[
    "created",
    "updated",
    "unchanged",
    "error",
]


DeliveryNoticeState = Literal[
    "open",
    "recovered",
    "test",
]


DeliveryPingKind = Literal[
    "start",
    "success",
    "failure",
]


DeliveryState = Literal[
    "waiting",
    "sending",
    "sent",
    "dead",
]


ExplanationState = Literal[
    "ran",
    "running",
    "skipped",
    "lost",
    "waiting",
    "upcoming",
    "paused",
    "unrecorded",
    "not_due",
]


HealthStatus = Literal[
    "ok",
    "ready",
]


IncidentClass = Literal[
    "outcome",
    "skipped",
    "late_start",
    "late_finish",
    "node_lost",
    "commits_lost",
    "clock_drift",
    "disk_full",
    "plugin_refused",
    "certificate_expires",
]


JobDstGap = Literal[
    "after",
    "skip",
]


JobDstOverlap = Literal[
    "first",
    "both",
]


JobMisfirePolicy = Literal[
    "skip",
    "fire_once",
    "catch_up",
]


JobOnLost = Literal[
    "skip",
    "rerun",
]


JobOverlap = Literal[
    "skip",
    "delay",
    "replace",
    "allow",
]


JobPlanChange = Literal[
    "created",
    "updated",
    "unchanged",
]


JobState = Literal[
    "idle",
    "prepared",
    "executing",
]


RunStatus = Literal[
    "running",
    "succeeded",
    "failed",
    "timed_out",
    "cancelled",
    "lost",
    "skipped",
    "waiting",
]


RunTrigger = Literal[
    "schedule",
    "manual",
    "misfire",
]


SessionState = Literal[
    "live",
    "draining",
    "ended",
]
