//! The difference before a job is stored, and the conflict with somebody else's change.

use carillon_domain::job::Job;
use carillon_store::{JobKey, JobView};
use maud::{Markup, html};

use crate::page::layout::View;
use crate::page::params::Params;
use crate::page::screens::diff::{Sides, table};
use crate::page::screens::parts::csrf;
use crate::page::screens::schedules::explain::{Asked, explained};
use crate::page::visit::Visit;
use crate::page::zone::relative;
use carillon_json::{changed_fields, definition_json};

/// The page before storing.
pub(super) fn review(visit: &Visit, stored: Option<&JobView>, job: &Job, given: &Params) -> View {
    let before = stored.map(|view| definition_json(&view.job)).unwrap_or_default();
    let fields = changed_fields(&before, &definition_json(job));
    let same = stored.is_some_and(|view| *view.job == *job);
    let key = format!("{}/{}", job.namespace, job.name);
    let schedule = Asked { schedule: &job.schedule, timezone: job.timezone.as_deref(), key: &key }.read();
    let body = html! {
        h1 { @if stored.is_some() { "Change " } @else { "Add " } (job.name) }
        @if same { p.say { "Nothing differs from what is stored." } }
        @else if fields.is_empty() { p.say { "Only values of secrets differ." } }
        @else { (table(&fields, if stored.is_some() { Sides::Both } else { Sides::After })) }
        @if fields.iter().any(|field| ["schedule", "timezone"].contains(&field.path.as_str())) && let Ok(schedule) = &schedule {
            section.group { h2 { "Then it runs" } (explained(visit, schedule)) }
        }
        div.row {
            @if !same { (again(visit, given, "save", if stored.is_some() { "Save" } else { "Add the job" }, true)) }
            (again(visit, given, "check", "Back to the form", false))
        }
    };
    View::new(format!("Review {}", job.name), body)
}

/// Somebody else changed the job since the form was made: both versions, and the ways on.
pub(super) fn conflict(visit: &Visit, stored: &JobView, mine: &Job, given: &Params) -> View {
    let fields = changed_fields(&definition_json(&stored.job), &definition_json(mine));
    let key = JobKey { namespace: stored.job.namespace.clone(), name: stored.job.name.clone() };
    let newer = given.with("generation", Some(&stored.state.generation.to_string()));
    let body = html! {
        h1 { "Somebody else changed " (key.name) }
        p.say.warn {
            "It was changed " (relative(stored.updated_at, visit.now)) ", after your form was made. Nothing of yours is stored yet."
        }
        @if fields.is_empty() { p { "Both versions are the same." } }
        @else {
            p { "The stored version stands before −, yours before +." }
            (table(&fields, Sides::Both))
        }
        div.row {
            (again(visit, &newer, "review", "Go on with mine", true))
            a.button href=(format!("{}/edit", visit.links.job(&key))) { "Take the stored one" }
            a href=(visit.links.with("/audit", &Params::default().with("job", Some(&key.name)).with("namespace", Some(&key.namespace)))) { "Who changed it" }
        }
    };
    View::new(format!("Conflict: {}", key.name), body)
}

/// The form once more, without showing its fields.
fn again(visit: &Visit, given: &Params, action: &str, word: &str, primary: bool) -> Markup {
    html! {
        form method="post" {
            (csrf(visit))
            @for (key, value) in given.pairs() { input type="hidden" name=(key) value=(value); }
            button name="do" value=(action) .primary[primary] { (word) }
        }
    }
}
