//! The strip of a job: its due times from left to right through now, expected against actual.
//!
//! A run is a bar: its height is its duration, of which half the strip is the usual one. A due time that did not run is a hollow mark at
//! the same place. A coming one is an outline, and a pause hatches those that it takes. Each due time has a slot of the same
//! width, however far apart they are; the timeline is to scale.

use std::collections::BTreeMap;
use std::time::Duration;

use carillon_domain::firing::{Held, Pause};
use carillon_domain::run::{RunRecord, Status};
use carillon_domain::time::Timestamp;
use carillon_store::JobView;
use chrono_tz::Tz;
use maud::{Markup, PreEscaped, html};

use super::path::PathData;
use crate::page::outcome::Mark;
use crate::page::screens::parts::{running, zone_of};
use crate::page::screens::why;
use crate::page::usual;
use crate::page::visit::Visit;
use crate::page::zone::{clock_change, offset_secs, short};

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

    /// How many due times are told one by one at the most; a page of rows has room for few elements.
    const fn titles(self) -> usize {
        match self {
            Size::Row => 2,
            Size::Job => 40,
        }
    }

    /// How many coming due times it shows at the most.
    pub const fn coming(self) -> usize {
        self.shape().coming
    }
}

/// The largest strip, in bytes. Titles of single due times take what the shapes leave.
const MOST_BYTES: usize = 11_900;
/// How many changes of the clock are named; all of them are drawn.
const NAMED_CHANGES: usize = 2;

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
    /// By how much starts are spread.
    pub jitter: Duration,
    /// The zone of the schedule, whose clock changes are drawn.
    pub zone: Tz,
    /// The zone in which times are told.
    pub reader: Tz,
    /// When this is.
    pub now: Timestamp,
}

impl<'a> Facts<'a> {
    /// A job, its newest records and its coming due times, as a reader sees them.
    pub fn of(visit: &Visit, view: &'a JobView, records: &'a [RunRecord], coming: &'a [Timestamp]) -> Self {
        Self {
            records,
            running: running(view),
            coming,
            pause: view.pause(),
            jitter: view.job.jitter,
            zone: zone_of(view).unwrap_or(Tz::UTC),
            reader: visit.zone,
            now: visit.now,
        }
    }
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
    let (mut bars, mut times) = (Vec::new(), Vec::new());
    for (n, record) in records.iter().enumerate() {
        let place = n as f64 + if facts.running.is_some() { 2.0 } else { 1.0 };
        let x = (now_x - slot / 2.0 - place * slot).round();
        if x >= 0.0 {
            drawing.bar(x, record.status.into(), usual::duration(record));
            bars.push((x, record));
            times.push((x, record.due_at));
        }
    }
    if let Some(held) = facts.running {
        let since = held.started_at.map(|started_at| facts.now.since(started_at));
        let x = (now_x - slot * 1.5).round();
        drawing.bar(x, Mark::Running, since);
        times.insert(0, (x, held.firing.due_at));
    }
    times.reverse();
    let (mut outlines, mut hatch, mut brackets) = (PathData::default(), PathData::default(), PathData::default());
    for (n, due) in facts.coming.iter().take(after as usize).enumerate() {
        let x = (now_x + slot * (n as f64 + 0.5)).round();
        let gone = facts.pause.is_some_and(|pause| pause.until.is_none_or(|until| *due < until));
        drawing.outline(if gone { &mut hatch } else { &mut outlines }, x, gone);
        if !gone && !facts.jitter.is_zero() {
            drawing.bracket(&mut brackets, x);
        }
        times.push((x, *due));
    }
    let (changes, named) = clock_changes(&times, facts.zone, height);
    let mut now_line = PathData::default();
    now_line.line((now_x, 0.0), (now_x, height));
    let shapes = html! {
        @for (mark, path) in &drawing.paths { path class=(format!("s-{}", mark.as_str())) d=(path.as_str()) {} }
        @if !outlines.is_empty() { path.s-coming d=(outlines.as_str()) {} }
        @if !brackets.is_empty() {
            path.s-jitter d=(brackets.as_str()) { title { "Starts are spread by up to " (carillon_domain::duration::format(facts.jitter)) } }
        }
        @if let (Some(pause), false) = (facts.pause, hatch.is_empty()) {
            path.s-paused d=(hatch.as_str()) { title { "Paused" @if let Some(reason) = &pause.reason { ": " (reason) } } }
        }
        @if !changes.is_empty() { path.s-clock d=(changes.as_str()) { title { (named) } } }
        path.s-now d=(now_line.as_str()) {}
    };
    let sentence = sentence(facts, usual);
    let room = MOST_BYTES.saturating_sub(shapes.0.len() + sentence.len() + 200);
    let titles = titles(facts, &bars, slot, size, room);
    html! {
        svg class=(if size == Size::Row { "strip row" } else { "strip" }) role="img" aria-label=(sentence)
            viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" {
            (shapes)
            (titles)
        }
    }
}

/// A line before each due time that is the first one after a change of the clock, and the newest changes in words.
fn clock_changes(times: &[(f64, Timestamp)], zone: Tz, height: f64) -> (PathData, String) {
    let (mut lines, mut named) = (PathData::default(), Vec::new());
    for pair in times.windows(2).rev() {
        let ((_, before), (x, after)) = (pair[0], pair[1]);
        if offset_secs(before, zone) == offset_secs(after, zone) {
            continue;
        }
        lines.line((x - 0.5, 0.0), (x - 0.5, height));
        if named.len() < NAMED_CHANGES {
            named.extend(clock_change(before, after, zone).map(|change| change.sentence()));
        }
    }
    (lines, named.join(" "))
}

