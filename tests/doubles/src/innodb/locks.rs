//! Row locks as InnoDB grants them: exclusive, first come first served, with cycles found when somebody begins to wait.
//!
//! Only what `store/mysql` can run into at READ COMMITTED stands here: it never locks a row for sharing, and locks no gaps but
//! those that an insert looks for duplicates in, which are taken for the row itself.

use std::collections::{BTreeMap, VecDeque};

use carillon_domain::firing::FiringKey;
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::run::Trigger;
use carillon_domain::time::Timestamp;

use carillon_store::JobKey;

/// A transaction; a later one has a higher number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TrxId(pub u64);

/// A row that can be locked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    /// A row of `lock_row`: 0 of the sessions, a partition's number and 1.
    Lock(u32),
    Session(SessionId),
    /// The unique key of `loss_window` that keeps the open one alone.
    OpenWindow,
    /// The unique key of a living job's name.
    Name(JobKey),
    Definition(JobId),
    State(JobId),
    Active(FiringKey),
    HighestVersion,
    Record(RunId),
    AlertCursor,
    Delivery(u64),
    Watch(JobId),
    /// The unique key of facts that are one.
    FactKey(String),
    /// The unique key of a record's attempt.
    Attempt(JobId, Timestamp, Trigger, u32),
}

#[derive(Debug)]
struct Queue {
    holder: TrxId,
    waiting: VecDeque<TrxId>,
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    Granted,
    Waits,
}

/// Who holds what and who waits for what.
#[derive(Debug, Default)]
pub(super) struct Locks {
    rows: BTreeMap<Row, Queue>,
    held: BTreeMap<TrxId, Vec<Row>>,
    waits: BTreeMap<TrxId, Row>,
}

impl Locks {
    /// Asks for a lock; who is told to wait stands in its queue.
    pub fn ask(&mut self, trx: TrxId, row: &Row) -> Grant {
        let Some(queue) = self.rows.get_mut(row) else {
            self.rows.insert(row.clone(), Queue { holder: trx, waiting: VecDeque::new() });
            self.held.entry(trx).or_default().push(row.clone());
            return Grant::Granted;
        };
        if queue.holder == trx {
            return Grant::Granted;
        }
        queue.waiting.push_back(trx);
        self.waits.insert(trx, row.clone());
        Grant::Waits
    }

    /// Who is to be rolled back so that `trx`, which has begun to wait, does not wait for ever: of the cycle the one of which
    /// the least would be lost, and of those that weigh the same the one that closed it.
    pub fn victim(&self, trx: TrxId, weight: impl Fn(TrxId) -> usize) -> Option<TrxId> {
        let weigh = |member: &TrxId| (weight(*member) + self.held_by(*member), *member != trx);
        self.cycle_of(trx).into_iter().min_by_key(weigh)
    }

    /// How many rows a transaction has locked.
    fn held_by(&self, trx: TrxId) -> usize {
        self.held.get(&trx).map_or(0, Vec::len)
    }

    /// Whom a transaction waits for: the holder, and whoever stands in front of it.
    fn blockers(&self, trx: TrxId) -> Vec<TrxId> {
        let Some(queue) = self.waits.get(&trx).and_then(|row| self.rows.get(row)) else { return Vec::new() };
        let ahead = queue.waiting.iter().copied().take_while(|waiting| *waiting != trx);
        std::iter::once(queue.holder).chain(ahead).collect()
    }

    /// The transactions of a cycle through `trx`; none where it may wait.
    fn cycle_of(&self, trx: TrxId) -> Vec<TrxId> {
        let mut path = vec![trx];
        let mut seen = Vec::new();
        if self.leads_back(trx, trx, &mut path, &mut seen) { path } else { Vec::new() }
    }

    fn leads_back(&self, from: TrxId, to: TrxId, path: &mut Vec<TrxId>, seen: &mut Vec<TrxId>) -> bool {
        for next in self.blockers(from) {
            if next == to {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
                path.push(next);
                if self.leads_back(next, to, path, seen) {
                    return true;
                }
                path.pop();
            }
        }
        false
    }

    pub fn waits(&self, trx: TrxId) -> bool {
        self.waits.contains_key(&trx)
    }

    /// Leaves the queue in which it waits; answers who gets a lock thereby (nobody: only the head of a queue is granted, and
    /// its holder is another one).
    pub fn stop_waiting(&mut self, trx: TrxId) {
        if let Some(queue) = self.waits.remove(&trx).and_then(|row| self.rows.get_mut(&row)) {
            queue.waiting.retain(|waiting| *waiting != trx);
        }
    }

    /// Gives everything back; answers who has what it waited for now, in the order in which the locks were taken.
    pub fn release(&mut self, trx: TrxId) -> Vec<TrxId> {
        self.stop_waiting(trx);
        let mut granted = Vec::new();
        for row in self.held.remove(&trx).unwrap_or_default() {
            let Some(queue) = self.rows.get_mut(&row) else { continue };
            match queue.waiting.pop_front() {
                None => {
                    self.rows.remove(&row);
                }
                Some(next) => {
                    queue.holder = next;
                    self.waits.remove(&next);
                    self.held.entry(next).or_default().push(row);
                    granted.push(next);
                }
            }
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TrxId = TrxId(1);
    const B: TrxId = TrxId(2);
    const C: TrxId = TrxId(3);

    fn row(n: u32) -> Row {
        Row::Lock(n)
    }

    #[test]
    fn who_came_first_gets_the_row_first() {
        let mut locks = Locks::default();
        let mut ask = |trx| locks.ask(trx, &row(1));
        assert_eq!([ask(A), ask(A), ask(B), ask(C)], [Grant::Granted, Grant::Granted, Grant::Waits, Grant::Waits]);
        assert_eq!(locks.release(A), [B]);
        assert!(!locks.waits(B) && locks.waits(C));
        locks.stop_waiting(C);
        assert_eq!(locks.release(B), []);
        assert_eq!(locks.ask(C, &row(1)), Grant::Granted);
    }

    #[test]
    fn of_a_cycle_the_lightest_goes() {
        let mut locks = Locks::default();
        for (trx, n) in [(A, 1), (B, 2), (B, 3)] {
            assert_eq!(locks.ask(trx, &row(n)), Grant::Granted);
        }
        assert_eq!(locks.ask(A, &row(2)), Grant::Waits);
        assert_eq!(locks.victim(A, |_| 0), None);
        assert_eq!(locks.ask(B, &row(1)), Grant::Waits);
        assert_eq!(locks.victim(B, |_| 0), Some(A));
        assert_eq!(locks.victim(B, |trx| usize::from(trx == A) * 5), Some(B));
        assert_eq!(locks.release(A), [B]);
        assert_eq!(locks.victim(B, |_| 0), None);
    }

    #[test]
    fn who_stands_in_front_blocks_as_well() {
        let mut locks = Locks::default();
        for (trx, n) in [(A, 1), (B, 2)] {
            locks.ask(trx, &row(n));
        }
        for trx in [C, B] {
            assert_eq!(locks.ask(trx, &row(1)), Grant::Waits);
        }
        assert_eq!(locks.blockers(B), [A, C]);
        assert_eq!(locks.ask(A, &row(2)), Grant::Waits);
        assert_eq!(locks.victim(A, |_| 0), Some(A), "it closed the cycle");
    }
}
