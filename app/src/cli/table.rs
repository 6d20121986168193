//! Aligned columns, and text that is safe to show on a terminal.

use std::fmt::Write;

use serde_json::Value;

/// Rows under a heading, each column as wide as its widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with nothing but its heading.
    pub fn new<'a>(heading: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![heading.into_iter().map(str::to_owned).collect()] }
    }

    /// Adds a row. Control characters in it are escaped; empty cells show as `-`.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let shown = |cell: &str| if cell.is_empty() { "-".into() } else { printable(cell) };
        self.rows.push(cells.into_iter().map(|cell| shown(cell.as_ref())).collect());
    }

    /// Whether there is no row below the heading.
    pub fn is_empty(&self) -> bool {
        self.rows.len() < 2
    }

    /// The whole table, each line ended.
    pub fn text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or_default()).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a String cannot fail.
                let _ = write!(line, "{cell:<width$}  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Text of a stranger with whatever a terminal could take for a command escaped.
pub fn printable(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// A JSON value as a cell: strings without their quotes, nothing for null.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_harmless() {
        let mut table = Table::new(["NAME", "STATE"]);
        assert!(table.is_empty());
        table.row(["a\u{1b}[2J", "idle"]);
        table.row(["täglich", ""]);
        assert_eq!(table.text(), "NAME        STATE\na\\u{1b}[2J  idle\ntäglich     -\n");
    }
}
