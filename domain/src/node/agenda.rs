//! The calls that are wanted.

use crate::node::ledger::stealing::StealPlan;
use crate::node::timers::Backoffs;
use crate::time::BootTime;

/// The calls that are wanted, and when the regular ones follow.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Agenda {
    /// A peek is wanted at once.
    pub(in crate::node) peek: bool,
    /// There are rows to claim.
    pub(in crate::node) claim: bool,
    /// Some of the rows to claim were due already when this node heard of them.
    pub(in crate::node) overdue: bool,
    /// The plan of the last peek.
    pub(in crate::node) steal: Option<StealPlan>,
    pub(in crate::node) next_peek: BootTime,
    pub(in crate::node) next_recovery: BootTime,
    pub(in crate::node) backoffs: Backoffs,
}
