//! The jobs to store: those of the file, written over the stored ones.

use std::collections::BTreeMap;

use carillon_domain::crontab::{Line, LineKind};
use serde_json::Value;

use super::report::Row;
use carillon_json::crontab_jobs::{definition_of, merged};

/// Jobs as the server shows them, by name, or by namespace and name.
pub(super) type Stored = BTreeMap<String, Value>;

/// The fate of the lines so far, and the jobs to send.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub rows: Vec<Row>,
    /// Each with the index of its row.
    pub to_send: Vec<(usize, Value)>,
    /// Whether the file is a crontab, which has a line for each row.
    pub of_crontab: bool,
}

impl Plan {
    /// Compares the lines with what is stored; `None` when that is not known.
    pub fn new(lines: &[Line], stored: Option<&Stored>, namespace: &str, stem: &str) -> Self {
        let mut plan = Plan { of_crontab: true, ..Plan::default() };
        for line in lines {
            let mut row = Row::of(line);
            if let LineKind::Job(job) = &line.what {
                let before = stored.and_then(|stored| stored.get(&job.name)).map(definition_of);
                let after = Value::Object(merged(before.clone(), job, namespace, stem));
                row.change = match (&before, stored) {
                    (_, None) => None,
                    (None, Some(_)) => Some("created".into()),
                    (Some(before), _) if Value::Object(before.clone()) == after => Some("unchanged".into()),
                    (Some(_), _) => Some("updated".into()),
                };
                if row.change.as_deref() != Some("unchanged") {
                    plan.to_send.push((plan.rows.len(), after));
                }
            }
            plan.rows.push(row);
        }
        plan
    }

    /// Whether something of the file could not be imported.
    pub fn has_errors(&self) -> bool {
        self.rows.iter().any(|row| row.status == "error")
    }
}
