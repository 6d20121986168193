//! A job: what it does, when, and how it has been.

mod actions;
mod changes;
mod definition;
mod forms;
mod history;
mod undo;

pub(crate) use actions::act;
pub(crate) use forms::{Action, form};

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::duration::spoken;
use carillon_domain::run::RunRecord;
use carillon_domain::store::Refusal;
use carillon_store::alerts::DeliveryView;
use carillon_store::{ControlError, JobKey, JobView};
use maud::{Markup, html};

use crate::config::Role;
use crate::page::chart::days;
use crate::page::chart::strip::{Facts, Size, strip};
use crate::page::layout::View;
use crate::page::outcome::of_job;
use crate::page::params::Params;
use crate::page::screens::parts::{coming, in_words, zone_of};
use crate::page::usual;
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{clock, full, relative};

/// How old the year of days may be: it is counted once an hour.
const DAYS_GOOD_FOR: Duration = Duration::from_secs(60);
/// How old the newest call of a monitor may be.
const PING_GOOD_FOR: Duration = Duration::from_secs(1);
/// How much history the year of days covers.
const A_YEAR: Duration = Duration::from_secs(372 * 24 * 60 * 60);

/// A job that the caller may see.
pub(crate) async fn visible(visit: &Visit, key: &JobKey) -> Result<JobView, Fault> {
    if !visit.caller.sees(&key.namespace) {
        return Err(ControlError::Refused(Refusal::NoJob(key.clone())).into());
    }
    Ok(visit.api.store.job(key).await?)
}

/// The page of a job.
pub(crate) async fn show(visit: &Visit, key: &JobKey) -> Result<View, Fault> {
    let seen =
        visit.shared(format!("job {key:?} {:?}", visit.caller.scope()), async || Seen::read(visit, key).await).await?;
    let Seen { view, records } = &*seen;
    let coming = coming(view, Size::Job.coming());
    let facts = Facts::of(visit, view, records, &coming);
    let history = history::table(visit, key, view, records).await?;
    let id = view.state.id;
    // An older page of runs is about them alone.
    let changes = if is_older(visit) { Arc::default() } else { changes::read(visit, key, view).await? };
    let days = match is_older(visit) {
        true => Arc::default(),
        false => {
            let read = async || Ok(visit.api.store.days_of_job(id, visit.now - A_YEAR).await?);
            visit.kept(DAYS_GOOD_FOR, format!("days {id}"), read).await?
        }
    };
    let last_ping = last_ping(visit, view).await?;
    let body = html! {
        (head(visit, key, view))
        (undo::notice(visit, key, view))
        (pause_note(visit, view))
        section.group aria-label="Due times" {
            (strip(&facts, Size::Job))
            (legend())
        }
        div.columns-2[!is_older(visit)] {
            section.group {
                h2 { "Next" }
                (next(visit, view, &coming))
            }
            @if !is_older(visit) {
                section.group {
                    h2 { "A year of days" }
                    div.scroll tabindex="0" role="region" aria-label="A year of days" { (days::year(&days, visit.now)) }
                    (days::legend())
                }
            }
        }
        (history::durations(records))
        section.group #runs { h2 { "Due times and runs" } (history) }
        section.group { h2 { "Definition" } (definition::facts(visit, view, changes::author(&changes), last_ping.as_deref().and_then(Option::as_ref))) }
        @if !is_older(visit) { section.group { h2 { "Changes" } (changes::list(visit, key, &changes)) } }
    };
    let live = Params::default().with("namespace", Some(&key.namespace)).with("job", Some(&key.name));
    let (name, namespace) = (&key.name, &key.namespace);
    Ok(View::new(name.as_str(), body).live(live).otherwise(
        format!("/v1/jobs/{name}?namespace={namespace}"),
        format!("carillon job show --namespace {namespace} {name}"),
    ))
}

/// The newest call of its monitor, a second old at the most.
async fn last_ping(visit: &Visit, view: &JobView) -> Result<Option<Arc<Option<DeliveryView>>>, Fault> {
    let (Some(_), id) = (&view.job.ping, view.state.id) else { return Ok(None) };
    let read = async || Ok(visit.api.store.last_ping(id).await?);
    visit.kept(PING_GOOD_FOR, format!("last ping {id}"), read).await.map(Some)
}

