//! Stealing: this node claims firings in a partition of another node that does not claim them. That node is stuck, full, gone and not yet
//! expired, or lacks the executor.
//!
//! No column tells since when a row may be claimed: it is the later of `claim_at - horizon` and the row's last change. So a node
//! observes rows on its own clock, as it does heartbeats. A row that stands unclaimed at the same version for `steal_after` is
//! overdue. An owner claims in the order of due times. So it has ignored all later rows of that partition for as long, and the node
//! takes the whole backlog. Only rows of the same executor are taken: the owner may be quick with all others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::node::port::{RowKey, Unclaimed};
use crate::time::{BootTime, Timestamp};

/// The rows seen unclaimed in the partitions of others, and since when.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct UnclaimedTracker {
    seen: BTreeMap<(u16, RowKey), Observation>,
}

#[derive(Debug, Clone, Hash)]
struct Observation {
    row: Unclaimed,
    since: BootTime,
}

/// The rows to steal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::node) struct StealPlan {
    /// Where.
    pub partitions: Vec<u16>,
    /// Of which executor.
    pub executor: String,
    /// Up to there.
    pub until: Timestamp,
}

impl UnclaimedTracker {
    /// Notes the rows just seen. A row that is gone, or was written to, starts from the beginning.
    pub fn note(&mut self, unclaimed: impl IntoIterator<Item = Unclaimed>, now: BootTime) {
        let mut before = std::mem::take(&mut self.seen);
        for row in unclaimed {
            let key = (row.partition, row.row);
            let since = before.remove(&key).filter(|known| known.row.version == row.version);
            self.seen.insert(key, Observation { since: since.map_or(now, |known| known.since), row });
        }
    }

    /// The rows that have stood for `steal_after`, of the executor whose row is due first. `by_clock`: rows due until then could have been
    /// claimed for as long.
    pub fn overdue(&self, steal_after: Duration, by_clock: Timestamp, now: BootTime) -> Option<StealPlan> {
        let overdue = || self.seen.values().filter(|one| now.since(one.since) >= steal_after).map(|one| &one.row);
        let executor = &overdue().min_by_key(|row| (row.claim_at, row.row))?.executor;
        let of_it = || overdue().filter(|row| row.executor == *executor);
        let partitions: BTreeSet<u16> = of_it().map(|row| row.partition).collect();
        let until = of_it().map(|row| row.claim_at).fold(by_clock, Timestamp::max);
        Some(StealPlan { partitions: partitions.into_iter().collect(), executor: executor.clone(), until })
    }

    /// They are being claimed: the rest is observed from the beginning.
    pub fn forget(&mut self, plan: &StealPlan) {
        let taken = |row: &Unclaimed| plan.partitions.contains(&row.partition) && plan.executor == row.executor;
        self.seen.retain(|_, one| !taken(&one.row));
    }
}
