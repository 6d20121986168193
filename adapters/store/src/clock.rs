//! Time for the stores that run inside the process.
//!
//! A database server has a clock of its own. The memory and SQLite stores are given one, so tests and the simulator decide the
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carillon_domain::time::Timestamp;

/// Tells the time in UTC.
pub trait Clock: Send + Sync + 'static {
    /// Microseconds since the Unix epoch.
    fn now_us(&self) -> i64;

    /// The same in the milliseconds that the domain counts in.
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us().div_euclid(1000))
    }
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_us(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |past| i64::try_from(past.as_micros()).unwrap_or(i64::MAX))
    }
}

/// A clock that moves only when it is told to. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `at`.
    pub fn at(at: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(at.as_ms().saturating_mul(1000))))
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets it.
    pub fn set(&self, at: Timestamp) {
        self.0.store(at.as_ms().saturating_mul(1000), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Microseconds on CLOCK_BOOTTIME, which goes on while the machine sleeps and cannot be set. `u64::MAX` if it could not be
/// read.
pub(crate) fn boottime_us() -> u64 {
    let Ok(now) = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME) else { return u64::MAX };
    let secs = u64::try_from(now.tv_sec()).unwrap_or(u64::MAX);
    let us = u64::try_from(now.tv_nsec()).unwrap_or(0) / 1000;
    secs.saturating_mul(1_000_000).saturating_add(us)
}