/// Everything that the page of a job reads.
struct Seen {
    view: JobView,
    records: Vec<RunRecord>,
}

impl Seen {
    async fn read(visit: &Visit, key: &JobKey) -> Result<Self, Fault> {
        let view = visible(visit, key).await?;
        let id = view.state.id;
        let mut recent = visit.api.store.recent_runs(&[id], Size::Job.past()).await?;
        Ok(Self { view, records: recent.remove(&id).unwrap_or_default() })
    }
}

/// Whether a page of runs is asked for that is not the newest one.
fn is_older(visit: &Visit) -> bool {
    visit.params.get("cursor").is_some()
}

/// Name, state and the actions that the caller may do.
fn head(visit: &Visit, key: &JobKey, view: &JobView) -> Markup {
    let here = |action: &str| format!("{}/{action}", visit.links.job(key));
    html! {
        div.spread {
            div.group {
                h1 { @if key.namespace != "default" { span.muted { (key.namespace) "/" } } (key.name) }
                p.row {
                    (of_job(view).badge())
                    @if let Some(node) = &view.node { span.muted { "on " (node) } }
                    span { (in_words(view)) } code.muted { (view.job.schedule) }
                }
            }
            @if visit.may(Role::Operator) {
                div.row.actions {
                    a.button.primary href=(here("run")) data-do="run" { "Run now" }
                    @if view.pause().is_some() {
                        form method="post" action=(here("resume")) {
                            (crate::page::screens::parts::csrf(visit))
                            button data-do="pause" { "Resume" }
                        }
                    } @else { a.button href=(here("pause")) data-do="pause" { "Pause" } }
                    @if visit.may(Role::Admin) { a.button href=(here("edit")) { "Edit" }
                        a.button.danger href=(here("delete")) { "Delete" } }
                }
            }
        }
    }
}

fn pause_note(visit: &Visit, view: &JobView) -> Markup {
    let Some(pause) = view.pause() else { return html! {} };
    html! {
        p.say.warn {
            "Paused since " (clock(pause.since, visit.now, visit.zone))
            @if let Some(until) = pause.until { " until " (clock(until, visit.now, visit.zone)) }
            @if let Some(reason) = &pause.reason { ": “" (reason) "”." } @else { "." }
            " Its due times are recorded and do not run."
        }
    }
}

/// The shapes of the strip in words.
fn legend() -> Markup {
    use crate::page::outcome::Mark;
    let marks =
        [Mark::Succeeded, Mark::Failed, Mark::TimedOut, Mark::Cancelled, Mark::Lost, Mark::Skipped, Mark::Running];
    html! {
        p.legend.small {
            @for mark in marks { (mark.badge()) " " }
            span.muted { "Half the height is the usual duration. Right of the line is to come; a bracket over it is jitter. A dashed line is a clock change. " }
            a href="#runs" { "The same as a table" }
        }
    }
}

fn next(visit: &Visit, view: &JobView, coming: &[carillon_domain::time::Timestamp]) -> Markup {
    let other = zone_of(view).filter(|zone| *zone != visit.zone);
    html! {
        @if coming.is_empty() { p.muted { "It is not due any more." } }
        @else { table.next { tbody {
            @for due in coming.iter().filter(|due| **due > visit.now).take(10) {
                tr {
                    td { time datetime=(due.to_rfc3339_short()) title=(crate::page::zone::utc(*due)) { (full(*due, visit.zone)) } }
                    @if let Some(zone) = other { td.muted { (full(*due, zone)) } }
                    td.n { (relative(*due, visit.now)) }
                }
            }
        } } }
    }
}

/// How the last run compares with the usual one, for a line of text.
pub(crate) fn compared(took_now: Duration, usual: Option<Duration>) -> String {
    match usual {
        Some(usual) => format!("{} of usually {}", spoken(took_now), spoken(usual)),
        None => spoken(took_now),
    }
}

/// The usual duration of a job, from its newest records.
pub(crate) async fn usual_of(visit: &Visit, id: carillon_domain::id::JobId) -> Result<Option<Duration>, Fault> {
    let recent = visit.api.store.recent_runs(&[id], Size::Row.past()).await?;
    Ok(recent.get(&id).and_then(|records| usual::usual(records)))
}
