//! The timing wheel: near-due firings in one flat ring of milliseconds.
//!
//! As in xxl-job, memory holds only the firings that fall due soon. The ring has one slot for each millisecond of the claim horizon,
//! where xxl-job has one for each of sixty seconds. So an insert and a pop take a few nanoseconds, and nothing is scanned. A run outside
//! the ring (behind its end, or before its beginning after a clock was set back) waits in an ordered map.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};

use crate::time::Timestamp;

/// Items by the millisecond at which they come up.
pub struct Wheel<T> {
    /// None before the first item, so that a copy of an empty wheel costs nothing.
    slots: Vec<Vec<T>>,
    span: usize,
    /// One bit a slot: whether anything is in it.
    occupied: Vec<u64>,
    /// Everything before this has been popped.
    base_ms: i64,
    in_ring: usize,
    outside: BTreeMap<i64, Vec<T>>,
}

impl<T> Wheel<T> {
    /// A wheel whose ring spans at least `span_ms` milliseconds from `now`.
    pub fn new(span_ms: usize, now: Timestamp) -> Self {
        Self {
            slots: Vec::new(),
            span: span_ms.max(64).next_multiple_of(64),
            occupied: Vec::new(),
            base_ms: now.as_ms(),
            in_ring: 0,
            outside: BTreeMap::new(),
        }
    }

    fn make_slots(&mut self) {
        if self.slots.is_empty() {
            self.slots.resize_with(self.span, Vec::new);
            self.occupied.resize(self.span / 64, 0);
        }
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.in_ring + self.outside.values().map(Vec::len).sum::<usize>()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.in_ring == 0 && self.outside.is_empty()
    }

    /// Lets `item` come up at `at`; with the next pop when that has passed.
    pub fn insert(&mut self, at: Timestamp, item: T) {
        let at_ms = at.as_ms();
        if (0..self.span as i64).contains(&(at_ms - self.base_ms)) {
            self.make_slots();
            let slot = self.slot(at_ms);
            self.slots[slot].push(item);
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.in_ring += 1;
        } else {
            self.outside.entry(at_ms).or_default().push(item);
        }
    }

    /// Moves everything that has come up by `now` to `out`, in the order of time; what lay before the ring comes last.
    pub fn pop_until(&mut self, now: Timestamp, out: &mut Vec<T>) {
        let end_ms = now.as_ms() + 1;
        while self.base_ms < end_ms {
            let Some(at_ms) = self.next_in_ring().filter(|at_ms| *at_ms < end_ms) else { break };
            let slot = self.slot(at_ms);
            self.in_ring -= self.slots[slot].len();
            out.append(&mut self.slots[slot]);
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            self.base_ms = at_ms;
        }
        self.base_ms = self.base_ms.max(end_ms);
        self.draw_in(end_ms, out);
    }

    /// When the next item comes up; `None` when nothing waits.
    pub fn next_at(&self) -> Option<Timestamp> {
        let outside = self.outside.keys().next().copied();
        self.next_in_ring().into_iter().chain(outside).min().map(Timestamp::from_ms)
    }

    /// Runs outside the ring fall due, or enter it as it moves on.
    fn draw_in(&mut self, end_ms: i64, out: &mut Vec<T>) {
        while let Some(entry) = self.outside.first_entry() {
            let at_ms = *entry.key();
            if at_ms < end_ms {
                out.extend(entry.remove());
            } else if (0..self.span as i64).contains(&(at_ms - self.base_ms)) {
                let items = entry.remove();
                items.into_iter().for_each(|item| self.insert(Timestamp::from_ms(at_ms), item));
            } else {
                return;
            }
        }
    }

    fn slot(&self, at_ms: i64) -> usize {
        at_ms.rem_euclid(self.span as i64) as usize
    }

    /// The first occupied millisecond at or after the base.
    fn next_in_ring(&self) -> Option<i64> {
        if self.in_ring == 0 {
            return None;
        }
        let first = self.slot(self.base_ms);
        let words = self.occupied.len();
        // The word of the first slot is looked at twice: its upper part at the beginning, the rest of it at the end.
        for step in 0..=words {
            let word = (first / 64 + step) % words;
            let bits = if step == 0 { self.occupied[word] & u64::MAX << (first % 64) } else { self.occupied[word] };
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                return Some(self.base_ms + self.ahead(slot));
            }
        }
        None
    }

    /// How far a slot lies beyond the base.
    fn ahead(&self, slot: usize) -> i64 {
        ((slot + self.span - self.slot(self.base_ms)) % self.span) as i64
    }

    /// The waiting entries, in the order of time.
    fn items(&self) -> BTreeMap<i64, &Vec<T>> {
        let in_slot = |slot: usize| (self.base_ms + self.ahead(slot), &self.slots[slot]);
        let occupied = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        };
        let words = self.occupied.iter().enumerate().filter(|(_, bits)| **bits != 0);
        let outside = self.outside.iter().map(|(at_ms, items)| (*at_ms, items));
        words.flat_map(occupied).map(in_slot).chain(outside).collect()
    }
}

