//! The database's clock and the nodes' own, none of which shows the true time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use carillon_domain::time::BootTime;
use carillon_store::Clock;

const MILLION: i128 = 1_000_000;

fn after(passed_us: u64, drift_ppm: i64) -> i128 {
    i128::from(passed_us) * (MILLION + i128::from(drift_ppm)) / MILLION
}

/// The database's time of day, as its server reads it.
#[derive(Debug, Clone)]
pub struct DatabaseClock {
    shown_us: Arc<AtomicI64>,
    begin_us: i64,
    drift_ppm: i64,
    set_by_us: i64,
}

impl DatabaseClock {
    /// A clock that shows this at the beginning, and gains so much.
    pub fn new(begin_us: i64, drift_ppm: i64) -> Self {
        Self { shown_us: Arc::new(AtomicI64::new(begin_us)), begin_us, drift_ppm, set_by_us: 0 }
    }

    /// Somebody sets it.
    pub fn step(&mut self, by_us: i64) {
        self.set_by_us += by_us;
    }

    /// So much true time has passed.
    pub fn advance_to(&self, true_us: u64) {
        let passed = i64::try_from(after(true_us, self.drift_ppm)).unwrap_or(i64::MAX);
        self.shown_us.store(self.begin_us + passed + self.set_by_us, Ordering::Relaxed);
    }
}

impl Clock for DatabaseClock {
    fn now_us(&self) -> i64 {
        self.shown_us.load(Ordering::Relaxed)
    }
}

/// A machine's clock since it was booted.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub struct BootClock {
    /// The time that it showed when the world began, in microseconds.
    pub ahead_us: u64,
    /// Its gain over true time, in millionths.
    pub drift_ppm: i64,
}

impl BootClock {
    /// The time that it shows at that true time.
    pub fn at(self, true_us: u64) -> BootTime {
        let shown = after(true_us, self.drift_ppm) + i128::from(self.ahead_us);
        BootTime::from_ms(u64::try_from(shown / 1_000).unwrap_or(0))
    }

    /// When it shows `at`, in true microseconds.
    pub fn when(self, at: BootTime) -> u64 {
        let shown_us = i128::from(at.as_ms()) * 1_000 - i128::from(self.ahead_us);
        let rate = MILLION + i128::from(self.drift_ppm);
        let exact = (shown_us.max(0) * MILLION + rate - 1) / rate;
        let mut true_us = u64::try_from(exact).unwrap_or(u64::MAX);
        while true_us < u64::MAX && self.at(true_us) < at {
            true_us += 1;
        }
        true_us
    }
}
