//! The statements that read the audit log, for every database that speaks SQL.
//!
//! The order is that of the ids. An index leads to the entries of a namespace or of a job. For everything else a bounded part
//! is looked at, and the page says where it ended.

use std::fmt::Write as _;

use super::AuditQuery;
use crate::views::select::{Param, Select, number, places};

/// How many entries are looked at for a page of those that have something that no index knows.
const LOOKED_AT: usize = 5_000;

/// The columns of an entry, in the order in which they are read.
const COLUMNS: &str = "a.id, a.at, a.who, a.origin, a.action, a.namespace, a.job, a.job_id, a.generation, a.run, \
     a.before_doc, a.after_doc";

/// The index that leads to a part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Index {
    /// All entries.
    Primary,
    /// Those of a namespace.
    Namespace,
    /// Those of a job.
    Job,
}

/// Where a page is looked for, and the conditions that no index knows.
struct Plan {
    index: Index,
    part: Select,
    rest: Select,
}

impl Plan {
    fn of(query: &AuditQuery) -> Self {
        let (mut index, mut part, mut rest) = (Index::Primary, Select::default(), Select::default());
        let text = |text: &String| Param::Text(text.clone());
        let mut job = query.job.as_ref();
        match query.namespaces.as_deref() {
            None => {}
            Some([one]) => {
                index = Index::Namespace;
                part.add("namespace = ?", [text(one)]);
                if let Some(job) = job.take() {
                    index = Index::Job;
                    part.add("job = ?", [text(job)]);
                }
            }
            Some([]) => part.add("FALSE", []),
            Some(several) => {
                rest.add(&format!("a.namespace IN ({})", places(several.len())), several.iter().map(text));
            }
        }
        if let Some(after) = query.after {
            part.add("id < ?", [number(after)]);
        }
        for (condition, value) in [
            ("a.job = ?", job.map(text)),
            ("a.who = ?", query.who.as_ref().map(text)),
            ("a.action = ?", query.action.as_ref().map(text)),
            ("a.at >= ?", query.since.map(|since| Param::Number(since.as_ms()))),
            ("a.at < ?", query.until.map(|until| Param::Number(until.as_ms()))),
        ] {
            if let Some(value) = value {
                rest.add(condition, [value]);
            }
        }
        Self { index, part, rest }
    }

    /// How many entries of the part are looked at.
    fn looked_at(&self, limit: usize) -> usize {
        if self.rest.sql.is_empty() { limit } else { limit.max(LOOKED_AT) }
    }
}

/// The entries of a page. `hint` tells the database which index to take.
pub(crate) fn page(query: &AuditQuery, hint: fn(Index) -> &'static str) -> Select {
    let plan = Plan::of(query);
    let (looked_at, Plan { index, part, rest }) = (plan.looked_at(query.limit), plan);
    let sql = format!(
        "SELECT {COLUMNS} FROM (SELECT id FROM audit {} WHERE TRUE{} ORDER BY id DESC LIMIT {looked_at}) part \
         JOIN audit a ON a.id = part.id WHERE TRUE{} ORDER BY a.id DESC LIMIT {}",
        hint(index),
        part.sql,
        rest.sql,
        query.limit
    );
    Select { sql, params: part.params.into_iter().chain(rest.params).collect() }
}

/// The id and the time of the last entry that was looked at for a page; `None` where the page tells it itself.
pub(crate) fn end_of_part(query: &AuditQuery, hint: fn(Index) -> &'static str) -> Option<Select> {
    let plan = Plan::of(query);
    if plan.rest.sql.is_empty() {
        return None;
    }
    let (last, Plan { index, part: Select { sql, params }, .. }) = (plan.looked_at(query.limit) - 1, plan);
    let mut select = Select { sql: String::new(), params };
    let _infallible = write!(
        select.sql,
        "SELECT id, at FROM audit {} WHERE TRUE{sql} ORDER BY id DESC LIMIT 1 OFFSET {last}",
        hint(index)
    );
    Some(select)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(index: Index) -> &'static str {
        match index {
            Index::Primary => "<primary>",
            Index::Namespace => "<namespace>",
            Index::Job => "<job>",
        }
    }

    #[test]
    fn an_index_leads_to_a_namespace_and_to_a_job() {
        let one = |job: Option<&str>| AuditQuery {
            namespaces: Some(vec!["a".into()]),
            job: job.map(str::to_owned),
            after: Some(7),
            limit: 3,
            ..AuditQuery::default()
        };
        let of_namespace = page(&one(None), hint);
        assert!(
            of_namespace.sql.contains("<namespace> WHERE TRUE AND namespace = ? AND id < ? ORDER BY id DESC LIMIT 3)")
        );
        assert_eq!(of_namespace.params, [Param::Text("a".into()), Param::Number(7)]);
        assert!(page(&one(Some("b")), hint).sql.contains("<job> WHERE TRUE AND namespace = ? AND job = ? AND id < ?"));
        assert!(end_of_part(&one(None), hint).is_none());
    }

    #[test]
    fn for_everything_else_a_bounded_part_is_looked_at() {
        let by = AuditQuery { who: Some("ann".into()), limit: 3, ..AuditQuery::default() };
        let select = page(&by, hint);
        assert!(select.sql.contains("<primary> WHERE TRUE ORDER BY id DESC LIMIT 5000)"), "{}", select.sql);
        assert!(select.sql.ends_with("WHERE TRUE AND a.who = ? ORDER BY a.id DESC LIMIT 3"), "{}", select.sql);
        assert!(end_of_part(&by, hint).is_some_and(|end| end.sql.ends_with("LIMIT 1 OFFSET 4999")));
    }
}
