//! The audit log, as a map from ids.

use carillon_domain::store::{AuditEntry, Author};
use carillon_domain::time::Timestamp;

use carillon_store::feed::{AuditLine, JournalAsk, Numbered};
use carillon_store::{AuditQuery, AuditRows, AuditView, JobKey};

use crate::data::Data;

/// The author of changes for which a test does not care who made them.
pub fn author() -> Author {
    Author::new("tester", "127.0.0.1 tests")
}

fn line(view: &AuditView) -> AuditLine {
    let job = view.namespace.clone().zip(view.job.clone()).map(|(namespace, name)| JobKey { namespace, name });
    let (at, who, action, generation) = (view.at, view.who.clone(), view.action.clone(), view.generation);
    AuditLine { at, who, action, job, generation }
}

impl Data {
    pub(crate) fn write_audit(&mut self, entry: AuditEntry) {
        self.last_audit_id += 1;
        self.audit.insert(self.last_audit_id, AuditView::of(self.last_audit_id, entry));
    }

    pub(crate) fn audit_rows(&self, query: &AuditQuery) -> AuditRows {
        let is = |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|it| found == Some(it));
        let wanted = |view: &&AuditView| {
            let namespace = || view.namespace.as_ref();
            query.namespaces.as_ref().is_none_or(|all| namespace().is_some_and(|namespace| all.contains(namespace)))
                && is(&query.job, view.job.as_deref())
                && is(&query.who, Some(&view.who))
                && is(&query.action, Some(&view.action))
                && query.since.is_none_or(|since| view.at >= since)
                && query.until.is_none_or(|until| view.at < until)
        };
        let newest_first = self.audit.range(..query.after.unwrap_or(u64::MAX)).rev().map(|(_, view)| view);
        AuditRows { rows: newest_first.filter(wanted).take(query.limit).cloned().collect(), looked_until: None }
    }

    /// The log by its numbers, as a journal is asked for.
    pub(crate) fn audit_numbered(&self, ask: &JournalAsk) -> Numbered<AuditLine> {
        let newest = self.audit.last_key_value().map_or(0, |(number, _)| *number);
        let gaps = ask.gaps.iter().flat_map(|span| self.audit.range(span.first..=span.last));
        let above = self.audit.iter().filter(|(number, _)| **number > ask.after).take(ask.limit);
        Numbered { newest, rows: gaps.chain(above).map(|(number, view)| (*number, line(view))).collect() }
    }

    pub(crate) fn purge_audit(&mut self, before: Timestamp, limit: usize) -> usize {
        let old = self.audit.values().filter(|view| view.at < before).map(|view| view.id);
        let old: Vec<u64> = old.take(limit).collect();
        old.iter().for_each(|id| _ = self.audit.remove(id));
        old.len()
    }
}
