//! The answer to a peek.

use crate::node::port::{Peek, UNCLAIMED_PER_PARTITION, Unclaimed};

/// The answer to a peek whose own partitions are `mine`. `found` has at least the first [`UNCLAIMED_PER_PARTITION`] rows of
/// each partition and each table, in any order.
pub fn peek(mine: &[u16], mut found: Vec<Unclaimed>) -> Peek {
    let own = found.extract_if(.., |row| mine.contains(&row.partition));
    let earliest_claim_at = own.map(|row| row.claim_at).min();
    found.sort_unstable_by_key(|row| (row.partition, row.claim_at, row.row));
    let (mut partition, mut of_it) = (None, 0);
    found.retain(|row| {
        of_it = if partition == Some(row.partition) { of_it + 1 } else { 1 };
        partition = Some(row.partition);
        of_it <= UNCLAIMED_PER_PARTITION
    });
    Peek { earliest_claim_at, unclaimed: found, ..Peek::default() }
}
