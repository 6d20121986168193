//! The table of gains, kept in Markdown: a run of some mechanisms keeps the rows of the others.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use carillon_domain::mechanism::Mechanism;

/// The row of the figures themselves.
pub const WITH_ALL: &str = "*with all*";

/// Cells by row and column.
#[derive(Debug, Default)]
pub struct Table {
    heads: Vec<String>,
    rows: BTreeMap<String, BTreeMap<String, String>>,
}

impl Table {
    /// Reads what [`Table::text`] wrote; lines around it are left out.
    pub fn read(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| line.starts_with("| ")).map(|line| {
            let cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
            cells.collect::<Vec<String>>()
        });
        let mut this =
            Self { heads: lines.next().unwrap_or_default().into_iter().skip(1).collect(), ..Self::default() };
        for line in lines {
            let (name, cells) = (line.first().cloned().unwrap_or_default(), line.into_iter().skip(1));
            this.rows.insert(name, this.heads.iter().cloned().zip(cells).collect());
        }
        this
    }

    /// Sets a cell; a new column goes behind the others.
    pub fn set(&mut self, row: &str, head: &str, cell: String) {
        if !self.heads.iter().any(|known| known == head) {
            self.heads.push(head.to_owned());
        }
        self.rows.entry(row.to_owned()).or_default().insert(head.to_owned(), cell);
    }

    /// The newer rows, and those of this table that the newer one lacks.
    pub fn with(mut self, newer: Table) -> Self {
        for (row, cells) in newer.rows {
            self.rows.remove(&row);
            newer.heads.iter().for_each(|head| self.set(&row, head, cells.get(head).cloned().unwrap_or_default()));
        }
        self
    }

    /// In Markdown, mechanisms in their order; a row of one that is gone is left out.
    pub fn text(&self) -> String {
        let mut text =
            format!("| mechanism | {} |\n|---|{}\n", self.heads.join(" | "), "---|".repeat(self.heads.len()));
        for name in std::iter::once(WITH_ALL).chain(Mechanism::ALL.map(Mechanism::name)) {
            if let Some(row) = self.rows.get(name) {
                let cells: Vec<&str> =
                    self.heads.iter().map(|head| row.get(head).map_or("", |cell| cell.as_str())).collect();
                let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(&str, &str, &str)]) -> Table {
        let mut table = Table::default();
        rows.iter().for_each(|(row, head, cell)| table.set(row, head, (*cell).to_owned()));
        table
    }

    #[test]
    fn a_run_of_some_mechanisms_keeps_the_rows_of_the_others() {
        let kept =
            table(&[(WITH_ALL, "CPU", "7"), ("linger", "CPU", "80"), ("row-cache", "CPU", "1"), ("gone", "CPU", "9")]);
        let newer = table(&[
            (WITH_ALL, "CPU", "8"),
            (WITH_ALL, "lag", "3"),
            ("row-cache", "CPU", "2"),
            ("row-cache", "lag", "(4)"),
        ]);
        let text = Table::read(&format!("A line.\n\n{}", kept.text())).with(newer).text();
        assert_eq!(
            text,
            "| mechanism | CPU | lag |\n|---|---|---|\n| *with all* | 8 | 3 |\n| linger | 80 |  |\n| row-cache | 2 | (4) |\n"
        );
    }
}
