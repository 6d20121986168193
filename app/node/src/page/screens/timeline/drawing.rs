//! The drawing of lanes: one path for each outcome, in bins that grow until the whole is small.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::lanes::{Bar, Lane, Range};
use crate::page::chart::bars::{Columns, Series, columns};
use crate::page::chart::path::PathData;
use crate::page::outcome::Mark;
use crate::page::zone::ClockChange;

/// The width of the drawing, in its own units.
const WIDTH: f64 = 1_200.0;
/// The height of a lane, the same as a row of names in the stylesheet.
const LANE: f64 = 24.0;
/// The longest data of all paths, in bytes.
const MOST_BYTES: usize = 150_000;
/// How many columns the row of runs at once has.
const COLUMNS: usize = 240;

/// The lanes as one drawing. `now` is a share of the range; a change of the clock is a dashed line.
pub(super) fn lanes(lanes: &[Lane], range: Range, now: f64, change: Option<&ClockChange>) -> Markup {
    let height = lanes.len() as f64 * LANE;
    let paths = small_paths(lanes, range);
    let mut grid = PathData::default();
    for n in 0..=lanes.len() {
        grid.line((0.0, n as f64 * LANE), (WIDTH, n as f64 * LANE));
    }
    let runs: usize = lanes.iter().map(|lane| lane.bars.len()).sum();
    html! {
        svg.lanes role="img" aria-label=(format!("{runs} runs and due times of {} jobs", lanes.len())) width="100%" height=(height)
            viewBox=(format!("0 0 {WIDTH} {height}")) preserveAspectRatio="none"
            data-brush data-from=(range.from.to_string()) data-until=(range.until.to_string()) {
            path.c-ground d=(grid.as_str()) {}
            @for (mark, path) in &paths { path class=(format!("t-{}", mark.as_str())) d=(path.as_str()) {} }
            @if let Some(change) = change {
                path.s-clock d=(upright(range.share(change.at), height).as_str()) { title { (change.sentence()) } }
            }
            @if (0.0..=1.0).contains(&now) { path.s-now d=(upright(now, height).as_str()) {} }
        }
    }
}

/// A line from top to bottom at a share of the range.
fn upright(share: f64, height: f64) -> PathData {
    let mut line = PathData::default();
    line.line((share * WIDTH, 0.0), (share * WIDTH, height));
    line
}

/// The paths in bins of a unit, or of as many as keep them small.
fn small_paths(lanes: &[Lane], range: Range) -> BTreeMap<Mark, PathData> {
    let mut bin = 1.0;
    loop {
        let paths = paths(lanes, range, bin);
        let bytes: usize = paths.values().map(|path| path.as_str().len()).sum();
        if bytes <= MOST_BYTES || bin >= WIDTH / 4.0 {
            return paths;
        }
        bin *= 2.0;
    }
}

fn paths(lanes: &[Lane], range: Range, bin: f64) -> BTreeMap<Mark, PathData> {
    let mut paths: BTreeMap<Mark, PathData> = BTreeMap::new();
    for (n, lane) in lanes.iter().enumerate() {
        for (mark, from, until) in merged(&lane.bars, range, bin) {
            let (top, tall) = match mark {
                Mark::Skipped => (9.0, 6.0),
                Mark::Waiting => (6.0, 12.0),
                _ => (4.0, 16.0),
            };
            paths.entry(mark).or_default().rect(from, n as f64 * LANE + top, until - from, tall);
        }
    }
    paths
}

/// Bars on the grid of bins. Those of one outcome that touch are one.
fn merged(bars: &[Bar], range: Range, bin: f64) -> Vec<(Mark, f64, f64)> {
    let mut found: BTreeMap<Mark, Vec<(f64, f64)>> = BTreeMap::new();
    for bar in bars {
        let from = (range.share(bar.from).clamp(0.0, 1.0) * WIDTH / bin).floor() * bin;
        let until = (range.share(bar.until).clamp(0.0, 1.0) * WIDTH / bin).ceil() * bin;
        let until = until.max(from + bin.max(2.0)).min(WIDTH);
        let spans = found.entry(bar.mark).or_default();
        match spans.last_mut() {
            // Outlines that are to come stay apart while there is room for it.
            Some((_, end)) if from < *end || from <= *end && bar.mark != Mark::Waiting => *end = end.max(until),
            _ => spans.push((from, until)),
        }
    }
    found
        .into_iter()
        .flat_map(|(mark, spans)| spans.into_iter().map(move |(from, until)| (mark, from, until)))
        .collect()
}

