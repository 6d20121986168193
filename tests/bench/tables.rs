//! Figures as tables.

use std::fmt::Write as _;

use serde_json::Value;

use crate::scenarios::SCENARIOS;

/// One table: a title, the names of the columns, the cells.
pub struct Table {
    /// The title above it.
    pub title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

const FIGURES: [&str; 7] = ["what", "must", "aim", "measured", "ceiling", "share", "how"];
const LAGS: [&str; 7] = ["load", "measured", "runs", "p50 ms", "p99 ms", "p99.9 ms", "most ms"];
const COSTS: [&str; 10] = [
    "load",
    "firings",
    "firings a second",
    "CPU ms of the nodes",
    "CPU ms of the database",
    "statements",
    "commits",
    "row lock waits",
    "row lock wait ms",
    "resident MiB",
];

/// The tables of a database's figures.
pub fn of(figures: &Value) -> Vec<Table> {
    let mut rows = Vec::new();
    for (name, scenario) in scenarios(figures) {
        rows.extend(list(scenario, "rows").iter().map(figure));
        if let Some(why) = scenario["failed"].as_str() {
            let mut row = vec![format!("{name}: {}", scenario["about"].as_str().unwrap_or_default())];
            row.extend(["", "", "FAILED", "", ""].map(str::to_owned));
            row.push(why.replace(['|', '\n'], " "));
            rows.push(row);
        }
    }
    let cells = |key: &str, columns: &[&str]| -> Vec<Vec<String>> {
        let values = scenarios(figures).flat_map(|(_, scenario)| list(scenario, key));
        values.map(|value| columns.iter().map(|column| cell(&value[*column])).collect()).collect()
    };
    vec![
        Table { title: "Figures".into(), columns: FIGURES.to_vec(), rows },
        Table { title: "Lag".into(), columns: LAGS.to_vec(), rows: cells("lags", &LAGS) },
        Table { title: "Costs of each 1,000 firings".into(), columns: COSTS.to_vec(), rows: cells("costs", &COSTS) },
    ]
}

/// The rows in the order of measurement.
pub fn scenarios(figures: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let found = SCENARIOS.iter().map(|scenario| (scenario.name, &figures["scenarios"][scenario.name]));
    found.filter(|(_, scenario)| scenario.is_object())
}

/// A list of a scenario.
pub fn list<'a>(scenario: &'a Value, key: &str) -> &'a [Value] {
    scenario[key].as_array().map_or(&[], Vec::as_slice)
}

fn figure(row: &Value) -> Vec<String> {
    let unit = row["unit"].as_str().unwrap_or_default();
    let bound = |name: &str| {
        let of_share = row["share bounds"][name].as_f64().map(|share| format!("{share:.0} %"));
        let of_value = row["bounds"][name].as_f64().map(|value| format!("{} {unit}", number(value)));
        let both: Vec<String> = of_share.into_iter().chain(of_value).collect();
        both.join(", ")
    };
    let measured = format!("{} {unit}", number(row["value"].as_f64().unwrap_or(f64::NAN)));
    let measured = match row["verdict"].as_str() {
        Some("below") => format!("{measured} (misses must)"),
        Some("must") => format!("{measured} (keeps must)"),
        Some(_) => format!("{measured} (reaches aim)"),
        None => measured,
    };
    let ceiling = ceiling(&row["ceiling"]);
    let share = row["share"].as_f64().map(|share| format!("{share:.0} %"));
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    vec![
        text("what"),
        bound("must"),
        bound("aim"),
        measured,
        ceiling.unwrap_or_default(),
        share.unwrap_or_default(),
        text("note"),
    ]
}

/// The raw ceiling beside a figure, and between what it lies.
fn ceiling(ceiling: &Value) -> Option<String> {
    let value = number(ceiling["value"].as_f64()?);
    let what = ceiling["what"].as_str().unwrap_or_default();
    let around = match (ceiling["before"].as_f64(), ceiling["after"].as_f64()) {
        (Some(before), Some(after)) => format!(": {} before, {} after", number(before), number(after)),
        _ => String::new(),
    };
    Some(format!("{value} ({what}{around})"))
}

fn cell(value: &Value) -> String {
    match value {
        Value::Number(_) => number(value.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => text.clone(),
        _ => String::new(),
    }
}

/// Three digits at the least, thousands apart.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 || value.fract() == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut apart = String::new();
    for (at, digit) in whole.char_indices() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && !apart.ends_with('-') {
            apart.push(',');
        }
        apart.push(digit);
    }
    apart + rest
}

impl Table {
    /// For a page.
    pub fn markdown(&self) -> String {
        let mut text = format!("| {} |\n|{}\n", self.columns.join(" | "), "---|".repeat(self.columns.len()));
        for row in &self.rows {
            let _infallible = writeln!(text, "| {} |", row.join(" | "));
        }
        text
    }

    /// For a terminal.
    fn plain(&self) -> String {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| row[at].chars().count());
            cells.chain([self.columns[at].len()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: &mut dyn Iterator<Item = &str>| {
            let cells = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut text = format!("\n{}\n{}\n", self.title, line(&mut self.columns.iter().copied()));
        for row in &self.rows {
            let _infallible = writeln!(text, "{}", line(&mut row.iter().map(String::as_str)));
        }
        text
    }
}

/// All tables for a terminal.
pub fn plain(figures: &Value) -> String {
    of(figures).iter().filter(|table| !table.rows.is_empty()).map(Table::plain).collect()
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_written_for_people() {
        let shown = [1_234_567.8, 999.6, 12.34, 0.123, -1_500.0, -120.0, 100_000.0, 3.0].map(number);
        assert_eq!(shown, ["1,234,568", "1,000", "12.3", "0.12", "-1,500", "-120", "100,000", "3"]);
    }
}
