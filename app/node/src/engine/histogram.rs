//! How often something took how long.

/// Upper bounds for starts, in milliseconds.
const LAG_MS: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 250, 1_000, 5_000, 30_000];
/// Upper bounds for runs, in milliseconds: from a command that only writes a line to a night of work.
const DURATION_MS: [u64; 11] = [10, 50, 250, 1_000, 5_000, 30_000, 60_000, 300_000, 1_800_000, 7_200_000, 28_800_000];

/// Counts of durations since the node began. Each one is counted in the first bucket whose bound it does not exceed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    /// Upper bound in milliseconds, and how many fell there.
    pub buckets: Vec<(u64, u64)>,
    /// How many there were, those beyond the last bound included.
    pub count: u64,
    /// Their sum in milliseconds.
    pub sum_ms: u64,
}

impl Histogram {
    /// For the lag of starts.
    pub(super) fn of_lags() -> Self {
        Self::of(&LAG_MS)
    }

    /// For the durations of runs.
    pub(super) fn of_durations() -> Self {
        Self::of(&DURATION_MS)
    }

    fn of(bounds_ms: &[u64]) -> Self {
        Self { buckets: bounds_ms.iter().map(|bound| (*bound, 0)).collect(), ..Self::default() }
    }

    pub(super) fn add(&mut self, ms: u64) {
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
        if let Some((_, count)) = self.buckets.iter_mut().find(|(bound, _)| ms <= *bound) {
            *count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_at_its_bound_is_within_it_and_the_longest_are_only_counted() {
        let mut lags = Histogram::of_lags();
        for ms in [0, 1, 2, 3, 30_000, 30_001] {
            lags.add(ms);
        }
        assert_eq!(lags.buckets[..3], [(1, 2), (2, 1), (5, 1)]);
        assert_eq!((lags.buckets[10], lags.count, lags.sum_ms), ((30_000, 1), 6, 60_007));
    }
}
