//! The timing wheel: near-due firings in one flat ring of milliseconds.
//!
//! As in xxl-job only what comes up soon is held in memory; unlike its sixty seconds, the ring has a slot a millisecond over
//! the claim horizon, so that an insert and a pop are a few nanoseconds and nothing is scanned. What lies outside the ring
//! (beyond it, or before it after a clock was set back) waits in an ordered map.

use std::collections::BTreeMap;

use crate::time::Timestamp;

/// Items by the millisecond at which they come up.
#[derive(Debug, Clone)]
pub struct Wheel<T> {
    slots: Vec<Vec<T>>,
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
        let slots = span_ms.max(64).next_multiple_of(64);
        Self {
            slots: std::iter::repeat_with(Vec::new).take(slots).collect(),
            occupied: vec![0; slots / 64],
            base_ms: now.as_ms(),
            in_ring: 0,
            outside: BTreeMap::new(),
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
        if (0..self.slots.len() as i64).contains(&(at_ms - self.base_ms)) {
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

    /// What lay outside comes up, or into the ring as that moves on.
    fn draw_in(&mut self, end_ms: i64, out: &mut Vec<T>) {
        while let Some(entry) = self.outside.first_entry() {
            let at_ms = *entry.key();
            if at_ms < end_ms {
                out.extend(entry.remove());
            } else if (0..self.slots.len() as i64).contains(&(at_ms - self.base_ms)) {
                let items = entry.remove();
                items.into_iter().for_each(|item| self.insert(Timestamp::from_ms(at_ms), item));
            } else {
                return;
            }
        }
    }

    fn slot(&self, at_ms: i64) -> usize {
        at_ms.rem_euclid(self.slots.len() as i64) as usize
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
                let ahead = (slot + self.slots.len() - first) % self.slots.len();
                return Some(self.base_ms + ahead as i64);
            }
        }
        None
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
