//! Past events that the promises speak of, and that neither the store nor a node remembers.

use std::collections::BTreeMap;

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, SessionId};
use carillon_domain::time::Timestamp;

/// The past events.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct History {
    /// The starts that happened: the firing and its attempt.
    pub starts: Vec<(FiringKey, u32)>,
    /// The newest fencing token of each job.
    pub tokens: BTreeMap<JobId, u64>,
    /// When jobs were deleted.
    pub deleted: BTreeMap<JobId, Timestamp>,
    pub back: Option<Back>,
}

/// The database went back in time.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Back {
    /// Who can tell, until somebody has.
    pub witnesses: Vec<SessionId>,
    /// All who could tell ended before they had, or another node began before: then it may claim what has run. That is a
    /// limit which docs/lost-commits.md states.
    pub unnoticed: bool,
}
