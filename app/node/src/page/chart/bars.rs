//! Columns over time: how many ended in which way, how many are to come, how long runs took.

use maud::{Markup, html};

use super::path::PathData;

/// A narrow window has room for so many labels; of more it shows each second one.
const FEW_LABELS: usize = 4;

/// A series of columns of one kind; the series of a chart are stacked.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The class of its path.
    pub class: &'static str,
    /// A value for each column.
    pub values: Vec<f64>,
}

/// A chart of columns.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    /// The chart in words.
    pub sentence: String,
    /// Stacked from the bottom.
    pub series: Vec<Series>,
    /// A mark over each column: the share of the height, if there is one.
    pub points: Vec<Option<f64>>,
    /// The share of the width, from the left, whose values are known; the rest is shaded.
    pub known: f64,
    /// Labels under the chart, from left to right, and where: as a share of the width.
    pub labels: Vec<(f64, String)>,
    /// The width and height of the drawing.
    pub size: (f64, f64),
}

/// Fewer columns leave room on the right.
const FEWEST: usize = 48;

/// Draws columns. The tallest stack is as high as the chart.
pub(crate) fn columns(chart: &Columns) -> Markup {
    let (width, height) = chart.size;
    let count = chart.series.iter().map(|series| series.values.len()).max().unwrap_or(0).max(chart.points.len());
    // A few columns stay as narrow as many.
    let slot = width / count.max(FEWEST) as f64;
    let gap = if slot > 4.0 { 1.0 } else { 0.0 };
    let stack = |n: usize| chart.series.iter().filter_map(|series| series.values.get(n)).sum::<f64>();
    let most = (0..count).map(stack).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let mut bottoms = vec![height; count];
    let mut paths = Vec::new();
    for series in &chart.series {
        let mut path = PathData::default();
        for (n, value) in series.values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            // A column of one is seen beside one of thousands.
            let tall = (value / most * (height - 2.0)).max(1.5);
            bottoms[n] -= tall;
            path.rect(n as f64 * slot, bottoms[n], (slot - gap).max(0.6), tall);
        }
        paths.push((series.class, path));
    }
    let mut points = PathData::default();
    for (n, share) in chart.points.iter().enumerate().filter_map(|(n, share)| Some((n, (*share)?))) {
        let y = (1.0 - share.clamp(0.0, 1.0)) * (height - 3.0);
        points.rect(n as f64 * slot, y, (slot - gap).max(1.5), 2.0);
    }
    let mut ground = PathData::default();
    ground.line((0.0, height - 0.5), (width, height - 0.5));
    html! {
        figure.chart {
            svg.columns role="img" aria-label=(chart.sentence) viewBox=(format!("0 0 {width} {height}")) preserveAspectRatio="none" {
                @if chart.known < 1.0 {
                    rect.c-unknown x=(chart.known * width) y="0" width=((1.0 - chart.known) * width) height=(height) {}
                }
                path.c-ground d=(ground.as_str()) {}
                @for (class, path) in &paths { @if !path.is_empty() { path class=(class) d=(path.as_str()) {} } }
                @if !points.is_empty() { path.c-point d=(points.as_str()) {} }
            }
            @if !chart.labels.is_empty() {
                // Text in a drawing that is stretched would be stretched with it.
                svg.axis.dense[chart.labels.len() > FEW_LABELS] aria-hidden="true" height="16" width="100%" {
                    @for (share, label) in &chart.labels {
                        text x=(format!("{:.2}%", share * 100.0)) y="12"
                            text-anchor=(if *share < 0.02 { "start" } else if *share > 0.98 { "end" } else { "middle" }) { (label) }
                    }
                }
            }
        }
    }
}
