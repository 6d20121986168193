//! The audit log, as a map from ids.

use carillon_domain::store::{AuditEntry, Author};
use carillon_domain::time::Timestamp;

use carillon_store::{AuditQuery, AuditRows, AuditView};

use crate::data::Data;

/// The author of changes for which a test does not care who made them.
pub fn author() -> Author {
    Author::new("tester", "127.0.0.1 tests")
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

    pub(crate) fn purge_audit(&mut self, before: Timestamp, limit: usize) -> usize {
        let old = self.audit.values().filter(|view| view.at < before).map(|view| view.id);
        let old: Vec<u64> = old.take(limit).collect();
        old.iter().for_each(|id| _ = self.audit.remove(id));
        old.len()
    }
}
