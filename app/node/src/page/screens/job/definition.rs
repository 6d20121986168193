//! The definition of a job as people read it.

use carillon_domain::duration;
use carillon_store::JobView;
use carillon_store::alerts::{DeliveryView, Message};
use maud::{Markup, PreEscaped, html};

use crate::page::visit::Visit;
use crate::page::zone::clock;
use carillon_json::shown_params;

/// Every field that says something, and the params as the executor gets them, without secrets.
/// `author` is who gave them; `last_ping` is the newest call of its monitor.
pub(super) fn facts(visit: &Visit, view: &JobView, author: Option<&str>, last_ping: Option<&DeliveryView>) -> Markup {
    let job = &view.job;
    let time = |at| clock(at, visit.now, visit.zone);
    html! {
        dl.facts {
            dt { "Executor" } dd { (job.executor) }
            dt { "Params" } dd { pre.json { (serde_json::to_string_pretty(&shown_params(job)).unwrap_or_default()) } }
            dt { "If the previous run lives" } dd { (overlap(job.overlap.as_str())) }
            dt { "If it is missed" } dd { (misfire(job.misfire.policy.as_str())) " A start is late after " (duration::format(job.misfire.grace)) "." }
            dt { "Attempts" } dd {
                @if job.retry.max_attempts <= 1 { "1" }
                @else { (job.retry.max_attempts) ", with " (duration::format(job.retry.backoff)) " between at first and " (duration::format(job.retry.max_backoff)) " at the most" }
            }
            dt { "Timeout" } dd { @match job.timeout { Some(timeout) => (duration::format(timeout)), None => "none" } ", kill grace " (duration::format(job.kill_grace)) }
            dt { "If its node is lost" } dd { (on_lost(job.on_lost.as_str())) }
            @if !job.jitter.is_zero() { dt { "Jitter" } dd { "up to " (duration::format(job.jitter)) } }
            @if let Some(at) = job.start_at { dt { "Not before" } dd { (time(at)) } }
            @if let Some(at) = job.end_at { dt { "Not after" } dd { (time(at)) } }
            @if let Some(expect) = &job.expect {
                dt { "Expected" } dd {
                    @if let Some(within) = expect.start_within { "To start within " (duration::format(within)) ". " }
                    @if let Some(within) = expect.finish_within { "To succeed within " (duration::format(within)) ". " }
                    @if let Some(by) = expect.finish_by { "To succeed by " (by) "." }
                }
            }
            @if job.ping.is_some() { dt { "Monitor" } dd { "called at the start and the end of runs. " (pinged(visit, last_ping)) } }
            dt { "Labels" } dd {
                @if job.labels.is_empty() { span.muted { "none" } }
                @for (key, value) in &job.labels {
                    a.label href=(visit.links.with("/jobs", &crate::page::params::Params::default().with("label", Some(&format!("{key}={value}"))))) { (key) "=" (value) }
                    (PreEscaped(" "))
                }
            }
            dt { "Generation" } dd { (view.state.generation) ", changed " (time(view.updated_at)) @if let Some(author) = author { " by " strong { (author) } } ", created " (time(view.created_at)) }
        }
    }
}

/// The newest call of the monitor, and the answer.
fn pinged(visit: &Visit, last: Option<&DeliveryView>) -> Markup {
    let Some(last) = last else { return html! { span.muted { "No end of a run was told yet." } } };
    let kind = match &last.message {
        Message::Ping(call) => call.kind.as_str(),
        Message::Notice(_) => "",
    };
    html! {
        "Last: " (kind) " " (clock(last.made_at, visit.now, visit.zone)) ", " (last.delivery.state.as_str())
        @if let Some(answer) = &last.delivery.answer { ": " (answer) }
    }
}

fn overlap(policy: &str) -> &'static str {
    match policy {
        "skip" => "the due time is skipped",
        "delay" => "the due time waits for it; one waits, others are skipped",
        "replace" => "the previous run is cancelled",
        _ => "both run",
    }
}

fn misfire(policy: &str) -> &'static str {
    match policy {
        "skip" => "It is skipped.",
        "fire_once" => "The latest missed due time runs.",
        _ => "The newest 100 missed due times run, one after the other.",
    }
}

fn on_lost(policy: &str) -> &'static str {
    if policy == "rerun" { "it runs again: at least one start" } else { "it stays lost: at most one start" }
}
