//! How values are spread.

use serde_json::{Value, json};

/// Values in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Percentiles(Vec<i64>);

impl FromIterator<i64> for Percentiles {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> Self {
        let mut values: Vec<i64> = values.into_iter().collect();
        values.sort_unstable();
        Self(values)
    }
}

/// The percentiles that are shown, by name.
const SHOWN: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

impl Percentiles {
    /// How many values there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The least value that at least `share` of all do not exceed; `None` where there are none.
    pub fn at(&self, share: f64) -> Option<i64> {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.saturating_sub(1).min(self.0.len().checked_sub(1)?)).copied()
    }

    /// The percentiles that are shown.
    pub fn to_json(&self) -> Value {
        let mut value = json!({"count": self.count()});
        for (name, share) in SHOWN {
            value[name] = json!(self.at(share));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_there() {
        let hundred: Percentiles = (1..=100).rev().collect();
        assert_eq!([0.5, 0.99, 1.0].map(|share| hundred.at(share)), [Some(50), Some(99), Some(100)]);
        assert_eq!(Percentiles::default().at(0.5), None);
        assert_eq!(Percentiles::from_iter([7]).at(0.0), Some(7));
    }
}
