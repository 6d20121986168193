//! Distributions of delays.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// Delays in microseconds.
pub struct Lags(Histogram<u64>);

/// The part of a distribution that the plots show.
const SHOWN: [f64; 16] =
    [0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.99, 99.999, 100.0];

impl Lags {
    /// None yet.
    pub fn new() -> Self {
        Self(Histogram::new(3).expect("three digits are possible"))
    }

    /// One more; what lies before its time counts as none.
    pub fn add(&mut self, lag_us: i64) {
        self.0.record(u64::try_from(lag_us).unwrap_or(0)).expect("it resizes itself");
    }

    /// All of another one.
    pub fn add_all(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both resize themselves");
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The delay in ms below which so many per cent stayed.
    pub fn ms(&self, percent: f64) -> f64 {
        self.0.value_at_percentile(percent) as f64 / 1_000.0
    }

    /// As the report keeps it.
    pub fn json(&self, load: &str, measured: &str) -> Value {
        let curve: Vec<Value> = SHOWN.iter().map(|percent| json!([percent, self.ms(*percent)])).collect();
        json!({
            "load": load,
            "measured": measured,
            "runs": self.count(),
            "p50 ms": self.ms(50.0),
            "p99 ms": self.ms(99.0),
            "p99.9 ms": self.ms(99.9),
            "most ms": self.0.max() as f64 / 1_000.0,
            "curve": curve,
        })
    }
}
