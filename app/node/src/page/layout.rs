//! The frame around every screen: head, navigation, footer; and the page that tells a fault.

use maud::{DOCTYPE, Markup, html};
use warp::http::StatusCode;
use warp::reply::Response;

use crate::http::problem::Problem;
use crate::page::answer;
use crate::page::assets::{ICON, ICON_ALERT, SCRIPT, STYLESHEET};
use crate::page::links::Links;
use crate::page::params::Params;
use crate::page::visit::{Request, Visit};
use crate::page::zone::full;

/// The outcome of a request for a page.
pub(crate) enum Shown {
    /// A screen.
    View(Box<Visit>, Box<View>),
    /// Something else, such as a redirect.
    Response(Response),
}

/// The content of a screen.
pub(crate) struct View {
    /// The title of the page.
    pub title: String,
    /// The markup between the frame.
    pub body: Markup,
    /// Which events the script listens to; `None` for a page that does not move.
    pub live: Option<Live>,
    /// How many things need a person, as the title and the icon tell it; `None` where this screen does not know.
    pub alerts: Option<usize>,
    /// How the same can be had by program.
    pub otherwise: Option<Otherwise>,
}

/// Which events make a page look again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    /// The query of `/v1/events`.
    pub query: Params,
}

/// How a page can be had by a program.
#[derive(Debug, Clone)]
pub(crate) struct Otherwise {
    /// The path and query of the API.
    pub api: String,
    /// The JSON that is sent there, for a POST.
    pub body: Option<String>,
    /// The line for the command line client.
    pub cli: String,
}

/// The entries of the navigation: path, name, key.
const NAVIGATION: [(&str, &str, &str); 7] = [
    ("/", "Overview", "o"),
    ("/jobs", "Jobs", "j"),
    ("/timeline", "Timeline", "t"),
    ("/schedules", "Schedules", "s"),
    ("/cluster", "Cluster", "c"),
    ("/alerts", "Alerts", "l"),
    ("/audit", "Audit", "a"),
];

impl View {
    /// A screen that does not move.
    pub fn new(title: impl Into<String>, body: Markup) -> Self {
        Self { title: title.into(), body, live: None, alerts: None, otherwise: None }
    }

    /// Adds the events that it listens to.
    pub fn live(self, query: Params) -> Self {
        Self { live: Some(Live { query }), ..self }
    }

    /// Adds how many things need a person.
    pub fn alerts(self, alerts: usize) -> Self {
        Self { alerts: Some(alerts), ..self }
    }

    /// Adds how a program has the same.
    pub fn otherwise(self, api: impl Into<String>, cli: impl Into<String>) -> Self {
        Self { otherwise: Some(Otherwise { api: api.into(), body: None, cli: cli.into() }), ..self }
    }

    /// The same where a program sends JSON.
    pub fn posting(self, api: impl Into<String>, body: String, cli: impl Into<String>) -> Self {
        Self { otherwise: Some(Otherwise { api: api.into(), body: Some(body), cli: cli.into() }), ..self }
    }
}

/// A whole page, or the fragment of it that is asked for.
pub(crate) fn page(visit: &Visit, view: &View) -> Response {
    let main = main(visit, view);
    let text = match visit.fragment() {
        // The zone too: the first page of a reader is made before the zone is known.
        Some(_) => html! { (main) (times_in(visit)) }.into_string(),
        None => document(visit, view, &main).into_string(),
    };
    answer::html(StatusCode::OK, &visit.headers, text)
}

fn main(visit: &Visit, view: &View) -> Markup {
    let live = view.live.as_ref().map(|live| stream(visit, live));
    html! {
        main #main tabindex="-1" data-live=[live] data-title=(view.title) data-alerts=[view.alerts]
            data-at=(visit.now.to_string()) {
            (view.body)
            @if let Some(otherwise) = &view.otherwise { (by_program(visit, otherwise)) }
        }
    }
}

/// The address of the events that the page follows, from the moment before it was read.
fn stream(visit: &Visit, live: &Live) -> String {
    let since = visit.position.map(|position| position.to_string());
    visit.links.with("/v1/events", &live.query.with("since", since.as_deref()))
}

fn document(visit: &Visit, view: &View, main: &Markup) -> Markup {
    let links = &visit.links;
    let alerts = view.alerts.filter(|alerts| *alerts > 0);
    let title = match alerts {
        Some(alerts) => format!("({alerts}) {} · Carillon", view.title),
        None => format!("{} · Carillon", view.title),
    };
    html! {
        (DOCTYPE)
        html lang="en" data-zone=(visit.zone.name()) data-zone-known[visit.zone_known] {
            (head(links, &title, alerts.is_some()))
            body {
                a.skip href="#main" { "Skip to the content" }
                header.bar {
                    a.brand href=(links.to("/")) { (bell()) "Carillon" }
                    nav aria-label="Screens" {
                        @for (path, name, key) in NAVIGATION {
                            a href=(links.to(path)) data-key=(key)
                                aria-current=[is_current(&visit.path, path).then_some("page")] { (name) }
                        }
                    }
                    (status(visit))
                }
                (main)
                (footer(visit))
                div #announce.hidden aria-live="polite" {}
                (help())
            }
        }
    }
}

fn is_current(path: &str, entry: &str) -> bool {
    if entry == "/" { path == "/" } else { path.starts_with(entry) }
}

