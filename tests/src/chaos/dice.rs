//! Chance that a seed repeats.

use std::time::Duration;

/// A stream of numbers that follows from its seed alone (splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both among them.
    ///
    /// # Panics
    /// Where `high` is below `low`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "no number from {low} to {high}");
        low + self.roll() % (high - low + 1)
    }

    /// A time from `low` to `high` milliseconds.
    pub fn ms(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// Heads or tails.
    pub fn coin(&mut self) -> bool {
        self.roll().is_multiple_of(2)
    }

    /// One of them.
    ///
    /// # Panics
    /// Where there are none.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        let last = u64::try_from(among.len()).expect("a count").checked_sub(1).expect("something to pick from");
        &among[usize::try_from(self.between(0, last)).expect("an index")]
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn a_seed_repeats_and_every_face_comes_up() {
        let (mut one, mut same) = (Dice::new(7), Dice::new(7));
        let thrown: Vec<u64> = (0..200).map(|_| one.between(3, 5)).collect();
        assert_eq!(thrown, (0..200).map(|_| same.between(3, 5)).collect::<Vec<_>>());
        assert!((3..=5).all(|face| thrown.contains(&face)) && thrown.iter().all(|face| (3..=5).contains(face)));
        assert_ne!(Dice::new(8).roll(), Dice::new(7).roll());
    }
}
