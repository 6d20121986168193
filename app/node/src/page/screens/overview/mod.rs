//! The overview: must I do anything? When nothing is wrong it is almost empty.

mod activity;
mod needs;
mod nodes;
mod running;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::alert::Incident;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use carillon_store::alerts::IncidentQuery;
use carillon_store::{Bounded, JobList, JobListQuery, ListedJob, NamespaceScope, Overview, OverviewQuery};
use maud::{Markup, html};

use crate::page::layout::{View, copyable};
use crate::page::params::Params;
use crate::page::screens::parts::{coming as coming_of, grouped, job_link, key_of, plural, said};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{clock, relative};

/// How far jobs that need a person, and runs, are counted.
const COUNTED: usize = 100;
/// How many coming jobs are looked at.
const COMING: usize = 500;
const COMING_GOOD_FOR: Duration = Duration::from_secs(2);
const AN_HOUR: Duration = Duration::from_secs(3_600);
const A_SECOND: Duration = Duration::from_secs(1);
const A_DAY: Duration = Duration::from_secs(24 * 3_600);

/// The overview.
pub(crate) async fn show(visit: &Visit) -> Result<View, Fault> {
    let scope = visit.caller.scope();
    let seen = visit.shared(format!("overview {scope:?}"), async || Seen::read(visit, &scope).await).await?;
    let Seen { troubled, overdue, recent, now } = &*seen;
    let coming = coming(visit, &scope).await?;
    let Overview { running, activity, sessions, losses, any_job } = now;
    let alerts = Alerts::read(visit, &scope).await?;
    let needs = needs::Needs::of(visit, troubled, overdue, (sessions, losses), (&alerts.incidents, alerts.dead));
    if !any_job {
        return Ok(View::new("Overview", welcome(visit, &needs)).live(every_namespace()).alerts(needs.count()));
    }
    // Nodes may hold as many rows as fire within the horizon, so those are counted once a second at the most.
    let counted = async || Ok(visit.api.store.sessions().await?);
    let counted = visit.kept(A_SECOND, "counted sessions".to_owned(), counted).await?;
    let body = html! {
        h1.hidden { "Overview" }
        (said(visit))
        (needs.sentence())
        (needs.list(visit))
        (running::section(visit, running, recent))
        (next_hour(visit, &coming))
        (activity::section(visit, activity))
        (nodes::section(visit, &counted))
    };
    let view = View::new("Overview", body).live(every_namespace()).alerts(needs.count());
    Ok(view.otherwise("/v1/runs?namespace=*&status=running", "carillon cluster"))
}

/// The jobs of the next hour, at most [`COMING_GOOD_FOR`] old, and with each change by people that was told. They are as many as all
/// else on this screen, and change by the minute.
async fn coming(visit: &Visit, scope: &NamespaceScope) -> Result<Arc<Bounded<ListedJob>>, Fault> {
    let read = || {
        let (api, scope) = (Arc::clone(&visit.api), scope.clone());
        let list = JobList::Coming { until: visit.now + AN_HOUR };
        async move {
            let found = api.store.job_lists(&scope, &[JobListQuery { list, limit: COMING }]).await?;
            Ok(found.into_iter().next().unwrap_or_default())
        }
    };
    let good = (COMING_GOOD_FOR, visit.api.events.changes());
    visit.ahead(good, format!("coming {scope:?}"), read).await
}

/// Everything else that the overview reads for itself, by three statements.
struct Seen {
    troubled: Bounded<ListedJob>,
    overdue: Bounded<ListedJob>,
    /// Of the runs that are listed: the newest records of their jobs.
    recent: BTreeMap<JobId, Vec<RunRecord>>,
    now: Overview,
}

/// The troubles that routes tell of. Nodes look for it once a second, so it is read as often at the most.
struct Alerts {
    incidents: Vec<Incident>,
    /// How many messages were given up.
    dead: u64,
}

