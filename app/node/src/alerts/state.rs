//! The troubles that a node tells of itself: which began, which are over, and which of that the store knows.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::alert::{Part, Trouble, When};

/// A trouble of one kind with one part of the cluster.
pub(super) type Key = (When, Part);

/// A difference of the clocks at which a trouble begins, and below which it is over, in milliseconds.
const DRIFT_MS: (u64, u64) = (1_000, 500);
/// Free bytes below which a disk is nearly full; a small disk is so below a twentieth of it. It is over at twice as much.
const FREE_BYTES: u64 = 100 << 20;

/// Whether a clock is in trouble, which it leaves later than it enters.
pub fn drifts(was: bool, drift_ms: i64) -> bool {
    drift_ms.unsigned_abs() >= if was { DRIFT_MS.1 } else { DRIFT_MS.0 }
}

/// Whether a disk with so many bytes, and so many free ones, is nearly full.
pub fn is_full(was: bool, bytes: u64, free: u64) -> bool {
    let least = FREE_BYTES.min(bytes / 20);
    free < if was { least.saturating_mul(2) } else { least }
}

/// The knowledge of the store about this node's troubles.
#[derive(Debug, Default)]
pub(super) struct Told {
    known: BTreeMap<Key, bool>,
}

impl Told {
    /// Whether the store was told that this trouble is open.
    pub fn is_open(&self, key: &Key) -> bool {
        self.known.get(key) == Some(&true)
    }

    /// A former session of the node told of this trouble, which may be over by now.
    pub fn found_open(&mut self, key: Key) {
        self.known.entry(key).or_insert(true);
    }

    /// The news: each trouble that began, and `None` for each that is over. Those in `looked_at` would be in `open` if there were any.
    /// The first look tells that they are over, since a former session may have told of them.
    pub fn news(&self, open: &BTreeMap<Key, Trouble>, looked_at: &BTreeSet<Key>) -> Vec<(Key, Option<Trouble>)> {
        let keys: BTreeSet<&Key> = open.keys().chain(looked_at).chain(self.known.keys()).collect();
        let is_news = |key: &&Key| self.known.get(*key) != Some(&open.contains_key(*key));
        keys.into_iter().filter(is_news).map(|key| (key.clone(), open.get(key).cloned())).collect()
    }

    /// The store knows it now.
    pub fn told(&mut self, key: Key, open: bool) {
        self.known.insert(key, open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_at_its_bound_does_not_flap() {
        for (was, drift_ms, is) in
            [(false, 999, false), (false, -1_000, true), (true, 999, true), (true, -500, true), (true, 499, false)]
        {
            assert_eq!(drifts(was, drift_ms), is, "{was} {drift_ms}");
        }
        let (disk, small) = (1 << 40, 40 << 20);
        for (was, bytes, free, is) in [
            (false, disk, FREE_BYTES, false),
            (false, disk, FREE_BYTES - 1, true),
            (true, disk, 2 * FREE_BYTES - 1, true),
            (true, disk, 2 * FREE_BYTES, false),
            (false, small, 3 << 20, false),
            (false, small, 1 << 20, true),
            (false, 0, 0, false),
        ] {
            assert_eq!(is_full(was, bytes, free), is, "{was} {bytes} {free}");
        }
    }

    #[test]
    fn each_change_is_told_until_the_store_knows_it() {
        let key = (When::ClockDrift, Part::node("n1"));
        let drift = Trouble::ClockDrift { drift_ms: 2_000 };
        let looked_at = BTreeSet::from([key.clone()]);
        let open = BTreeMap::from([(key.clone(), drift.clone())]);
        let mut told = Told::default();
        assert_eq!(told.news(&BTreeMap::new(), &looked_at), [(key.clone(), None)], "a former session may have told");
        told.told(key.clone(), false);
        assert_eq!(told.news(&BTreeMap::new(), &looked_at), []);
        for _ in 0..2 {
            assert_eq!(told.news(&open, &looked_at), [(key.clone(), Some(drift.clone()))]);
        }
        told.told(key.clone(), true);
        assert_eq!(told.news(&open, &looked_at), []);
        assert_eq!(told.news(&BTreeMap::new(), &looked_at), [(key, None)]);
        let gone = (When::PluginRefused, Part { node: Some("n1".into()), thing: Some("x.so".into()) });
        let mut told = Told::default();
        told.found_open(gone.clone());
        assert_eq!(told.news(&BTreeMap::new(), &BTreeSet::new()), [(gone, None)], "its file went while no node ran");
    }
}
