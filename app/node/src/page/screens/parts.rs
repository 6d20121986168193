//! Parts that several screens share.

use carillon_domain::firing::{Held, Phase};
use carillon_domain::time::Timestamp;
use carillon_store::{JobKey, JobView};
use chrono_tz::Tz;
use maud::{Markup, html};

use crate::page::visit::Visit;
use carillon_json::next_due_at;

/// The key of a job.
pub(crate) fn key_of(view: &JobView) -> JobKey {
    JobKey { namespace: view.job.namespace.clone(), name: view.job.name.clone() }
}

/// The field that shows a form to be of this session.
pub(crate) fn csrf(visit: &Visit) -> Markup {
    html! { @if let Some(csrf) = &visit.csrf { input type="hidden" name="csrf" value=(csrf); } }
}

/// The button that announces new rows of the list below. The script shows it, and puts them in when it is pressed.
pub(crate) fn news(here: &str) -> Markup {
    html! { a #news .button href=(here) hidden {} }
}

/// A job's name as a link; the namespace stands before it unless it is the default one.
pub(crate) fn job_link(visit: &Visit, key: &JobKey) -> Markup {
    html! {
        a href=(visit.links.job(key)) {
            @if key.namespace != "default" { span.muted { (key.namespace) "/" } }
            (key.name)
        }
    }
}

/// The next due times of a job, the first of which may have passed.
pub(crate) fn coming(view: &JobView, count: usize) -> Vec<Timestamp> {
    due_times(view).take(count).collect()
}

/// All of them, each looked up when it is asked for.
pub(crate) fn due_times(view: &JobView) -> impl Iterator<Item = Timestamp> {
    let first = next_due_at(view);
    first.into_iter().chain(first.into_iter().flat_map(|first| view.timeline.after(first)))
}

/// The run of a job's own row that executes.
pub(crate) fn running(view: &JobView) -> Option<&Held> {
    match &view.state.phase {
        Phase::Executing(held) => Some(held),
        Phase::Idle | Phase::Prepared(_) => None,
    }
}

/// A schedule in words.
pub(crate) fn in_words(view: &JobView) -> String {
    view.timeline.schedule.describe()
}

/// The zone of a job's schedule.
pub(crate) fn zone_of(view: &JobView) -> Option<Tz> {
    view.timeline.schedule.timezone().parse().ok()
}

/// A bounded count: `12`, or `1,000+`.
pub(crate) fn bounded(count: usize, more: bool) -> String {
    format!("{}{}", grouped(count as u64), if more { "+" } else { "" })
}

/// A number with a comma after each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `job` or `jobs`.
pub(crate) fn plural<'a>(count: usize, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

/// The parameters by which a pause can come back after a resumption.
pub(crate) const UNDO_REASON: &str = "undo-reason";
/// Its end.
pub(crate) const UNDO_UNTIL: &str = "undo-until";
/// The jobs that an action on many has changed.
pub(crate) const UNDO_OF: &str = "undo-of";
/// The action that takes back an action on many.
pub(crate) const UNDO_BY: &str = "undo-by";

/// The effect of the action that led here.
pub(crate) fn said(visit: &Visit) -> Markup {
    let Some(text) = effect(visit) else { return html! {} };
    html! { div #said .say role="status" { (text) } }
}

/// The same with a form that takes it back. The script removes both after 10 seconds.
pub(crate) fn said_with_way_back(visit: &Visit, form: &Markup) -> Markup {
    let Some(text) = effect(visit) else { return html! {} };
    html! { div #said .say.spread role="status" data-undo { (text) (form) } }
}

fn effect(visit: &Visit) -> Option<&'static str> {
    Some(match visit.params.get("said")? {
        "paused" => "Paused. What runs may finish; nothing new starts.",
        "resumed" => "Resumed. The due times are those of the schedule, as before the pause.",
        "asked" => "A run was asked for. It starts within about a second.",
        "cancelled" => "The run was asked to end.",
        "deleted" => "The job was deleted. Its history stays until it expires.",
        "done" => "Done for the selected jobs.",
        "accepted" => "Accepted. Claims and starts go on within one heartbeat.",
        "saved" => "Saved.",
        "tested" => "A message is on its way to each target. The answers stand below in a moment.",
        "resent" => "The message is sent again.",
        "route-deleted" => "The route was deleted.",
        "none" => "Nothing was selected.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_bounded() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_204), "1,204");
        assert_eq!(grouped(12_345_678_901_234_567), "12,345,678,901,234,567");
        assert_eq!(bounded(1_000, true), "1,000+");
    }
}
