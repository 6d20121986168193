//! Jobs: which there are, how each has been, and what is next.

mod bulk;
mod filters;
mod row;

pub(crate) use bulk::act;

use std::collections::BTreeMap;

use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_store::{JobCursor, JobKey, JobView, Page};
use maud::{Markup, html};

use crate::config::Role;
use crate::page::chart::strip::Size;
use crate::page::layout::View;
use crate::page::params::Params;
use crate::page::screens::parts::{csrf, news};
use crate::page::visit::{Fault, Visit};
use carillon_json::job_cursor;

/// How many rows a page has.
const ROWS: usize = 50;
/// The list, or one row of it.
pub(crate) async fn show(visit: &Visit) -> Result<View, Fault> {
    let seen = match visit.fragment().and_then(|fragment| fragment.strip_prefix("row:")) {
        Some(row) => {
            visit
                .shared(format!("row {row} {:?}", visit.caller.scope()), async || {
                    with_runs(visit, one(visit, row).await?).await
                })
                .await?
        }
        None => {
            let question = format!("jobs {:?} {:?}", filters::query(visit, ROWS)?, visit.caller.scope());
            visit.shared(question, async || with_runs(visit, listed(visit).await?).await).await?
        }
    };
    let (page, recent) = &*seen;
    let group = visit.params.get("group");
    let body = html! {
        div.spread {
            h1 { "Jobs" }
            @if visit.may(Role::Admin) { a.button href=(visit.links.to("/jobs/new")) { "New job" } }
        }
        (bulk::notice(visit))
        (filters::form(visit))
        @if page.items.is_empty() { (empty(visit, page.next.is_some())) }
        @else {
            form #list method="post" action=(visit.links.to("/jobs/do")) {
                (csrf(visit))
                input type="hidden" name="back" value=(visit.state().to_query());
                @if visit.may(Role::Operator) { (bulk::bar()) }
                (news(&visit.here("cursor", visit.params.get("cursor"))))
                div.scroll { table.jobs {
                    (row::heads(visit))
                    (rows(visit, page, recent, group))
                } }
            }
        }
        nav.row aria-label="Pages" {
            @if visit.params.get("cursor").is_some() { a.button href=(visit.here("cursor", None)) { "First page" } }
            @if let Some(next) = &page.next {
                a.button rel="next" href=(visit.links.with("/jobs", &visit.state().with("cursor", Some(&job_cursor(next))))) { "Next page" }
            }
        }
    };
    let live = Params::default().with("namespace", Some(filters::namespace(visit).unwrap_or("*")));
    let api = format!("/v1/jobs{}", Params::default().with("namespace", Some("*")).to_query());
    Ok(View::new("Jobs", body).live(live).otherwise(api, "carillon job list --namespace '*'"))
}

/// The rows, under headings where they are grouped by a label.
fn rows(
    visit: &Visit,
    page: &Page<JobView, JobCursor>,
    recent: &BTreeMap<JobId, Vec<RunRecord>>,
    group: Option<&str>,
) -> Markup {
    let runs = |view: &JobView| recent.get(&view.state.id).map_or(&[][..], Vec::as_slice);
    let Some(label) = group else {
        return html! {
            tbody data-rows="jobs" { @for view in &page.items { (row::row(visit, view, runs(view))) } }
        };
    };
    let mut groups: BTreeMap<Option<&str>, Vec<&JobView>> = BTreeMap::new();
    for view in &page.items {
        groups.entry(view.job.labels.get(label).map(String::as_str)).or_default().push(view);
    }
    html! {
        @for (value, views) in &groups {
            tbody {
                tr.group-head { th colspan=(row::COLUMNS) scope="rowgroup" {
                    @match value { Some(value) => { (label) " = " strong { (value) } } None => { "without " (label) } }
                } }
                @for view in views { (row::row(visit, view, runs(view))) }
            }
        }
    }
}

/// Jobs with their newest records.
type Seen = (Page<JobView, JobCursor>, BTreeMap<JobId, Vec<RunRecord>>);

async fn with_runs(visit: &Visit, page: Page<JobView, JobCursor>) -> Result<Seen, Fault> {
    let ids: Vec<_> = page.items.iter().map(|view| view.state.id).collect();
    let recent = match ids.is_empty() {
        true => BTreeMap::new(),
        false => visit.api.store.recent_runs(&ids, Size::Row.past()).await?,
    };
    Ok((page, recent))
}

/// One job, for a row that changes in place.
async fn one(visit: &Visit, row: &str) -> Result<Page<JobView, JobCursor>, Fault> {
    let (namespace, name) = row.split_once('/').unwrap_or(("default", row));
    visit.caller.enters(namespace)?;
    let key = JobKey { namespace: namespace.to_owned(), name: name.to_owned() };
    Ok(Page { items: vec![visit.api.store.job(&key).await?], next: None })
}

/// A page of jobs. It may be short and still have a next one, as a look at the database is bounded.
async fn listed(visit: &Visit) -> Result<Page<JobView, JobCursor>, Fault> {
    Ok(visit.api.store.jobs(&filters::query(visit, ROWS)?).await?)
}

/// `more` jobs may match, further on.
fn empty(visit: &Visit, more: bool) -> Markup {
    let filtered = !visit.state().only(&filters::NARROWING).pairs().is_empty();
    html! {
        div.empty {
            @if more {
                h2 { "No job matches so far." }
                p { "There are very many jobs. The next page goes on from here." }
            } @else if filtered {
                h2 { "No job matches." }
                p { a href=(visit.links.to("/jobs")) { "Show all jobs" } }
            } @else {
                h2 { "No jobs yet." }
                p { "Bring the crontab that you have:" }
                (crate::page::layout::copyable("crontab -l | carillon import -"))
                p { "Or add one:" }
                (crate::page::layout::copyable("carillon job add hello --schedule '* * * * *' -- echo hello"))
            }
        }
    }
}
