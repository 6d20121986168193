//! Due, claimed, started and ended of a run on one bar, to scale.

use carillon_domain::duration::spoken;
use carillon_domain::time::Timestamp;
use maud::{Markup, html};

use super::Outline;
use crate::page::chart::path::PathData;
use crate::page::visit::Visit;
use crate::page::zone::short;

/// The width and height of the drawing, and the width of the mark of the claim.
const WIDTH: f64 = 1_000.0;
const HEIGHT: f64 = 20.0;
const MARK: f64 = 4.0;

/// The bar; nothing for a due time that did not run. It begins with the due time. A node often claims further ahead than the run
/// takes. Then the mark of the claim stands at the beginning, and the words say how long before.
pub(super) fn bar(visit: &Visit, outline: &Outline) -> Markup {
    let Some(started_at) = outline.started_at else { return html! {} };
    let end = outline.finished_at.unwrap_or(visit.now).max(started_at);
    let begin = outline.due_at.min(started_at);
    let whole = end.since(begin).as_secs_f64().max(0.001);
    let x = |at: Timestamp| at.since(begin).as_secs_f64() / whole * WIDTH;
    let (mut wait, mut claim, mut run) = (PathData::default(), PathData::default(), PathData::default());
    let began = x(started_at);
    wait.rect(0.0, HEIGHT / 2.0 - 1.0, began, 2.0);
    if let Some(at) = outline.claimed_at {
        claim.rect(x(at).min(WIDTH - MARK), HEIGHT / 2.0 - 4.0, MARK, 8.0);
    }
    run.rect(began.min(WIDTH - 2.0), 2.0, (WIDTH - began).max(2.0), HEIGHT - 4.0);
    let (waited, ran) = (started_at.since(begin), end.since(started_at));
    let ended = if outline.finished_at.is_some() { "ended" } else { "runs" };
    let claimed = outline.claimed_at.map(|at| claimed(at, begin)).unwrap_or_default();
    let sentence = format!("Due, {claimed}{} later started, {ended} after {}.", spoken(waited), spoken(ran));
    let time = |at| short(at, visit.now, visit.zone);
    html! {
        figure.span {
            svg role="img" aria-label=(sentence) viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) preserveAspectRatio="none" {
                path.span-wait d=(wait.as_str()) {}
                path.span-run d=(run.as_str()) {}
                @if !claim.is_empty() { path.span-claim d=(claim.as_str()) {} }
            }
            figcaption.spread.small {
                span { "due " (time(outline.due_at)) }
                span.muted {
                    (claimed) "waited " (spoken(waited)) ", "
                    @if outline.finished_at.is_some() { "ran " } @else { "runs for " } (spoken(ran))
                }
                span { @match outline.finished_at { Some(at) => { "ended " (time(at)) } None => "runs" } }
            }
        }
    }
}

/// When it was claimed, against the due time.
fn claimed(at: Timestamp, due: Timestamp) -> String {
    match (due.since(at), at.since(due)) {
        (ahead, _) if !ahead.is_zero() => format!("claimed {} ahead, ", spoken(ahead)),
        (_, late) => format!("claimed after {}, ", spoken(late)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_ahead_of_the_due_time_or_after_it() {
        let due = Timestamp::from_ms(100_000);
        for (ms, told) in
            [(88_000, "claimed 12 s ahead, "), (100_000, "claimed after 0 ms, "), (100_250, "claimed after 250 ms, ")]
        {
            assert_eq!(claimed(Timestamp::from_ms(ms), due), told);
        }
    }
}
