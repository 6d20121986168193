//! The strip of a job: its due times from left to right through now, expected against actual.
//!
//! A run is a bar: its height is its duration, of which half the strip is the usual one. A due time that did not run is a hollow mark at
//! the same place. A coming one is an outline, and a pause hatches those that it takes. Each due time has a slot of the same
//! width, however far apart they are; the timeline is to scale.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::firing::{Held, Pause};
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use maud::{Markup, html};

use super::path::PathData;
use crate::page::outcome::Mark;
use crate::page::usual;

/// How large a strip is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// In the row of a list.
    Row,
    /// On the page of a job.
    Job,
}

/// How many due times lie before and after now, and the strip's width and height.
struct Shape {
    past: usize,
    coming: usize,
    width: f64,
    height: f64,
}

impl Size {
    const fn shape(self) -> Shape {
        match self {
            Size::Row => Shape { past: 20, coming: 4, width: 168.0, height: 24.0 },
            Size::Job => Shape { past: 400, coming: 40, width: 1320.0, height: 80.0 },
        }
    }

    /// How many records it shows at the most.
    pub const fn past(self) -> usize {
        self.shape().past
    }

    /// How many coming due times it shows at the most.
    pub const fn coming(self) -> usize {
        self.shape().coming
    }
}

/// Everything that a strip shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// Records, newest first.
    pub records: &'a [RunRecord],
    /// The run that executes.
    pub running: Option<&'a Held>,
    /// Coming due times.
    pub coming: &'a [Timestamp],
    /// The pause, if there is one.
    pub pause: Option<&'a Pause>,
    /// When this is.
    pub now: Timestamp,
}

/// Draws a strip.
pub(crate) fn strip(facts: &Facts<'_>, size: Size) -> Markup {
    let Shape { past, coming, width, height } = size.shape();
    let records = &facts.records[..facts.records.len().min(past)];
    // Few due times have wide slots, up to a bound: a bar of a hand's width tells nothing.
    let shown = (records.len() + 1).clamp(past.min(72), past) as f64;
    let after = facts.coming.len().min(coming).min((shown / 4.0).ceil() as usize) as f64;
    // Whole units keep the numbers short.
    let slots = shown + after.max(2.0) + 1.0;
    let slot = (width / slots).round().max(3.0);
    let width = slot * slots;
    let now_x = slot * (shown + 0.5);
    let usual = usual::usual(facts.records).or_else(|| records.iter().filter_map(usual::duration).max());
    let mut drawing = Drawing { slot, height, usual, paths: BTreeMap::new() };
    for (n, record) in records.iter().enumerate() {
        let place = n as f64 + if facts.running.is_some() { 2.0 } else { 1.0 };
        let x = (now_x - slot / 2.0 - place * slot).round();
        if x >= 0.0 {
            drawing.bar(x, record.status.into(), usual::duration(record));
        }
    }
    if let Some(held) = facts.running {
        let since = held.started_at.map(|started_at| facts.now.since(started_at));
        drawing.bar((now_x - slot * 1.5).round(), Mark::Running, since);
    }
    let mut outlines = PathData::default();
    let mut hatch = PathData::default();
    for (n, due) in facts.coming.iter().take(after as usize).enumerate() {
        let x = (now_x + slot * (n as f64 + 0.5)).round();
        let gone = facts.pause.is_some_and(|pause| pause.until.is_none_or(|until| *due < until));
        drawing.outline(if gone { &mut hatch } else { &mut outlines }, x, gone);
    }
    let mut now_line = PathData::default();
    now_line.line((now_x, 0.0), (now_x, height));
    html! {
        svg class=(if size == Size::Row { "strip row" } else { "strip" }) role="img" aria-label=(sentence(facts, usual))
            viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" {
            @for (mark, path) in &drawing.paths { path class=(format!("s-{}", mark.as_str())) d=(path.as_str()) {} }
            @if !outlines.is_empty() { path.s-coming d=(outlines.as_str()) {} }
            @if !hatch.is_empty() { path.s-paused d=(hatch.as_str()) {} }
            path.s-now d=(now_line.as_str()) {}
        }
    }
}

struct Drawing {
    slot: f64,
    height: f64,
    usual: Option<Duration>,
    paths: BTreeMap<Mark, PathData>,
}

