//! Which screen, action or file a path means.

use carillon_domain::name::{check_job_name, check_namespace, check_route_name};
use carillon_store::JobKey;
use warp::http::header::{ACCEPT, HeaderMap};
use warp::http::{Method, StatusCode};

use crate::config::Role;
use crate::http::problem::Problem;
use crate::http::request::query::decode;
use crate::page::layout::{Shown, View};
use crate::page::screens::alerts::Deed;
use crate::page::screens::job::Action;
use crate::page::screens::{alerts, audit, cluster, edit, job, jobs, overview, run, schedules, timeline};
use crate::page::sign_in;
use crate::page::visit::{Fault, Request, Visit};

/// A place of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Overview,
    Jobs,
    /// An action on many jobs.
    JobsDo,
    Job(JobKey),
    JobAction(JobKey, Action),
    Run(String),
    RunFollow(String),
    RunCancel(String),
    Cluster,
    ClusterAccept,
    Alerts,
    NewAlert,
    EditAlert(String),
    AlertDo(String, Deed),
    /// A message that is to be sent again.
    Resend(u64),
    Audit,
    Schedules,
    Timeline,
    NewJob,
    EditJob(JobKey),
    SignIn,
    SignOut,
    /// The secret of a link that signs in.
    SignInLink(String),
    Static(String),
    /// A page that is not there, asked for by a browser.
    Nowhere,
}

impl Address {
    /// The place that a path names; `None` where it belongs to the API.
    pub fn of(path: &str, method: &Method, headers: &HeaderMap) -> Option<Self> {
        let segments: Vec<String> = path.trim_start_matches('/').split('/').map(decode).collect::<Option<_>>()?;
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        Some(match segments.as_slice() {
            [""] => Address::Overview,
            ["jobs"] => Address::Jobs,
            ["jobs", "do"] => Address::JobsDo,
            ["jobs", "new"] => Address::NewJob,
            ["jobs", namespace, name, "edit"] => Address::EditJob(key(namespace, name)?),
            ["jobs", namespace, name] => Address::Job(key(namespace, name)?),
            ["jobs", namespace, name, action] => Address::JobAction(key(namespace, name)?, Action::of(action)?),
            ["runs", run] => Address::Run((*run).to_owned()),
            ["runs", run, "follow"] => Address::RunFollow((*run).to_owned()),
            ["runs", run, "cancel"] => Address::RunCancel((*run).to_owned()),
            ["cluster"] => Address::Cluster,
            ["cluster", "accept"] => Address::ClusterAccept,
            ["timeline"] => Address::Timeline,
            ["alerts"] => Address::Alerts,
            ["alerts", "new"] => Address::NewAlert,
            ["alerts", name, "edit"] => Address::EditAlert(route(name)?),
            ["alerts", name, deed] => Address::AlertDo(route(name)?, Deed::of(deed)?),
            ["alerts", "messages", id, "resend"] => Address::Resend(id.parse().ok()?),
            ["audit"] => Address::Audit,
            ["schedules"] => Address::Schedules,
            ["sign-in"] => Address::SignIn,
            ["sign-out"] => Address::SignOut,
            ["sign-in", "link", secret] => Address::SignInLink((*secret).to_owned()),
            ["static", name] => Address::Static((*name).to_owned()),
            ["v1" | "healthz" | "readyz" | "metrics" | "openapi.json", ..] => return None,
            _ if method.is_safe() && is_browser(headers) => Address::Nowhere,
            _ => return None,
        })
    }

