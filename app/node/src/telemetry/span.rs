//! A run as a span of OpenTelemetry.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use carillon_domain::firing::Held;
use carillon_domain::job::Job;
use carillon_domain::run::trace::{RunTrace, SpanNumber};
use carillon_domain::run::{Ending, Status};
use carillon_domain::time::Timestamp;
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status as SpanStatus, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// A run that is recorded.
#[derive(Debug)]
pub(super) struct EndedRun {
    pub trace: RunTrace,
    pub held: Held,
    pub job: Arc<Job>,
    pub ending: Ending,
}

/// This node, as the source of all its spans.
pub(super) fn resource(service: &str, node: &str) -> Resource {
    let attributes = [
        KeyValue::new("service.name", service.to_owned()),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", node.to_owned()),
    ];
    Resource::builder_empty().with_attributes(attributes).build()
}

/// The span lasts as the run did. It was due and claimed before: these are events, so that a late start shows no long span.
pub(super) fn span_data(run: &EndedRun) -> SpanData {
    let EndedRun { trace, held, job, ending } = run;
    let started_at = held.started_at.unwrap_or(ending.ended_at);
    // The start is the database's time, the others are what the node took for it, which may be behind. Records do the same.
    let ended_at = ending.ended_at.max(started_at);
    let claimed_at = ending.claimed_at.0.map(|claimed_at| claimed_at.min(started_at));
    let moments = [
        ("due", Some(held.firing.due_at)),
        ("claimed", claimed_at),
        ("started", Some(started_at)),
        ("ended", Some(ended_at)),
    ];
    let event = |(name, at): (&'static str, Option<Timestamp>)| Some(Event::new(name, time(at?), Vec::new(), 0));
    let mut events = SpanEvents::default();
    events.events = moments.into_iter().filter_map(event).collect();
    let mut links = SpanLinks::default();
    links.links.extend(trace.attempt_before().map(|before| link(trace, before)));
    SpanData {
        span_context: context(trace, trace.span(), false),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: job.key().into(),
        start_time: time(started_at),
        end_time: time(ended_at),
        attributes: attributes(held, job, ending),
        dropped_attributes_count: 0,
        events,
        links,
        status: status(ending),
        instrumentation_scope: InstrumentationScope::builder("carillon")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn attributes(held: &Held, job: &Job, ending: &Ending) -> Vec<KeyValue> {
    let firing = &held.firing;
    let lag_ms = held.started_at.map(|started_at| started_at.as_ms().saturating_sub(firing.start_at.as_ms()));
    let mut attributes = vec![
        KeyValue::new("carillon.namespace", job.namespace.clone()),
        KeyValue::new("carillon.job", job.name.clone()),
        KeyValue::new("carillon.run_id", held.run.to_string()),
        KeyValue::new("carillon.due_at", firing.due_at.to_string()),
        KeyValue::new("carillon.trigger", firing.trigger.as_str()),
        KeyValue::new("carillon.attempt", i64::from(firing.attempt)),
        KeyValue::new("carillon.executor", job.executor.clone()),
        KeyValue::new("carillon.outcome", ending.status.as_str()),
    ];
    let numbers = [
        ("carillon.lag_ms", lag_ms),
        ("carillon.exit_code", ending.exit_code.map(i64::from)),
        ("carillon.signal", ending.signal.map(i64::from)),
        ("carillon.cpu_ms", ending.usage.cpu_ms.and_then(|ms| i64::try_from(ms).ok())),
    ];
    attributes.extend(numbers.into_iter().filter_map(|(name, number)| Some(KeyValue::new(name, number?))));
    attributes
}

fn status(ending: &Ending) -> SpanStatus {
    match ending.status {
        Status::Succeeded => SpanStatus::Ok,
        other => {
            let reason = ending.reason.as_ref().map(ToString::to_string);
            SpanStatus::error(reason.unwrap_or_else(|| other.as_str().to_owned()))
        }
    }
}

fn link(trace: &RunTrace, before: SpanNumber) -> Link {
    Link::new(context(trace, before, true), vec![KeyValue::new("carillon.link", "attempt_before")], 0)
}

fn context(trace: &RunTrace, span: SpanNumber, is_remote: bool) -> SpanContext {
    let ids = (TraceId::from(trace.number()), SpanId::from(span.0));
    SpanContext::new(ids.0, ids.1, TraceFlags::SAMPLED, is_remote, TraceState::NONE)
}

fn time(at: Timestamp) -> SystemTime {
    let since_epoch = Duration::from_millis(u64::try_from(at.as_ms()).unwrap_or_default());
    SystemTime::UNIX_EPOCH + since_epoch
}