impl Drawing {
    /// One due time; the shape of the outcome tells as much as its colour.
    fn bar(&mut self, x: f64, mark: Mark, took: Option<Duration>) {
        let (slot, height) = (self.slot, self.height);
        let (width, tall) = (slot - 1.0, self.tall(took));
        let path = self.paths.entry(mark).or_default();
        let top = height - tall;
        match mark {
            // A wedge at the upper edge, seen however short the run was.
            Mark::Failed => {
                let wedge = (height * 0.28).min(8.0).round();
                path.rect(x, top, width, tall).shape(x, 0.0, &[(width, 0.0), (-width / 2.0, wedge)]);
            }
            // A bar that runs against a ceiling.
            Mark::TimedOut => {
                path.rect(x, 4.0, width, height - 4.0).rect(x, 0.0, width, 2.0);
            }
            // Broken off.
            Mark::Lost => {
                let third = (height / 5.0).round();
                path.rect(x, height - third, width, third).rect(x, height - 3.0 * third, width, third);
            }
            // Cut aslant.
            Mark::Cancelled => {
                path.shape(x, height, &[(0.0, -tall), (width, (tall * 0.6).round()), (0.0, (tall * 0.4).round())]);
            }
            // Hollow: nothing ran.
            Mark::Skipped => {
                let half = (width / 2.0).clamp(1.0, 4.0);
                let middle = x + width / 2.0;
                path.shape(middle, height - 1.0 - 2.0 * half, &[(half, half), (-half, half), (-half, -half)]);
            }
            _ => {
                path.rect(x, top, width, tall);
            }
        }
    }

    fn outline(&self, path: &mut PathData, x: f64, paused: bool) {
        let (slot, tall) = (self.slot, self.height / 2.0);
        let width = (slot - 2.0).max(1.0);
        if paused {
            path.line((x, self.height - 1.0), (x + width, self.height - tall));
            path.line((x, self.height - 1.0 - tall / 2.0), (x + width / 2.0, self.height - tall));
            path.line((x + width / 2.0, self.height - 1.0), (x + width, self.height - tall / 2.0));
        } else {
            path.rect(x, self.height - tall - 1.0, width, tall);
        }
    }

    /// Half the height is the usual duration, all of it twice that or more.
    fn tall(&self, took: Option<Duration>) -> f64 {
        let share = match (took, self.usual) {
            (Some(took), Some(usual)) if !usual.is_zero() => took.as_secs_f64() / usual.as_secs_f64() / 2.0,
            (Some(_), _) => 0.5,
            (None, _) => 0.0,
        };
        (share.min(1.0) * self.height).round().max(2.0)
    }
}

/// The strip in words.
fn sentence(facts: &Facts<'_>, usual: Option<Duration>) -> String {
    let mut counts: BTreeMap<Mark, u64> = BTreeMap::new();
    for record in facts.records {
        *counts.entry(record.status.into()).or_default() += record.count.max(1);
    }
    if counts.is_empty() && facts.running.is_none() {
        return "No due time has passed yet.".to_owned();
    }
    let total: u64 = counts.values().sum();
    let parts: Vec<String> = counts.iter().map(|(mark, count)| format!("{count} {}", mark.word())).collect();
    let mut sentence = format!("The last {total} due times: {}", parts.join(", "));
    if let Some(usual) = usual {
        sentence += &format!("; usually {}", crate::page::zone::took(usual));
    }
    if facts.running.is_some() {
        sentence += "; one runs now";
    }
    if facts.pause.is_some() {
        sentence += "; paused";
    }
    sentence + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_domain::id::JobId;
    use carillon_domain::run::{DueRange, Reason, Status};

    fn records(count: usize) -> Vec<RunRecord> {
        let record = |n: usize| {
            let due = Timestamp::from_secs(3_600 * (1_000 - n as i64));
            let range = DueRange { count: 1, first: due, last: due };
            let status = Status::ALL[1 + n * n % 6];
            let started_at = (status != Status::Skipped).then_some(due);
            let finished_at = due + Duration::from_millis((n as u64 * 7_919) % 100_000);
            RunRecord { status, started_at, finished_at, ..RunRecord::skipped(JobId(1), range, Reason::Overlap, due) }
        };
        (0..count).map(record).collect()
    }

    fn drawn(records: &[RunRecord], size: Size) -> String {
        let coming: Vec<_> = (0..40).map(|n| Timestamp::from_secs(3_600 * (1_001 + n))).collect();
        let now = Timestamp::from_secs(3_600 * 1_000 + 60);
        strip(&Facts { records, running: None, coming: &coming, pause: None, now }, size).into_string()
    }

    #[test]
    fn four_hundred_due_times_stay_small() {
        let svg = drawn(&records(400), Size::Job);
        assert!(svg.len() <= 12_000, "{} bytes", svg.len());
        assert!(svg.matches("<path").count() <= 9, "one path for each outcome");
        assert!(svg.contains("role=\"img\"") && svg.contains("The last 400 due times: "), "{}", &svg[..300]);
    }

    #[test]
    fn a_strip_of_a_row_has_its_due_times_only() {
        let svg = drawn(&records(20), Size::Row);
        assert!(svg.len() <= 2_000, "{} bytes", svg.len());
        assert!(drawn(&[], Size::Row).contains("No due time has passed yet."));
    }
}
