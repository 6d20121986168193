//! A year of days by outcome: a column for each week, a row for each weekday.

use carillon_domain::time::Timestamp;
use carillon_store::{JobDay, OutcomeCounts};
use chrono::{Datelike, Days, NaiveDate};
use maud::{Markup, html};
use std::collections::BTreeMap;

use super::path::PathData;

/// How many weeks are shown.
const WEEKS: u64 = 53;
/// The side of a day and the gap after it.
const SIDE: f64 = 10.0;
const STEP: f64 = 12.0;

/// The worst of a day, which gives its colour and its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worst {
    Nothing,
    Fine,
    Skipped,
    Bad,
}

impl Worst {
    const fn of(outcomes: &OutcomeCounts) -> Self {
        if outcomes.failed + outcomes.timed_out + outcomes.lost > 0 {
            Worst::Bad
        } else if outcomes.skipped + outcomes.cancelled > 0 {
            Worst::Skipped
        } else if outcomes.succeeded > 0 {
            Worst::Fine
        } else {
            Worst::Nothing
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Worst::Nothing => "d-nothing",
            Worst::Fine => "d-fine",
            Worst::Skipped => "d-skipped",
            Worst::Bad => "d-bad",
        }
    }
}

/// Draws the year that ends today, in UTC.
pub(crate) fn year(days: &[JobDay], now: Timestamp) -> Markup {
    let today = now.naive().date();
    let first = today - Days::new(7 * (WEEKS - 1) + u64::from(today.weekday().num_days_from_monday()));
    let known: BTreeMap<NaiveDate, Worst> =
        days.iter().map(|day| (day.begins_at.naive().date(), Worst::of(&day.outcomes))).collect();
    let mut paths: BTreeMap<Worst, PathData> = BTreeMap::new();
    let mut months = Vec::new();
    for (n, day) in first.iter_days().take_while(|day| *day <= today).enumerate() {
        let (x, y) = ((n / 7) as f64 * STEP, (n % 7) as f64 * STEP);
        let worst = known.get(&day).copied().unwrap_or(Worst::Nothing);
        let path = paths.entry(worst).or_default();
        match worst {
            Worst::Nothing => path.rect(x + 4.0, y + 4.0, 2.0, 2.0),
            Worst::Fine => path.rect(x, y, SIDE, SIDE),
            Worst::Skipped => path.rect(x + 1.0, y + 1.0, SIDE - 2.0, SIDE - 2.0),
            Worst::Bad => path.shape(x, y, &[(SIDE, 0.0), (-SIDE / 2.0, SIDE)]),
        };
        if day.day() == 1 && n / 7 < 51 {
            months.push((x, day.format("%b").to_string()));
        }
    }
    let width = WEEKS as f64 * STEP;
    html! {
        svg.year role="img" aria-label=(sentence(days)) viewBox=(format!("0 0 {width} 98")) width=(width) height="98" {
            @for (worst, path) in &paths { path class=(worst.class()) d=(path.as_str()) {} }
            @for (x, month) in &months { text x=(x) y="96" { (month) } }
        }
    }
}

/// The shapes of the days in words.
pub(crate) fn legend() -> Markup {
    let shapes = [
        ("o o-succeeded", "", "M1 1h10v10h-10z", "all ran well"),
        ("o o-skipped", "h", "M2 2h8v8h-8z", "some did not run"),
        ("o o-failed", "", "M1 1h10l-5 10z", "with failures"),
    ];
    html! {
        p.legend.small {
            @for (class, kind, path, words) in shapes {
                span class=(class) { svg viewBox="0 0 12 12" aria-hidden="true" { path class=(kind) d=(path) {} } (words) } " "
            }
            span.muted { "Days begin at midnight in UTC." }
        }
    }
}

fn sentence(days: &[JobDay]) -> String {
    let count = |worst| days.iter().filter(|day| Worst::of(&day.outcomes) == worst).count();
    let (fine, skipped, bad) = (count(Worst::Fine), count(Worst::Skipped), count(Worst::Bad));
    if fine + skipped + bad == 0 {
        return "No day of the last year has a record.".to_owned();
    }
    format!(
        "Days of the last year: {fine} on which all ran well, {skipped} on which some did not run, {bad} with failures."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_a_day_is_shown() {
        let now = Timestamp::parse_rfc3339("2027-03-03T10:00:00Z").unwrap();
        let day = |text: &str, succeeded, failed| JobDay {
            begins_at: Timestamp::parse_rfc3339(text).unwrap(),
            outcomes: OutcomeCounts { succeeded, failed, ..OutcomeCounts::default() },
        };
        let days = [day("2027-03-02T00:00:00Z", 5, 1), day("2027-03-03T00:00:00Z", 5, 0)];
        let svg = year(&days, now).into_string();
        assert!(svg.contains("1 on which all ran well, 0 on which some did not run, 1 with failures"), "{svg}");
        assert!(svg.contains("class=\"d-bad\"") && svg.contains("class=\"d-fine\""));
        assert!(svg.len() < 12_000, "{} bytes", svg.len());
    }
}
