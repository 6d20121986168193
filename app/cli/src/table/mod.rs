//! Aligned columns that fit a terminal, and text that is safe to show there.

mod colour;
mod relative;

pub use self::colour::{Colour, painted};
pub use self::relative::TimeStyle;

use serde_json::Value;

/// How many characters a line of a table has at the most, where its columns can be shortened.
const WIDEST: usize = 80;
/// How short a column may become.
const LEAST: usize = 8;

/// Rows under a heading, each column as wide as its widest cell.
pub struct Table {
    rows: Vec<Vec<String>>,
    shortened: Vec<usize>,
    painted: Option<usize>,
}

impl Table {
    /// A table with nothing but its heading.
    pub fn new<'a>(heading: impl IntoIterator<Item = &'a str>) -> Self {
        Self { rows: vec![heading.into_iter().map(str::to_owned).collect()], shortened: Vec::new(), painted: None }
    }

    /// Lets a column be shortened until lines fit. Names that people type again should not be.
    pub fn shortening(mut self, column: &str) -> Self {
        self.shortened.extend(self.at(column));
        self
    }

    /// Shows each cell of a column in the colour of its first word, where colours are wanted.
    pub fn painting(mut self, column: &str) -> Self {
        self.painted = self.at(column);
        self
    }

    fn at(&self, column: &str) -> Option<usize> {
        self.rows.first()?.iter().position(|heading| heading == column)
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

    /// The whole table, each line ended, without colours.
    pub fn text(&self) -> String {
        self.text_in(false)
    }

    /// The same, with colours or without.
    pub fn text_in(&self, coloured: bool) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell, *width);
                let blanks = " ".repeat(width - cell.chars().count() + 2);
                let is_painted = coloured && number > 0 && self.painted == Some(at);
                line.push_str(&if is_painted { painted(&cell) } else { cell });
                line.push_str(&blanks);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
        let mut widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or_default()).collect();
        while widths.iter().map(|width| width + 2).sum::<usize>() > WIDEST + 2 {
            let longest = self.shortened.iter().copied().filter(|at| widths[*at] > LEAST).max_by_key(|at| widths[*at]);
            match longest {
                Some(at) => widths[at] -= 1,
                None => break,
            }
        }
        widths
    }
}

/// The text, or its beginning with a sign that more was there.
pub fn cut(text: &str, widest: usize) -> String {
    if text.chars().count() <= widest {
        return text.to_owned();
    }
    text.chars().take(widest.saturating_sub(1)).chain(['…']).collect()
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

    #[test]
    fn the_longest_column_that_may_be_shortened_gives_way() {
        let mut table = Table::new(["NAME", "SCHEDULE", "NOTE"]).shortening("SCHEDULE").shortening("NOTE");
        table.row(["n".repeat(30), "s".repeat(20), "x".repeat(60)]);
        let text = table.text();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let cells: Vec<usize> = text.lines().nth(1).unwrap().split("  ").map(|cell| cell.chars().count()).collect();
        assert_eq!(cells, [30, 20, 26], "{text}");
        let mut table = Table::new(["NAME", "NOTE"]).shortening("NOTE");
        table.row(["n".repeat(100), "x".repeat(60)]);
        let text = table.text();
        assert!(text.contains(&"n".repeat(100)), "a name is never shortened: {text}");
    }

    #[test]
    fn colours_change_no_width() {
        let mut table = Table::new(["STATUS", "NOTE"]).painting("STATUS");
        table.row(["failed", "a"]);
        table.row(["nothing known", "b"]);
        assert_eq!(table.text(), "STATUS         NOTE\nfailed         a\nnothing known  b\n");
        let painted = "STATUS         NOTE\n\u{1b}[31mfailed\u{1b}[0m         a\nnothing known  b\n";
        assert_eq!(table.text_in(true), painted);
    }
}
