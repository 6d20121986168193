//! The forms before an action: run with params, pause with reason and end, delete.

use carillon_domain::time::Timestamp;
use carillon_store::{JobKey, JobView};
use maud::{Markup, html};

use crate::config::Role;
use crate::http::problem::Problem;
use crate::page::layout::{View, sentence};
use crate::page::params::Params;
use crate::page::screens::job::{compared, usual_of, visible};
use crate::page::screens::parts::{csrf, running};
use crate::page::visit::{Fault, Visit};
use crate::page::zone::{clock, wall};
use carillon_json::shown_params;

/// An action that has a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Run,
    Pause,
    Resume,
    Delete,
}

impl Action {
    /// By the last segment of the path.
    pub fn of(segment: &str) -> Option<Self> {
        Some(match segment {
            "run" => Action::Run,
            "pause" => Action::Pause,
            "resume" => Action::Resume,
            "delete" => Action::Delete,
            _ => return None,
        })
    }

    /// Who may do it.
    pub const fn needs(self) -> Role {
        match self {
            Action::Run | Action::Pause | Action::Resume => Role::Operator,
            Action::Delete => Role::Admin,
        }
    }
}

/// The page with the form of an action.
pub(crate) async fn form(visit: &Visit, key: &JobKey, action: Action) -> Result<View, Fault> {
    let view = visible(visit, key).await?;
    let form = filled(visit, key, &view, action, &Params::default(), None).await?;
    Ok(View::new(format!("{}: {}", title(action), key.name), form))
}

/// The same form, filled in again, with the fault that it had.
pub(crate) async fn again(
    visit: &Visit,
    key: &JobKey,
    action: Action,
    given: &Params,
    problem: &Problem,
) -> Result<View, Fault> {
    let view = visible(visit, key).await?;
    let form = filled(visit, key, &view, action, given, Some(problem)).await?;
    Ok(View::new(format!("{}: {}", title(action), key.name), form))
}

const fn title(action: Action) -> &'static str {
    match action {
        Action::Run => "Run now",
        Action::Pause => "Pause",
        Action::Resume => "Resume",
        Action::Delete => "Delete",
    }
}

async fn filled(
    visit: &Visit,
    key: &JobKey,
    view: &JobView,
    action: Action,
    given: &Params,
    problem: Option<&Problem>,
) -> Result<Markup, Fault> {
    let fields = match action {
        Action::Run => run(visit, view, given).await?,
        Action::Pause => pause(visit, given),
        Action::Resume => {
            html! { p { "Its due times go on as the schedule says." } button.primary autofocus { "Resume" } }
        }
        Action::Delete => delete(view),
    };
    Ok(html! {
        p { a href=(visit.links.job(key)) { "← " (key.name) } }
        h1 { (title(action)) " " (key.name) }
        @if let Some(problem) = problem {
            p #fault .say.bad role="alert" { (sentence(&problem.detail)) }
        }
        form.stack.narrow method="post" { (csrf(visit)) (fields) }
    })
}

async fn run(visit: &Visit, view: &JobView, given: &Params) -> Result<Markup, Fault> {
    let alive = running(view).and_then(|held| held.started_at);
    let usual = if alive.is_some() { usual_of(visit, view.state.id).await? } else { None };
    let params = serde_json::to_string_pretty(&shown_params(&view.job)).unwrap_or_default();
    let text = given.get("params").unwrap_or(&params);
    Ok(html! {
        @if let Some(started_at) = alive {
            p.say.warn {
                "Its last run still lives, since " (clock(started_at, visit.now, visit.zone)) ": "
                (compared(visit.now.since(started_at), usual)) ". "
                @match view.job.overlap.as_str() {
                    "allow" => "The new one runs beside it.",
                    "replace" => "The new one takes its place.",
                    _ => "The new one waits for its end.",
                }
            }
        }
        @if visit.may(Role::Admin) {
            label for="params" { "Params for this run" }
            textarea #params name="params" rows="10" spellcheck="false" aria-describedby="params-note" { (text) }
            p #params-note .note { "They are laid over those of the job, for this run only. Left as they are, they are the job's." }
            input type="hidden" name="unchanged" value=(params);
        } @else { pre.json { (params) } }
        button.primary autofocus { "Run now" }
    })
}

fn pause(visit: &Visit, given: &Params) -> Markup {
    let soonest = wall(visit.now, visit.zone).format("%Y-%m-%dT%H:%M").to_string();
    html! {
        p { "What runs may finish. Due times during a pause are recorded and never run." }
        label for="reason" { "Reason " span.muted { "(may be empty)" } }
        input #reason name="reason" type="text" maxlength="1000" autofocus value=(given.get("reason").unwrap_or_default());
        label for="until" { "Until " span.muted { "(may be empty; " (visit.zone.name()) ")" } }
        input #until name="until" type="datetime-local" min=(soonest) value=(given.get("until").unwrap_or_default());
        button.primary { "Pause" }
    }
}

fn delete(view: &JobView) -> Markup {
    let living = running(view).is_some();
    html! {
        p { "Nothing new starts, and the name is free at once. The history stays until it expires." }
        @if living { p.say.warn { "One run lives. It may finish." } }
        @if let Some(next) = carillon_json::next_due_at(view) { p { "Its next due time was " (Timestamp::to_rfc3339_short(next)) "." } }
        input type="hidden" name="generation" value=(view.state.generation);
        button.danger { "Delete " (view.job.name) }
    }
}