    /// Shows the screen or does the action.
    pub async fn show(self, request: &mut Request) -> Result<Shown, Fault> {
        let reads = matches!(request.method, Method::GET | Method::HEAD);
        let writes = request.method == Method::POST;
        match self {
            Address::Overview if reads => screen(request.visit(Role::Viewer).await?, overview::show).await,
            Address::Jobs if reads => screen(request.visit(Role::Viewer).await?, jobs::show).await,
            Address::JobsDo if writes => jobs::act(request).await,
            Address::Job(key) if reads => {
                screen(request.visit(Role::Viewer).await?, async |visit: &Visit| job::show(visit, &key).await).await
            }
            Address::JobAction(key, action) if reads => {
                let visit = request.visit(action.needs()).await?;
                screen(visit, async |visit: &Visit| job::form(visit, &key, action).await).await
            }
            Address::JobAction(key, action) if writes => job::act(request, &key, action).await,
            Address::Run(run) if reads => {
                screen(request.visit(Role::Viewer).await?, async |visit: &Visit| run::show(visit, &run).await).await
            }
            Address::RunFollow(run) if reads => run::follow(&request.visit(Role::Viewer).await?, &run).await,
            Address::RunCancel(run) if writes => run::cancel(request, &run).await,
            Address::Cluster if reads => screen(request.visit(Role::Viewer).await?, cluster::show).await,
            Address::ClusterAccept if reads => screen(request.visit(Role::Admin).await?, cluster::confirm).await,
            Address::ClusterAccept if writes => cluster::accept(request).await,
            Address::Alerts if reads => screen(request.visit(Role::Viewer).await?, alerts::show).await,
            Address::NewAlert if reads => screen(request.visit(Role::Admin).await?, alerts::new).await,
            Address::NewAlert if writes => alerts::take(request, None).await,
            Address::EditAlert(name) if reads => {
                screen(request.visit(Role::Admin).await?, async |visit: &Visit| alerts::edit(visit, &name).await).await
            }
            Address::EditAlert(name) if writes => alerts::take(request, Some(&name)).await,
            Address::AlertDo(name, Deed::Delete) if reads => {
                let visit = request.visit(Role::Admin).await?;
                screen(visit, async |visit: &Visit| alerts::confirm_delete(visit, &name).await).await
            }
            Address::AlertDo(name, deed) if writes => alerts::act(request, &name, deed).await,
            Address::Resend(id) if writes => alerts::resend(request, id).await,
            Address::Audit if reads => screen(request.visit(Role::Viewer).await?, audit::show).await,
            Address::Schedules if reads => screen(request.visit(Role::Viewer).await?, schedules::show).await,
            Address::Schedules if writes => schedules::crontab(request).await,
            Address::Timeline if reads => screen(request.visit(Role::Viewer).await?, timeline::show).await,
            Address::NewJob if reads => screen(request.visit(Role::Admin).await?, edit::new).await,
            Address::NewJob if writes => edit::take(request, None).await,
            Address::EditJob(key) if reads => {
                screen(request.visit(Role::Admin).await?, async |visit: &Visit| edit::edit(visit, &key).await).await
            }
            Address::EditJob(key) if writes => edit::take(request, Some(&key)).await,
            Address::SignIn if reads => sign_in::form(request).await,
            Address::SignIn if writes => sign_in::sign_in(request).await,
            Address::SignInLink(secret) if reads => sign_in::link_form(request, &secret).await,
            Address::SignInLink(secret) if writes => sign_in::use_link(request, &secret).await,
            Address::SignOut if writes => sign_in::sign_out(request).await,
            Address::Nowhere | Address::Static(_) => {
                request.visit(Role::Viewer).await?;
                Err(Problem::new(StatusCode::NOT_FOUND, "there is no such page").into())
            }
            _ => {
                let detail = format!("{} is not possible here", request.method);
                Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail).into())
            }
        }
    }
}

/// Shows a screen to a visit.
async fn screen(visit: Visit, show: impl AsyncFnOnce(&Visit) -> Result<View, Fault>) -> Result<Shown, Fault> {
    let view = show(&visit).await?;
    Ok(Shown::View(Box::new(visit), Box::new(view)))
}

fn key(namespace: &str, name: &str) -> Option<JobKey> {
    check_namespace(namespace).ok()?;
    check_job_name(name).ok()?;
    Some(JobKey { namespace: namespace.to_owned(), name: name.to_owned() })
}

fn route(name: &str) -> Option<String> {
    check_route_name(name).ok()?;
    Some(name.to_owned())
}

/// Whether a person reads the answer.
pub(crate) fn is_browser(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|types| types.to_str().ok()).is_some_and(|types| types.contains("text/html"))
}