/// Why single due times ran or did not, told where the pointer rests: those that did not succeed first, each the newest first. The table
/// tells all of them.
fn titles(facts: &Facts<'_>, bars: &[(f64, &RunRecord)], slot: f64, size: Size, room: usize) -> Markup {
    let (fine, others): (Vec<_>, Vec<_>) = bars.iter().partition(|(_, record)| record.status == Status::Succeeded);
    let most = size.titles();
    let mut text = String::new();
    for (x, record) in others.into_iter().chain(fine.into_iter().filter(|_| size == Size::Job)).take(most) {
        let mut path = PathData::default();
        path.rect(x, 0.0, slot, size.shape().height);
        let when = short(record.due_at, facts.now, facts.reader);
        let one = html! { path d=(path.as_str()) { title { (when) ". " (why::recorded(record)) } } };
        if text.len() + one.0.len() > room {
            break;
        }
        text.push_str(&one.0);
    }
    html! { @if !text.is_empty() { g.s-hit { (PreEscaped(text)) } } }
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

    /// A bracket over an outline: its start lies somewhere under it.
    fn bracket(&self, path: &mut PathData, x: f64) {
        let (top, width) = (self.height / 2.0 - 2.0, (self.slot - 2.0).max(1.0));
        path.open(x, top, &[(0.0, -3.0), (width, 0.0), (0.0, 3.0)]);
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
        sentence += &format!("; usually {}", carillon_domain::duration::spoken(usual));
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
    use carillon_domain::run::{DueRange, Reason};

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
        strip(&Facts { coming: &coming, ..facts(records) }, size).into_string()
    }

    fn facts(records: &[RunRecord]) -> Facts<'_> {
        let (now, jitter) = (Timestamp::from_secs(3_600 * 1_000 + 60), Duration::from_secs(30));
        Facts { records, running: None, coming: &[], pause: None, jitter, zone: Tz::UTC, reader: Tz::UTC, now }
    }

    #[test]
    fn four_hundred_due_times_stay_small() {
        let svg = drawn(&records(400), Size::Job);
        assert!(svg.len() <= 12_000, "{} bytes", svg.len());
        let shapes = svg.matches("<path d").count();
        assert!(svg.matches("<path").count() - shapes <= 10, "one path for each outcome");
        assert!(svg.contains("spread by up to 30s"), "jitter is drawn as a bracket");
        assert!(svg.contains("role=\"img\"") && svg.contains("The last 400 due times: "), "{}", &svg[..300]);
    }

    #[test]
    fn those_that_did_not_succeed_are_told_one_by_one_before_the_others() {
        let mut records = records(400);
        for (n, record) in records.iter_mut().enumerate().filter(|(n, _)| n % 50 != 49) {
            (record.status, record.started_at) = (Status::Succeeded, Some(Timestamp::from_secs(n as i64)));
        }
        records[49] = RunRecord { status: Status::Skipped, started_at: None, ..records[49].clone() };
        let svg = drawn(&records, Size::Job);
        assert!(svg.len() <= 12_000, "{} bytes", svg.len());
        let told = svg.matches("<path d").count();
        assert!((9..=40).contains(&told), "{told} titles in {} bytes", svg.len());
        let first = svg.find("It did not run: the previous run was still alive.").expect("the newest of them");
        assert!(first < svg.find("It ran on schedule and succeeded").expect("others follow"), "{svg}");
    }

    #[test]
    fn a_strip_of_a_row_has_its_due_times_only() {
        let svg = drawn(&records(20), Size::Row);
        assert!(svg.len() <= 2_500, "{} bytes", svg.len());
        assert!(svg.matches("<path d").count() == 2 && !svg.contains("and succeeded"), "{svg}");
        assert!(drawn(&[], Size::Row).contains("No due time has passed yet."));
    }

    #[test]
    fn a_clock_change_between_two_due_times_is_a_line() {
        let at = |text| Timestamp::parse_rfc3339(text).unwrap();
        // The night of 28 March 2027 has no 02:30 in Berlin.
        let coming = [at("2027-03-27T01:30:00Z"), at("2027-03-28T01:00:00Z"), at("2027-03-29T00:30:00Z")];
        let now = at("2027-03-27T00:00:00Z");
        let drawn = |zone| strip(&Facts { coming: &coming, zone, now, ..facts(&[]) }, Size::Row).into_string();
        let berlin = drawn(Tz::Europe__Berlin);
        assert_eq!(berlin.matches("s-clock").count(), 1);
        assert!(berlin.contains("The clock of Europe/Berlin goes forward by 60 minutes"), "{berlin}");
        assert!(!drawn(Tz::UTC).contains("s-clock"));
    }

    #[test]
    fn a_pause_tells_its_reason() {
        let reason = Some("<the printer burns>".to_owned());
        let pause = Pause { since: Timestamp::from_secs(0), until: None, reason };
        let coming = [Timestamp::from_secs(3_600 * 1_001)];
        let svg = strip(&Facts { coming: &coming, pause: Some(&pause), ..facts(&[]) }, Size::Row).into_string();
        assert!(svg.contains("Paused: &lt;the printer burns&gt;") && !svg.contains("s-jitter"), "{svg}");
    }
}
