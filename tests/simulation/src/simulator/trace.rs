//! All that happened, as one number: two runs of a seed must come to the same.

/// FNV-1a over what is noted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Trace {
    pub fn note(&mut self, what: &str, numbers: impl IntoIterator<Item = u64>) {
        what.bytes().for_each(|byte| self.add(u64::from(byte)));
        numbers.into_iter().for_each(|number| self.add(number));
    }

    fn add(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }

    pub const fn sum(self) -> u64 {
        self.0
    }
}