/// How many run at once, at the most, in each part of the range.
pub(super) fn at_once(lanes: &[Lane], range: Range) -> Vec<usize> {
    let mut most = vec![0; COLUMNS];
    let mut steps: Vec<(i64, i32)> = Vec::new();
    for bar in lanes.iter().flat_map(|lane| &lane.bars).filter(|bar| bar.mark != Mark::Skipped) {
        steps.push((bar.from.as_ms(), 1));
        steps.push((bar.until.as_ms().max(bar.from.as_ms() + 1), -1));
    }
    // An end counts before a beginning of the same moment.
    steps.sort_unstable();
    let column = |ms: i64| {
        let share = range.share(carillon_domain::time::Timestamp::from_ms(ms)).clamp(0.0, 1.0);
        ((share * COLUMNS as f64) as usize).min(COLUMNS - 1)
    };
    let (mut level, mut at) = (0_i32, 0);
    for (ms, step) in steps {
        let here = column(ms);
        for slot in &mut most[at..=here] {
            *slot = (*slot).max(level.max(0) as usize);
        }
        level += step;
        at = here;
        most[here] = most[here].max(level.max(0) as usize);
    }
    most
}

/// The row on top. The limit is a line across it where it is reached.
pub(super) fn at_once_chart(most: &[usize], limit: usize, labels: Vec<(f64, String)>) -> Markup {
    let peak = most.iter().copied().max().unwrap_or(0);
    let within = |count: usize| if limit > 0 { count.min(limit) } else { count };
    let series = vec![
        Series { class: "c-lag", values: most.iter().map(|count| within(*count) as f64).collect() },
        Series { class: "c-bad", values: most.iter().map(|count| (count - within(*count)) as f64).collect() },
    ];
    let line = (limit > 0 && limit <= peak).then(|| limit as f64 / peak as f64);
    let points = line.map_or_else(Vec::new, |share| vec![Some(share); most.len()]);
    let sentence = format!("At most {peak} at once; one node runs {limit} at once");
    columns(&Columns { sentence, series, points, known: 1.0, labels, size: (WIDTH, 56.0) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use carillon_domain::time::Timestamp;
    use carillon_store::JobKey;

    fn lane(bars: Vec<Bar>) -> Lane {
        Lane { key: JobKey { namespace: "default".into(), name: "a".into() }, bars, more: false }
    }

    fn bar(mark: Mark, from: i64, until: i64) -> Bar {
        Bar { mark, from: Timestamp::from_secs(from), until: Timestamp::from_secs(until) }
    }

    const RANGE: Range = Range { from: Timestamp::from_secs(0), until: Timestamp::from_secs(2_400) };

    #[test]
    fn runs_at_once_are_counted_over_all_lanes() {
        let lanes = [
            lane(vec![bar(Mark::Succeeded, 0, 100), bar(Mark::Skipped, 50, 50)]),
            lane(vec![bar(Mark::Succeeded, 50, 100), bar(Mark::Waiting, 100, 150)]),
        ];
        let most = at_once(&lanes, RANGE);
        assert_eq!((most[0], most[4], most[6], most[12], most[16]), (1, 1, 2, 1, 0), "{most:?}");
        assert_eq!(most.iter().max(), Some(&2), "an end counts before a beginning of the same moment");
    }

    #[test]
    fn two_hundred_busy_lanes_stay_small() {
        let marks = [Mark::Succeeded, Mark::Failed, Mark::Skipped];
        let busy =
            |n: i64| (0..200).map(|at| bar(marks[(at % 3) as usize], at * 12 + n % 5, at * 12 + n % 5 + 1)).collect();
        let lanes: Vec<Lane> = (0..200).map(|n| lane(busy(n))).collect();
        let drawn = super::lanes(&lanes, RANGE, 0.5, None).into_string();
        assert!(drawn.len() < 200_000, "{} bytes", drawn.len());
        assert!(drawn.contains("t-failed") && drawn.contains("s-now"));
    }
}
