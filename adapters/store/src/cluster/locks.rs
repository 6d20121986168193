//! The lock rows: the mutex between processes. A transaction locks a row by writing it, so that it also conflicts on servers where a
//! locking read blocks nobody.

use std::collections::BTreeSet;

use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::SessionId;

use crate::{StoreError, StoreResult};

/// The lock row of the sessions; that of a partition is its number and 1.
const SESSIONS: u32 = 0;

/// The locks beyond those of the rows that a transaction writes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Locks<'a> {
    /// None: rows that are known are compared and swapped.
    Rows,
    /// None either; the standing of the session is read with the time.
    Standing(SessionId),
    /// That of the sessions.
    Sessions,
    /// Those of a set of partitions; then the standing of the session is read.
    Partitions(&'a [u16], SessionId),
    /// That of the sessions and those of all partitions.
    All,
}

impl Locks<'_> {
    /// The session whose standing is read with the time.
    pub const fn session(self) -> Option<SessionId> {
        match self {
            Locks::Standing(session) | Locks::Partitions(_, session) => Some(session),
            Locks::Rows | Locks::Sessions | Locks::All => None,
        }
    }

    /// The lock rows that a transaction begins with.
    pub fn opening_ids(self, partitions: u16) -> StoreResult<Vec<u32>> {
        match self {
            Locks::Rows | Locks::Standing(_) => Ok(Vec::new()),
            Locks::Sessions | Locks::All => Ok(vec![SESSIONS]),
            Locks::Partitions(..) if !enabled(Guard::ClaimLocks) => Ok(Vec::new()),
            Locks::Partitions(wanted, _) => ids_of(wanted, partitions),
        }
    }

    /// The places of the process locks among `count` of them, ascending.
    pub fn in_process(self, count: usize) -> Vec<usize> {
        match self {
            Locks::Rows | Locks::Standing(_) => Vec::new(),
            Locks::Sessions => vec![0],
            Locks::Partitions(partitions, _) => {
                let places: BTreeSet<usize> = partitions.iter().map(|partition| usize::from(*partition) + 1).collect();
                places.into_iter().collect()
            }
            Locks::All => (0..count).collect(),
        }
    }
}

/// The lock rows of partitions, ascending.
pub(crate) fn ids_of(wanted: &[u16], partitions: u16) -> StoreResult<Vec<u32>> {
    match wanted.iter().find(|partition| **partition >= partitions) {
        Some(unknown) => Err(StoreError::Permanent(format!("there is no partition {unknown} among {partitions}"))),
        None => {
            let ids: BTreeSet<u32> = wanted.iter().map(|partition| u32::from(*partition) + 1).collect();
            Ok(ids.into_iter().collect())
        }
    }
}

/// The name of a lock row in the table and in errors.
pub(crate) fn lock_name(id: u32) -> String {
    if id == SESSIONS { "the sessions".to_owned() } else { format!("partition {}", id - 1) }
}

/// The sentence for lock rows that are not there.
pub(crate) fn without_locks(ids: &[u32]) -> String {
    let names: Vec<String> = ids.iter().map(|id| lock_name(*id)).collect();
    let rows: Vec<String> = ids.iter().map(|id| format!("({id}, '{}', 0)", lock_name(*id))).collect();
    format!(
        "the lock row of {} is missing from table lock_row, and without it two nodes may take the same work: stop all \
         nodes, restore it with INSERT INTO lock_row (id, name, epoch) VALUES {}, then start them again",
        names.join(", "),
        rows.join(", ")
    )
}
