//! Clauses of statements that are guards, each with its switch.

use std::borrow::Cow;

use carillon_domain::guard::{Guard, enabled};

/// The statement as it is. Where the guard is removed, `instead` replaces the clause.
#[inline]
pub(super) fn guarded(guard: Guard, sql: &'static str, clause: &str, instead: &str) -> Cow<'static, str> {
    if enabled(guard) {
        return Cow::Borrowed(sql);
    }
    debug_assert!(sql.contains(clause), "no {clause:?} in {sql}");
    Cow::Owned(sql.replace(clause, instead))
}
