//! The fate of every line, as a table or as JSON, and a summary.

use carillon_domain::crontab::Line;
use serde::Serialize;
use serde_json::json;

use crate::cli::failure::CommandFailure;
use crate::cli::out::{Out, note};
use crate::cli::table::Table;

/// The fate of a line, or of a job that the file no longer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// `None` for a job that stands in no line.
    pub line: Option<u32>,
    pub status: &'static str,
    pub name: Option<String>,
    pub schedule: Option<String>,
    pub reason: Option<String>,
    /// `created`, `updated` or `unchanged`, where the line is a job.
    pub change: Option<String>,
}

impl Row {
    pub fn of(line: &Line) -> Self {
        Self {
            line: Some(line.number),
            status: line.status(),
            name: line.name().map(str::to_owned),
            schedule: line.schedule().map(str::to_owned),
            reason: line.reason().map(str::to_owned),
            change: None,
        }
    }

    pub fn deleted(name: &str, schedule: Option<&str>) -> Self {
        Self {
            line: None,
            status: "deleted",
            name: Some(name.to_owned()),
            schedule: schedule.map(str::to_owned),
            reason: Some("the file no longer has it".into()),
            change: None,
        }
    }

    pub fn fail(&mut self, reason: &str) {
        self.status = "error";
        self.reason = Some(reason.to_owned());
        self.change = None;
    }
}

/// Prints everything. Comments stand in the JSON; in the table they are only counted.
pub(super) fn print(rows: &[Row], dry_run: bool, as_json: bool, out: &mut Out) -> Result<(), CommandFailure> {
    let summary = summary(rows, dry_run);
    if as_json {
        rows.iter().try_for_each(|row| out.json(&json!(row)))?;
        note(&summary);
        return Ok(());
    }
    let mut table = Table::new(["LINE", "STATUS", "CHANGE", "NAME", "SCHEDULE", "REASON"]);
    for row in rows.iter().filter(|row| row.status != "comment") {
        let line = row.line.map(|line| line.to_string()).unwrap_or_default();
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        table.row([
            line,
            row.status.to_owned(),
            text(&row.change),
            text(&row.name),
            text(&row.schedule),
            text(&row.reason),
        ]);
    }
    if !table.is_empty() {
        out.bytes(table.text().as_bytes())?;
    }
    out.line(&summary)
}

fn summary(rows: &[Row], dry_run: bool) -> String {
    let count = |status: &str| rows.iter().filter(|row| row.status == status).count();
    let changed = |change: &str| rows.iter().filter(|row| row.change.as_deref() == Some(change)).count();
    let changes = ["created", "updated", "unchanged"].map(|change| (changed(change), change));
    let changes: Vec<String> =
        changes.iter().filter(|(n, _)| *n > 0).map(|(n, change)| format!("{n} {change}")).collect();
    let counted = |n: usize, one: &str, many: &str| format!("{n} {}", if n == 1 { one } else { many });

    let mut parts = vec![counted(count("job"), "job", "jobs")];
    if !changes.is_empty() {
        parts[0].push_str(&format!(" ({})", changes.join(", ")));
    }
    for (status, one, many) in [
        ("deleted", "deleted", "deleted"),
        ("kept", "not pruned", "not pruned"),
        ("env", "variable", "variables"),
        ("comment", "comment or blank line", "comments and blank lines"),
        ("skipped", "skipped", "skipped"),
        ("error", "error", "errors"),
    ] {
        if count(status) > 0 || status == "error" {
            parts.push(counted(count(status), one, many));
        }
    }
    let lines = rows.iter().filter(|row| row.line.is_some()).count();
    let dry_run = if dry_run { " (dry run: nothing was changed)" } else { "" };
    format!("{}: {}{dry_run}", counted(lines, "line", "lines"), parts.join(", "))
}
