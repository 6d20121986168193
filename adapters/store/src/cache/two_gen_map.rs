//! Values that were used lately, in two maps of bounded size. When the young map is full it becomes the old one, and the old one is
//! dropped.

use std::collections::HashMap;
use std::hash::Hash;

use carillon_domain::time::Timestamp;
use foldhash::fast::RandomState;

/// Its keys are numbers that the database gave out, so nobody can choose them to make it slow.
type Map<K, V> = HashMap<K, V, RandomState>;

/// Bounded, and a little forgetful.
#[derive(Debug)]
pub(crate) struct TwoGenMap<K, V> {
    /// How many go into each of the maps.
    half: usize,
    young: Map<K, V>,
    old: Map<K, V>,
    losses_until: Option<Timestamp>,
}

impl<K: Eq + Hash, V> TwoGenMap<K, V> {
    /// The `half` newest values are kept, and at most twice as many.
    pub fn of(half: usize) -> Self {
        Self { half: half.max(1), young: Map::default(), old: Map::default(), losses_until: None }
    }

    pub fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    /// As [`Self::get`], and counts as a use.
    pub fn touch(&mut self, key: K) -> Option<&V>
    where
        K: Copy,
    {
        if !self.young.contains_key(&key) {
            let found = self.old.remove(&key)?;
            self.make_room();
            self.young.insert(key, found);
        }
        self.young.get(&key)
    }

    /// Replaces the value of the key.
    pub fn put(&mut self, key: K, value: V) {
        if let Some(there) = self.young.get_mut(&key) {
            *there = value;
            return;
        }
        self.old.remove(&key);
        self.make_room();
        self.young.insert(key, value);
    }

    pub fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// After a new loss of commits nothing that was kept is certain: its number and version may return with another content.
    pub fn forget_lost(&mut self, losses_until: Option<Timestamp>) {
        if self.losses_until != losses_until {
            self.losses_until = losses_until;
            self.clear();
        }
    }

    fn make_room(&mut self) {
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}