impl Alerts {
    async fn read(visit: &Visit, scope: &NamespaceScope) -> Result<Arc<Self>, Fault> {
        let read = async || {
            let namespaces = visit.caller.namespaces().map(<[String]>::to_vec);
            let asked = IncidentQuery { route: None, namespaces, limit: COUNTED };
            let incidents = visit.api.store.incidents(&asked).await?;
            Ok(Self { incidents, dead: visit.api.store.delivery_counts().await?.dead })
        };
        visit.kept(A_SECOND, format!("alerts {scope:?}"), read).await
    }
}

impl Seen {
    async fn read(visit: &Visit, scope: &NamespaceScope) -> Result<Self, Fault> {
        let store = &visit.api.store;
        let lists = [(JobList::Troubled, COUNTED), (JobList::overdue(visit.now), COUNTED)]
            .map(|(list, limit)| JobListQuery { list, limit });
        let mut found = store.job_lists(scope, &lists).await?.into_iter();
        let mut next_list = || found.next().unwrap_or_default();
        let (troubled, overdue) = (next_list(), next_list());
        let query = OverviewQuery { scope: scope.clone(), running: COUNTED, since: visit.now - A_DAY };
        let now = store.overview(&query).await?;
        let ids: Vec<_> = now.running.items.iter().take(running::LISTED).map(|run| run.job_id).collect();
        let recent = if ids.is_empty() { BTreeMap::new() } else { store.recent_runs(&ids, running::RECORDS).await? };
        Ok(Self { troubled, overdue, recent, now })
    }
}

fn every_namespace() -> Params {
    Params::default().with("namespace", Some("*"))
}

fn next_hour(visit: &Visit, coming: &Bounded<ListedJob>) -> Markup {
    let due: Vec<(Timestamp, &ListedJob)> = due_within(visit.now..visit.now + AN_HOUR, &coming.items);
    // Where more jobs come up than are looked at, the hour is counted as far as those go.
    let end = due.last().map(|(at, _)| *at).filter(|_| coming.more).unwrap_or(visit.now + AN_HOUR);
    let starts = activity::starts_of_next_hour(visit, due.iter().map(|(_, job)| *job), end);
    let known = end.since(visit.now).as_secs_f64() / AN_HOUR.as_secs_f64();
    let count = starts.iter().sum::<f64>() as u64;
    html! {
        section.group {
            div.spread {
                h2 { "Next hour" }
                span.note {
                    "about " (grouped(count)) " " (plural(count as usize, "start", "starts"))
                    @if coming.more { " until " (clock(end, visit.now, visit.zone)) ", of the first " } @else { " of " }
                    a href=(visit.links.to("/jobs?sort=next")) { (grouped(due.len() as u64)) " " (plural(due.len(), "job", "jobs")) }
                }
            }
            @if due.is_empty() { p.muted { "Nothing is due within an hour." } }
            @else {
                (activity::next_hour_chart(visit, &starts, count, known))
                ul.coming data-list {
                    @for (at, job) in due.iter().take(8) {
                        li {
                            (relative(*at, visit.now)) span.muted { (clock(*at, visit.now, visit.zone)) }
                            span { (job_link(visit, &key_of(&job.view))) }
                        }
                    }
                }
            }
        }
    }
}

/// The jobs with a due time in this range, the first one first. A run that executes may be all that a job has there.
fn due_within(range: std::ops::Range<Timestamp>, jobs: &[ListedJob]) -> Vec<(Timestamp, &ListedJob)> {
    let first = |job: &ListedJob| job.at.or_else(|| coming_of(&job.view, 1).first().copied());
    let dated = jobs.iter().filter_map(|job| Some((first(job).filter(|at| range.contains(at))?, job)));
    let mut due: Vec<_> = dated.collect();
    due.sort_by_key(|(at, job)| (*at, job.view.state.id));
    due
}

fn welcome(visit: &Visit, needs: &needs::Needs<'_>) -> Markup {
    html! {
        h1.hidden { "Overview" }
        p.sentence { "No jobs yet." }
        div.empty {
            p { "Bring the crontab that you have:" }
            (copyable("crontab -l | carillon import -"))
            p { "Or add one:" }
            (copyable("carillon job add hello --schedule '* * * * *' -- echo hello"))
        }
        (said(visit))
        (needs.list(visit))
    }
}
