//! Curves as SVG.

use std::io;
use std::path::Path;

use plotters::prelude::*;
use serde_json::Value;

use crate::tables::{list, scenarios};

/// A plot of the figures of one database.
pub struct Plot {
    /// Part of its file's name.
    pub name: &'static str,
    /// The title above it.
    pub title: &'static str,
    across: Axis,
    up: Axis,
    curves: fn(&Value) -> Vec<Curve>,
}

/// The axis along a side, and how its values are written.
struct Axis {
    what: &'static str,
    value: fn(f64) -> String,
}

/// A line with its name.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// All of them.
pub const PLOTS: [Plot; 3] = [
    Plot {
        name: "lag",
        title: "From the due time until the job itself begins",
        across: Axis { what: "percentile", value: percentile },
        up: Axis { what: "ms", value: power },
        curves: lags,
    },
    Plot {
        name: "nodes",
        title: "Firings a second by nodes",
        across: Axis { what: "nodes", value: whole },
        up: Axis { what: "firings/s", value: number },
        curves: by_nodes,
    },
    Plot {
        name: "batches",
        title: "Firings a second by batch size",
        across: Axis { what: "rows of a batch", value: power },
        up: Axis { what: "firings/s", value: number },
        curves: by_batch,
    },
];

fn number(value: f64) -> String {
    format!("{value:.0}")
}

/// Values without parts: nothing where the value is not whole.
fn whole(value: f64) -> String {
    if value.fract() == 0.0 { number(value) } else { String::new() }
}

/// Values that are drawn by their logarithm.
fn power(exponent: f64) -> String {
    let value = 10_f64.powf(exponent);
    if value < 10.0 { format!("{value:.1}") } else { number(value) }
}

/// One nine is 90 %, two are 99 %.
fn percentile(nines: f64) -> String {
    let percent = 100.0 * (1.0 - 10_f64.powf(-nines));
    let decimals = (nines - 2.0).ceil().max(0.0) as usize;
    format!("{percent:.decimals$} %")
}

const SIZE: (u32, u32) = (800, 420);

/// Draws all plots of a database's figures.
pub fn all(figures: &Value, directory: &Path, database: &str) -> io::Result<()> {
    for plot in &PLOTS {
        let file = directory.join(format!("bench-{database}-{}.svg", plot.name));
        draw(plot, &(plot.curves)(figures), &file).map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(())
}

/// Percentiles are shown by their nines, the last one not at all: it lies infinitely far away.
fn lags(figures: &Value) -> Vec<Curve> {
    let all = scenarios(figures).flat_map(|(_, scenario)| list(scenario, "lags"));
    let shown = all.filter(|lag| {
        lag["measured"] == "at the executor" && lag["load"].as_str().is_some_and(|l| l.ends_with("noop"))
    });
    let point = |pair: &Value| {
        let (percent, ms) = (pair[0].as_f64()?, pair[1].as_f64()?);
        (percent < 99.995).then(|| (-(1.0 - percent / 100.0).log10(), ms.max(0.1).log10()))
    };
    let curve = |lag: &Value| Curve {
        name: lag["load"].as_str().unwrap_or_default().to_owned(),
        points: list(lag, "curve").iter().filter_map(point).collect(),
    };
    shown.map(curve).collect()
}

fn by_nodes(figures: &Value) -> Vec<Curve> {
    series(&figures["scenarios"]["nodes"], "firings a second by nodes", |nodes| nodes)
}

fn by_batch(figures: &Value) -> Vec<Curve> {
    series(&figures["scenarios"]["store"], "firings a second by batch size", f64::log10)
}

fn series(scenario: &Value, name: &str, across: impl Fn(f64) -> f64) -> Vec<Curve> {
    let point = |pair: &Value| Some((across(pair[0].as_f64()?), pair[1].as_f64()?));
    let named = list(scenario, "series").iter().filter(|series| series["name"] == name);
    named
        .map(|series| Curve {
            name: name.to_owned(),
            points: list(series, "points").iter().filter_map(point).collect(),
        })
        .collect()
}

fn draw(plot: &Plot, curves: &[Curve], file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let right = points().map(|(x, _)| *x).fold(1.0, f64::max);
    let top = points().map(|(_, y)| *y).fold(1.0, f64::max) * 1.05;
    // The names of the curves stand below them.
    let bottom = if curves.len() > 1 { -0.4 * top } else { 0.0 };
    let area = SVGBackend::new(file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(plot.title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..right, bottom..top)?;
    chart
        .configure_mesh()
        .x_desc(plot.across.what)
        .y_desc(plot.up.what)
        .x_label_formatter(&|x| (plot.across.value)(*x))
        .y_label_formatter(&|y| (plot.up.value)(*y))
        .light_line_style(WHITE)
        .draw()?;
    for (number, curve) in curves.iter().enumerate() {
        let colour = Palette99::pick(number).stroke_width(2);
        let line = chart.draw_series(LineSeries::new(curve.points.iter().copied(), colour))?;
        let key = move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], colour);
        line.label(&curve.name).legend(key);
    }
    if curves.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()?;
    }
    area.present()?;
    Ok(())
}
