//! A job as clients read it: the definition and how it stands.

use carillon_domain::duration;
use carillon_domain::firing::{Pause, Phase};
use carillon_domain::job::Job;
use carillon_domain::policy;
use carillon_domain::run::Trigger;
use carillon_domain::schedule::{Gap, Overlap as Repeated};
use carillon_domain::time::Timestamp;
use carillon_store::{JobKey, JobView};
use serde_json::{Value, json};

use super::definition::told::{expect_json, ping_json};
use super::run::{held_json, recorded_json};

/// A job with what reading adds to it.
pub fn job_json(view: &JobView) -> Value {
    let mut out = definition_json(&view.job);
    let key = JobKey { namespace: view.job.namespace.clone(), name: view.job.name.clone() };
    let current_run = match &view.state.phase {
        Phase::Executing(held) => held_json(&key, held, view.node.as_deref()),
        Phase::Idle | Phase::Prepared(_) => Value::Null,
    };
    let pause = view.pause().map(pause_json);
    out["paused"] = json!(pause.is_some());
    out["pause"] = json!(pause);
    out["state"] = json!(view.state.phase.as_str());
    out["next_due_at"] = json!(next_due_at(view).map(text));
    out["previous_due_at"] = json!(previous_due_at(view).map(text));
    out["last_run"] = json!(view.last_run.as_ref().map(|record| recorded_json(&key, record, None)));
    out["current_run"] = current_run;
    out["node"] = json!(view.node);
    out["generation"] = json!(view.state.generation);
    out["created_at"] = json!(text(view.created_at));
    out["updated_at"] = json!(text(view.updated_at));
    out
}

/// A pause.
pub(super) fn pause_json(pause: &Pause) -> Value {
    json!({"since": text(pause.since), "until": pause.until.map(text), "reason": pause.reason})
}

/// The definition alone, as it may be put again.
pub fn definition_json(job: &Job) -> Value {
    json!({
        "namespace": job.namespace,
        "name": job.name,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "executor": job.executor,
        "params": shown_params(job),
        "overlap": job.overlap.as_str(),
        "misfire": {"policy": job.misfire.policy.as_str(), "grace": duration::format(job.misfire.grace)},
        "timeout": job.timeout.map(duration::format),
        "kill_grace": duration::format(job.kill_grace),
        "retry": {
            "max_attempts": job.retry.max_attempts,
            "backoff": duration::format(job.retry.backoff),
            "max_backoff": duration::format(job.retry.max_backoff),
        },
        "on_lost": job.on_lost.as_str(),
        "jitter": duration::format(job.jitter),
        "dst": {"gap": gap_name(job.dst.gap), "overlap": repeated_name(job.dst.overlap)},
        "start_at": job.start_at.map(text),
        "end_at": job.end_at.map(text),
        "labels": job.labels,
        "expect": job.expect.as_ref().map(expect_json),
        "ping": job.ping.as_ref().map(ping_json),
    })
}

/// The params without secrets; `null` if what is stored is no JSON, rather than showing it unredacted.
pub fn shown_params(job: &Job) -> Value {
    let mut params = serde_json::from_str(&job.params).unwrap_or_default();
    carillon_store::redact(&mut params);
    params
}

/// The first due time of the schedule that has not been started or recorded. While a firing runs its job is armed with
/// none: what comes up then follows from the schedule, and may have passed while it ran.
pub fn next_due_at(view: &JobView) -> Option<Timestamp> {
    let state = &view.state;
    match &state.phase {
        Phase::Executing(held) if held.firing.trigger != Trigger::Manual && state.armed.is_none() => {
            let due = held.firing.due_at;
            let of_backlog = policy::next_of_backlog(&view.timeline, due, state.catch_up_until);
            of_backlog.map(|firing| firing.due_at).or_else(|| view.timeline.next_after(due.max(state.cursor)))
        }
        _ => state.next_due_at(),
    }
}

/// The latest due time of the schedule that has been started or recorded.
fn previous_due_at(view: &JobView) -> Option<Timestamp> {
    let state = &view.state;
    let of_schedule = |trigger: Trigger| trigger != Trigger::Manual;
    if let Phase::Executing(held) = &state.phase
        && of_schedule(held.firing.trigger)
    {
        return Some(held.firing.due_at);
    }
    let last_run = view.last_run.as_ref()?;
    if of_schedule(last_run.trigger) {
        return Some(last_run.due_at);
    }
    // The last run was asked for by a person: what came before it follows from the schedule.
    let due = view.timeline.last_until(state.cursor)?;
    Some(due).filter(|due| *due > state.anchor_at && state.next_due_at() != Some(*due))
}

/// The name of a DST gap rule in a definition.
pub(super) const fn gap_name(gap: Gap) -> &'static str {
    match gap {
        Gap::After => "after",
        Gap::Skip => "skip",
    }
}

/// The name of a DST overlap rule in a definition.
pub(super) const fn repeated_name(overlap: Repeated) -> &'static str {
    match overlap {
        Repeated::First => "first",
        Repeated::Both => "both",
    }
}

fn text(time: Timestamp) -> String {
    time.to_string()
}
