//! `BENCHMARKS.md`: the figures of the last full run on each database.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::plot;
use crate::tables;

const HEAD: &str = "# Benchmarks

Made by `./bench` and `./bench database=mysql`; every figure comes from `tests/reports/bench-*.json`. Nodes, database and load
are on one machine, and the database is durable: it syncs its log and its binary log at each commit. *Share* is that of the raw
ceiling, measured in the same run without Carillon. For firings that is the store's own SQL batches, sent again by bare
clients. For commands it is a loop that only spawns. *Recorded* lag ends when the start is committed, that *at the executor*
when the job itself begins. Firings of one-shot jobs that were claimed before they came due are not counted in their rate.

The machine is a virtual one, and its speed changes within minutes by up to a half. So the raw ceiling is measured right before and
right after each load. The share is that of the mean of the two, and says more than the figure.
";

/// The page about the figures in a directory of reports, to which `beside` leads from the page.
pub fn of(reports: &Path, beside: &str) -> io::Result<String> {
    let mut page = HEAD.to_owned();
    for name in ["mariadb", "mysql"] {
        let Ok(text) = fs::read_to_string(reports.join(format!("bench-{name}.json"))) else { continue };
        let figures: Value = serde_json::from_str(&text)?;
        section(&mut page, &figures, name, beside);
    }
    Ok(page)
}

fn section(page: &mut String, figures: &Value, name: &str, beside: &str) {
    let database = figures["database"].as_str().unwrap_or_default();
    let _infallible = write!(page, "\n## {database}\n\n| | |\n|---|---|\n");
    for (key, shown) in [("date", "date"), ("commit", "commit")] {
        let _infallible = writeln!(page, "| {shown} | {} |", distinct(figures, key));
    }
    for (setting, value) in figures["settings"].as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _infallible = writeln!(page, "| {setting} | {value} |");
    }
    for table in tables::of(figures) {
        let _infallible = write!(page, "\n### {}: {}\n\n{}", database, table.title, table.markdown());
    }
    page.push('\n');
    for plot in plot::PLOTS {
        let file = format!("bench-{name}-{}.svg", plot.name);
        let _infallible = writeln!(page, "![{}]({beside}{file})", plot.title);
    }
}

/// The words of all scenarios, where they were not all measured in one go.
fn distinct(figures: &Value, key: &str) -> String {
    let said: BTreeSet<&str> = tables::scenarios(figures).filter_map(|(_, scenario)| scenario[key].as_str()).collect();
    said.into_iter().collect::<Vec<_>>().join(", ")
}
