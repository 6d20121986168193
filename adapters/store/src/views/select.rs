//! Statements that every database understands: a text with `?` for each parameter.

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use crate::codec::run_bytes;
use crate::tables::RecordQuery;

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Param {
    Text(String),
    Number(i64),
    Bytes(Vec<u8>),
}

/// A statement, or a part of one, and its parameters.
#[derive(Debug, Default)]
pub(crate) struct Select {
    pub sql: String,
    pub params: Vec<Param>,
}

impl Select {
    /// Adds a condition.
    pub fn add(&mut self, condition: &str, params: impl IntoIterator<Item = Param>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.params.extend(params);
    }

    /// Adds a condition on a time, if there is one.
    pub fn add_if(&mut self, condition: &str, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.add(condition, [Param::Number(at.as_ms())]);
        }
    }
}

/// A number that a signed column holds.
pub(crate) fn number(number: u64) -> Param {
    Param::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

/// So many parameters for an `IN`.
pub(crate) fn places(count: usize) -> String {
    vec!["?"; count].join(", ")
}

/// The jobs as a list of parameters.
pub(crate) fn jobs(jobs: &[JobId]) -> impl Iterator<Item = Param> {
    jobs.iter().map(|job| number(job.0))
}

/// The conditions on rows `r` of history, of jobs `j`, with their order and number.
pub(crate) fn history(query: &RecordQuery) -> Select {
    let mut select = Select::default();
    match query.jobs.as_deref() {
        None => {}
        Some([]) => select.add("FALSE", []),
        Some([one]) => select.add("r.job_id = ?", [number(one.0)]),
        Some(several) => select.add(&format!("r.job_id IN ({})", places(several.len())), jobs(several)),
    }
    if let Some(namespace) = &query.namespace {
        select.add("j.namespace = ?", [Param::Text(namespace.clone())]);
    }
    if let Some(status) = query.status {
        select.add("r.status = ?", [Param::Text(status.as_str().to_owned())]);
    }
    select.add_if("r.due_at >= ?", query.since);
    select.add_if("r.due_at < ?", query.until);
    select.add_if("r.due_at >= ?", query.covering);
    select.add_if("r.first_due_at <= ?", query.covering);
    select.add_if("r.due_at <= ?", query.after.map(|after| after.due_at));
    if let Some(after) = query.after {
        let (due_at, attempt) = (Param::Number(after.due_at.as_ms()), Param::Number(i64::from(after.attempt)));
        let place = [due_at, attempt.clone(), attempt, Param::Bytes(run_bytes(after.run).to_vec())];
        select.add("(r.due_at < ? OR r.attempt < ? OR (r.attempt = ? AND r.id < ?))", place);
    }
    let limit = u32::try_from(query.limit).unwrap_or(u32::MAX);
    select.sql.push_str(&format!(" ORDER BY r.due_at DESC, r.attempt DESC, r.id DESC LIMIT {limit}"));
    select
}