pub(crate) fn head(links: &Links, title: &str, alert: bool) -> Markup {
    let (icon, other) = if alert { (&ICON_ALERT, &ICON) } else { (&ICON, &ICON_ALERT) };
    let (calm, alarmed) = if alert { (other, icon) } else { (icon, other) };
    html! {
        head {
            meta charset="utf-8";
            title { (title) }
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            link rel="stylesheet" href=(links.to(&STYLESHEET.path()));
            link #icon rel="icon" type="image/svg+xml" href=(links.to(&icon.path()))
                data-calm=(links.to(&calm.path())) data-alert=(links.to(&alarmed.path()));
            script type="module" src=(links.to(&SCRIPT.path())) {}
        }
    }
}

/// Who is here, and how fresh the page is. The script fills in what is live.
fn status(visit: &Visit) -> Markup {
    let csrf = visit.csrf.as_deref();
    html! {
        div.status {
            span #live .live hidden { button #pause-live type="button" .quiet aria-pressed="false" { "Live" } }
            details.menu {
                summary { (visit.caller.name()) " " span.role { (visit.caller.role().as_str()) } }
                div.sheet {
                    p.note { "This page is from " (visit.api.engine.node()) "." }
                    @if let Some(csrf) = csrf {
                        form method="post" action=(visit.links.to("/sign-out")) {
                            input type="hidden" name="csrf" value=(csrf);
                            button { "Sign out" }
                        }
                    }
                }
            }
        }
    }
}

fn footer(visit: &Visit) -> Markup {
    html! {
        footer.foot {
            span #connection role="status" { "Made at " (full(visit.now, visit.zone)) "." }
            (times_in(visit))
            span.keys { "Keys: " kbd { "?" } }
        }
    }
}

/// The zone of all times, and the way to the other one.
fn times_in(visit: &Visit) -> Markup {
    html! {
        span #times data-zone=(visit.zone.name()) {
            "Times in " strong { (visit.zone.name()) } ". "
            @if visit.zone == chrono_tz::Tz::UTC { a #own-zone href=(visit.here("zone", None)) hidden { "Show mine" } }
            @else { a href=(visit.here("zone", Some("UTC"))) { "Show UTC" } }
        }
    }
}

/// The keys, in a dialog that the script opens.
fn help() -> Markup {
    const KEYS: [(&str, &str); 9] = [
        ("/", "search"),
        ("j k", "next and previous row"),
        ("Enter", "open the row"),
        ("x", "select the row; with Shift a click selects a range"),
        ("o", "output of the last run"),
        ("r", "run now"),
        ("p", "pause or resume"),
        ("g and o j t s c l a", "go to overview, jobs, timeline, schedules, cluster, alerts, audit"),
        ("Esc", "close, leave a field"),
    ];
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl.facts { @for (keys, effect) in KEYS { dt { kbd { (keys) } } dd { (effect) } } }
            form method="dialog" { button autofocus { "Close" } }
        }
    }
}

/// The lines by which a program has the same as this page.
fn by_program(visit: &Visit, otherwise: &Otherwise) -> Markup {
    let url = format!("{}{}", visit.origin, visit.links.to(&otherwise.api));
    let sent =
        otherwise.body.as_ref().map_or(String::new(), |body| format!(" --json '{}'", body.replace('\'', "'\\''")));
    html! {
        details.program {
            summary { "The same by program" }
            dl {
                dt { "HTTP" } dd { (copyable(&format!("curl -H \"Authorization: Bearer $CARILLON_TOKEN\"{sent} '{url}'"))) }
                dt { "Command line" } dd { (copyable(&otherwise.cli)) }
            }
        }
    }
}

/// A line that the script can copy, also where the browser has no clipboard for pages.
pub(crate) fn copyable(text: &str) -> Markup {
    html! { span.copy { code { (text) } button.quiet type="button" data-copy=(text) hidden { "Copy" } } }
}

fn bell() -> Markup {
    html! {
        svg.bell viewBox="0 0 16 16" aria-hidden="true" {
            path d="M8 1a4.2 4.2 0 0 0-4.2 4.2c0 4-1.3 5.3-2.3 6.3h13c-1-1-2.3-2.3-2.3-6.3A4.2 4.2 0 0 0 8 1zM6.2 12.8a1.9 1.9 0 0 0 3.6 0z" {}
        }
    }
}

/// A page outside the frame: for those who have not signed in, and for faults.
pub(crate) fn bare(
    request: &Request,
    status: StatusCode,
    title: &str,
    body: &Markup,
    refresh: Option<&str>,
) -> Response {
    let links = request.links();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&links, &format!("{title} · Carillon"), false))
            @if let Some(address) = refresh { meta http-equiv="refresh" content=(format!("0; url={address}")); }
            body.bare {
                main #main tabindex="-1" {
                    a.brand href=(links.to("/")) { (bell()) "Carillon" }
                    (body)
                }
            }
        }
    };
    answer::html(status, &request.headers, page.into_string())
}

/// A fault as a page.
pub(crate) fn problem(request: &Request, problem: &Problem) -> Response {
    let title = problem.status.canonical_reason().unwrap_or("Error");
    let body = html! {
        h1 { (title) }
        p.sentence { (sentence(&problem.detail)) }
        @if problem.errors.len() > 1 {
            ul { @for error in &problem.errors { li { code { (error.field) } ": " (error.message) } } }
        }
        p { a href=(request.links().to("/")) { "To the overview" } }
    };
    bare(request, problem.status, title, &body, None)
}

/// A detail of the API as a sentence.
pub(crate) fn sentence(detail: &str) -> String {
    let mut chars = detail.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if detail.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}
