//! The gain of each mechanism for speed: the same loads with it and without it.
//!
//! The machine's speed changes within minutes, so the loads with all mechanisms are measured again after every few variants,
//! and each variant is compared with the mean of the runs before and after it. Counts of statements are exact; CPU is steady within some
//! per cent; rates and lags are only as good as the machine.

use std::fs;
use std::path::PathBuf;

use carillon_domain::mechanism::Mechanism;

use crate::ablation_table::{Table, WITH_ALL};
use crate::lab::Lab;
use crate::machine::now_ms;
use crate::meter::Cost;
use crate::records::{Stretch, lateness};
use crate::scenarios::{at_once, interval, shots};
use crate::site::{Setting, Site, Work};

/// So many variants are measured between two runs with all mechanisms.
const BETWEEN: usize = 3;
/// A gain below this is not worth a reader's hour.
const WORTH: f64 = 5.0;

/// One figure of one load; less is better unless it is a rate.
struct Figure {
    load: String,
    unit: &'static str,
    value: f64,
    less_is_better: bool,
}

impl Figure {
    /// As a column is called.
    fn head(&self) -> String {
        format!("{}: {}", self.load, self.unit)
    }
}

/// Measures the mechanisms named, or all of them, and answers their table.
pub fn run(lab: &Lab, only: &[Mechanism]) -> Table {
    let mechanisms: Vec<Mechanism> =
        Mechanism::ALL.into_iter().filter(|one| only.is_empty() || only.contains(one)).collect();
    let mut table = Table::default();
    let mut before = measure(lab, None);
    for figure in &before {
        table.set(WITH_ALL, &figure.head(), format!("{:.1}", figure.value));
    }
    for group in mechanisms.chunks(BETWEEN) {
        let variants: Vec<_> = group.iter().map(|mechanism| (*mechanism, measure(lab, Some(*mechanism)))).collect();
        let after = measure(lab, None);
        for (mechanism, without) in variants {
            add_gains(&mut table, mechanism, &before, &after, &without);
        }
        before = after;
    }
    table
}

/// The table in Markdown under a sentence about it.
pub fn page(table: &Table) -> String {
    let about = format!(
        "Gain of each mechanism in per cent of the figure without it, by load: costs are those of 1,000 firings. A gain \
         below {WORTH} % is in parentheses; a cell is empty where a load was not measured. The first row is of the newest run."
    );
    format!("{about}\n\n{}", table.text())
}

/// Keeps the table among the reports, with the rows of mechanisms that were measured before.
///
/// # Errors
/// Those of the file system.
pub fn keep(table: Table, database: &str) -> std::io::Result<()> {
    let name = format!("ablation-{}.md", database.to_lowercase());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("reports").join(name);
    let page = page(&Table::read(&fs::read_to_string(&path).unwrap_or_default()).with(table));
    fs::write(path, page)
}

fn measure(lab: &Lab, without: Option<Mechanism>) -> Vec<Figure> {
    eprintln!("    {}", without.map_or("all mechanisms".to_owned(), |one| format!("without {}", one.name())));
    let mut figures = Vec::new();
    for pace in lab.size.paces {
        steady(lab, without, pace, &mut figures);
    }
    let setting = Setting { limits: (2 * lab.size.crowd, lab.size.crowd), without, ..Setting::default() };
    let site = Site::new(lab, &setting);
    site.create(lab.size.crowd, |n| Work::Noop.job(&format!("job-{n}"), "@every 1s"));
    full(&mut figures, "full load, `@every 1s`", &interval::measure(lab, &site));
    drop(site);
    let in_flight = lab.size.in_flight;
    let setting = Setting { limits: (in_flight, in_flight), without, ..Setting::default() };
    let (rate, cost) = shots::fire(lab, &setting, Work::Noop, lab.size.noop_shots);
    figures.push(Figure { load: "full load, one-shots".into(), unit: "firings/s", value: rate, less_is_better: false });
    costs(&mut figures, "full load, one-shots", &cost);
    let (many, late) = at_once::many_at_once(lab, without);
    let (load, value) = (format!("{many} at once"), late.recorded.ms(99.0));
    figures.push(Figure { load, unit: "lag p99 ms", value, less_is_better: true });
    figures
}

/// Jobs that fall due each second, each at a moment of its own: the load at which batches do not form by themselves.
fn steady(lab: &Lab, without: Option<Mechanism>, pace: usize, figures: &mut Vec<Figure>) {
    let setting = Setting { limits: (pace.max(5_000) * 2, pace.max(1_000)), without, ..Setting::default() };
    let site = Site::new(lab, &setting);
    site.create(pace, |n| {
        let mut job = Work::NoopTime.job(&format!("jitter-{n}"), "* * * * * *");
        job["jitter"] = "1s".into();
        job
    });
    let from = now_ms() + i64::try_from(lab.size.warm.as_millis()).unwrap_or(0);
    let cost = interval::measure(lab, &site);
    let late = lateness(&site.scratch, Stretch { from, until: now_ms() });
    let load = format!("{pace} firings/s");
    costs(figures, &load, &cost);
    figures.push(Figure { load, unit: "lag p99 ms", value: late.executor.ms(99.0), less_is_better: true });
}

fn full(figures: &mut Vec<Figure>, load: &str, cost: &Cost) {
    figures.push(Figure { load: load.to_owned(), unit: "firings/s", value: cost.rate(), less_is_better: false });
    costs(figures, load, cost);
}

fn costs(figures: &mut Vec<Figure>, load: &str, cost: &Cost) {
    for (unit, value) in [
        ("statements", cost.statements()),
        ("node CPU ms", cost.nodes_cpu_ms()),
        ("database CPU ms", cost.database_cpu_ms()),
    ] {
        figures.push(Figure { load: load.to_owned(), unit, value, less_is_better: true });
    }
}

fn add_gains(table: &mut Table, mechanism: Mechanism, before: &[Figure], after: &[Figure], without: &[Figure]) {
    for ((before, after), without) in before.iter().zip(after).zip(without) {
        let with = f64::midpoint(before.value, after.value);
        let gain = if without.less_is_better { without.value - with } else { with - without.value };
        let gain = gain * 100.0 / without.value.max(f64::MIN_POSITIVE);
        let cell = if gain.abs() < WORTH { format!("({gain:.0})") } else { format!("{gain:.0}") };
        table.set(mechanism.name(), &without.head(), cell);
    }
}
