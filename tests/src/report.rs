//! The findings of a long run, as Markdown for people and JSON for programs, with all that is needed to run it again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

/// A report that is being put together.
pub struct Report {
    name: String,
    title: String,
    facts: Vec<(String, Value)>,
    tables: Vec<Table>,
}

struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Report {
    /// A report that begins with how it came about: the command, the commit, the compiler and the machine.
    pub fn new(name: &str, title: &str) -> Self {
        let mut report = Self { name: name.to_owned(), title: title.to_owned(), facts: Vec::new(), tables: Vec::new() };
        let words: Vec<String> = std::env::args().skip(1).collect();
        let program = std::env::args().next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
        report.fact("command", format!("{program} {}", words.join(" ")).trim_end());
        report.fact("date", said("date", &["-u", "+%Y-%m-%d"]));
        report.fact("commit", said("git", &["rev-parse", "--short=12", "HEAD"]));
        report.fact("compiler", said("rustc", &["--version"]));
        report.fact("kernel", said("uname", &["-r"]));
        report.fact("cores", std::thread::available_parallelism().map_or(0, usize::from));
        report.fact("debug assertions", cfg!(debug_assertions));
        report
    }

    /// One thing that is known.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.facts.push((name.to_owned(), value.into()));
        self
    }

    /// Many things that are known; each row has a value a column.
    pub fn table(&mut self, title: &str, columns: &[&str], rows: Vec<Vec<Value>>) -> &mut Self {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        self.tables.push(Table { title: title.to_owned(), columns, rows });
        self
    }

    /// The report for people.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n| | |\n|---|---|\n", self.title);
        for (name, value) in &self.facts {
            let _infallible = writeln!(text, "| {name} | {} |", shown(value));
        }
        for table in &self.tables {
            let _infallible = write!(text, "\n## {}\n\n| {} |\n", table.title, table.columns.join(" | "));
            let _infallible = writeln!(text, "|{}", "---|".repeat(table.columns.len()));
            for row in &table.rows {
                let _infallible = writeln!(text, "| {} |", row.iter().map(shown).collect::<Vec<_>>().join(" | "));
            }
        }
        text
    }

    /// The report for programs.
    pub fn json(&self) -> Value {
        let facts: Map<String, Value> = self.facts.iter().cloned().collect();
        let of_row = |columns: &[String], row: &[Value]| -> Value {
            columns.iter().cloned().zip(row.iter().cloned()).collect::<Map<_, _>>().into()
        };
        let tables = self.tables.iter().map(|table| {
            let rows: Vec<Value> = table.rows.iter().map(|row| of_row(&table.columns, row)).collect();
            (table.title.clone(), rows.into())
        });
        json!({"title": self.title, "facts": facts, "tables": tables.collect::<Map<_, _>>()})
    }

    /// Keeps it as `tests/reports/NAME.md` and `.json`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(&self) -> std::io::Result<PathBuf> {
        let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
        fs::create_dir_all(&place)?;
        fs::write(place.join(format!("{}.json", self.name)), format!("{:#}\n", self.json()))?;
        let page = place.join(format!("{}.md", self.name));
        fs::write(&page, self.markdown())?;
        Ok(page)
    }
}

/// The words of a program, on one line; nothing where there is no such program.
pub fn said(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('|', "\\|").replace('\n', " "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_the_same_to_people_and_to_programs() {
        let mut report = Report::new("one", "One run");
        report.fact("seed", 17).table("faults", &["class", "counters"], vec![vec!["a|b".into(), 3.into()]]);
        let (page, data) = (report.markdown(), report.json());
        assert!(
            page.contains("| seed | 17 |") && page.contains("## faults") && page.contains("| a\\|b | 3 |"),
            "{page}"
        );
        assert_eq!(data["facts"]["seed"], 17);
        assert_eq!(data["tables"]["faults"][0], json!({"class": "a|b", "counters": 3}));
    }
}
