//! The fate of every line, as a table or as JSON, and a summary.

use carillon_domain::crontab::Line;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::plan::Plan;
use crate::failure::CommandFailure;
use crate::out::{Out, note};
use crate::table::Table;

/// The fate of a line, or of a job that the file no longer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// `None` for a job that stands in no line.
    pub line: Option<u32>,
    pub status: &'static str,
    /// `None` where a crontab has one namespace for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
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
            namespace: None,
            name: line.name().map(str::to_owned),
            schedule: line.schedule().map(str::to_owned),
            reason: line.reason().map(str::to_owned),
            change: None,
        }
    }

    /// A job of a file that has no line for each.
    pub fn of_job(job: &Map<String, Value>) -> Self {
        let text = |key: &str| job.get(key).and_then(Value::as_str).map(str::to_owned);
        let (namespace, name, schedule) = (text("namespace"), text("name"), text("schedule"));
        Self { line: None, status: "job", namespace, name, schedule, reason: None, change: None }
    }

    /// A stored job that is deleted. Those of a crontab are all in the namespace that was asked for.
    pub fn deleted(job: &Map<String, Value>, of_crontab: bool) -> Self {
        let row = Self::of_job(job);
        let namespace = row.namespace.filter(|_| !of_crontab);
        Self { status: "deleted", namespace, reason: Some("the file no longer has it".into()), ..row }
    }

    /// The name as people find it, with its namespace where that is not the usual one.
    fn shown_name(&self) -> String {
        let namespace = self.namespace.as_deref().filter(|namespace| *namespace != "default");
        let name = self.name.clone().unwrap_or_default();
        namespace.map_or(name.clone(), |namespace| format!("{namespace}/{name}"))
    }

    pub fn fail(&mut self, reason: &str) {
        self.status = "error";
        self.reason = Some(reason.to_owned());
        self.change = None;
    }
}

/// The fate of a file.
pub(super) struct Report<'a> {
    pub plan: &'a Plan,
    pub dry_run: bool,
}

impl Report<'_> {
    /// Prints everything. Comments stand in the JSON; in the table they are only counted.
    pub fn print(&self, as_json: bool, out: &mut Out) -> Result<(), CommandFailure> {
        let summary = self.summary();
        if as_json {
            self.plan.rows.iter().try_for_each(|row| out.json(&json!(row)))?;
            note(&summary);
            return Ok(());
        }
        let from = usize::from(!self.plan.of_crontab);
        let mut table = Table::new(["LINE", "STATUS", "CHANGE", "NAME", "SCHEDULE", "REASON"].into_iter().skip(from));
        for row in self.plan.rows.iter().filter(|row| row.status != "comment") {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let line = row.line.map(|line| line.to_string()).unwrap_or_default();
            let (status, change) = (row.status.to_owned(), text(&row.change));
            let cells = [line, status, change, row.shown_name(), text(&row.schedule), text(&row.reason)];
            table.row(cells.into_iter().skip(from));
        }
        if !table.is_empty() {
            out.bytes(table.text().as_bytes())?;
        }
        out.line(&summary)
    }

    fn summary(&self) -> String {
        let rows = &self.plan.rows;
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
        let lines = if self.plan.of_crontab { counted(lines, "line", "lines") + ": " } else { String::new() };
        let dry_run = if self.dry_run { " (dry run: nothing was changed)" } else { "" };
        format!("{lines}{}{dry_run}", parts.join(", "))
    }
}