impl<T: Clone> Clone for Wheel<T> {
    /// Slots in which nothing is are not looked at.
    fn clone(&self) -> Self {
        let (span, base_ms) = (self.span, self.base_ms);
        let mut copy =
            Self { slots: Vec::new(), span, occupied: Vec::new(), base_ms, in_ring: 0, outside: BTreeMap::new() };
        for (at_ms, items) in self.items() {
            items.iter().for_each(|item| copy.insert(Timestamp::from_ms(at_ms), item.clone()));
        }
        copy
    }
}

/// By what comes up when; where in the ring the wheel stands makes no difference.
impl<T: Hash> Hash for Wheel<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.items().hash(state);
    }
}

impl<T: fmt::Debug> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.items()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_ms(ms)
    }

    #[test]
    fn what_has_passed_comes_up_at_once_and_what_lies_beyond_the_ring_in_its_time() {
        let mut wheel = Wheel::new(64, ms(1_000));
        wheel.insert(ms(10), "overdue");
        wheel.insert(ms(1_063), "last slot");
        wheel.insert(ms(5_000), "beyond");
        let mut out = Vec::new();
        wheel.pop_until(ms(1_062), &mut out);
        assert_eq!(out, ["overdue"]);
        assert_eq!(wheel.next_at(), Some(ms(1_063)));
        wheel.insert(ms(900), "after the clock was set back");
        wheel.pop_until(ms(899), &mut out);
        assert_eq!((out.len(), wheel.next_at()), (1, Some(ms(900))));
        wheel.pop_until(ms(900), &mut out);
        assert_eq!(out.pop(), Some("after the clock was set back"));
        wheel.pop_until(ms(4_999), &mut out);
        assert_eq!(out, ["overdue", "last slot"]);
        assert_eq!(wheel.next_at(), Some(ms(5_000)));
        wheel.pop_until(ms(5_000), &mut out);
        assert_eq!(out, ["overdue", "last slot", "beyond"]);
        assert!(wheel.is_empty());
    }

    #[test]
    fn a_copy_holds_the_same_wherever_its_ring_stands() {
        let hash = |wheel: &Wheel<u8>| {
            let mut hasher = std::hash::DefaultHasher::new();
            wheel.hash(&mut hasher);
            hasher.finish()
        };
        let mut wheel = Wheel::new(64, ms(1_000));
        for (at, item) in [(1_010, 1), (1_063, 2), (9_000, 3), (10, 4)] {
            wheel.insert(ms(at), item);
        }
        let mut copy = wheel.clone();
        let mut turned = Wheel::new(640, ms(950));
        for (at, item) in [(10, 4), (9_000, 3), (1_010, 1), (1_063, 2)] {
            turned.insert(ms(at), item);
        }
        assert_eq!((hash(&wheel), copy.len()), (hash(&turned), 4));
        let [mut out, mut of_copy] = [Vec::new(), Vec::new()];
        wheel.pop_until(ms(1_020), &mut out);
        copy.pop_until(ms(1_020), &mut of_copy);
        assert_eq!((&out, hash(&wheel)), (&of_copy, hash(&copy)));
        assert_ne!(hash(&wheel), hash(&turned));
        assert_eq!(format!("{wheel:?}"), "{1063: [2], 9000: [3]}");
    }

    #[test]
    fn what_lay_beyond_the_ring_comes_up_in_the_order_of_time_with_what_lay_in_it() {
        let mut wheel = Wheel::new(64, ms(1_000));
        wheel.insert(ms(1_100), "beyond, then drawn in");
        let mut out = Vec::new();
        wheel.pop_until(ms(1_050), &mut out);
        wheel.insert(ms(1_101), "in the ring");
        wheel.insert(ms(1_300), "beyond");
        wheel.insert(ms(1_020), "before");
        wheel.pop_until(ms(1_300), &mut out);
        assert_eq!(out, ["beyond, then drawn in", "in the ring", "before", "beyond"]);
    }

    proptest! {
        #[test]
        fn it_pops_what_an_ordered_map_would(steps in prop::collection::vec((0i64..400, 0i64..90, 0usize..4), 1..200)) {
            let mut wheel = Wheel::new(128, ms(1_000));
            let mut model: BTreeMap<i64, usize> = BTreeMap::new();
            let mut now = 1_000;
            for (ahead, advance, inserts) in steps {
                for n in 0..inserts {
                    let at = now - 20 + ahead + n as i64;
                    wheel.insert(ms(at), at);
                    *model.entry(at).or_default() += 1;
                }
                prop_assert_eq!(wheel.len(), model.values().sum::<usize>());
                prop_assert_eq!(wheel.is_empty(), model.is_empty());
                now += advance;
                let mut out = Vec::new();
                wheel.pop_until(ms(now), &mut out);
                out.sort_unstable();
                let later = model.split_off(&(now + 1));
                let expected: Vec<i64> =
                    std::mem::replace(&mut model, later).into_iter().flat_map(|(at, n)| vec![at; n]).collect();
                prop_assert_eq!(out, expected);
                prop_assert_eq!(wheel.next_at().map(Timestamp::as_ms), model.keys().next().copied());
            }
        }
    }
}
