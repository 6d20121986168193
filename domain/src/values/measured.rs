//! Values that are measured and told. No decision uses them.

use std::hash::{Hash, Hasher};

use crate::time::Timestamp;

/// The machine that a run used, as far as its keeper could measure it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Usage {
    /// The CPU time of its processes, user and system, in milliseconds.
    pub cpu_ms: Option<u64>,
    /// The resident memory of its largest process at its peak, in KiB.
    pub peak_memory_kib: Option<u64>,
}

/// When a node learned that it holds a firing. It is nothing to a hash, so the model checker takes two states that differ
/// in it alone for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClaimedAt(pub Option<Timestamp>);

impl Hash for ClaimedAt {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
