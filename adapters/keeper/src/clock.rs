//! The clock of a lease: CLOCK_BOOTTIME. It advances while the machine sleeps, and cannot be set.

use nix::time::{ClockId, clock_gettime};

/// Milliseconds on CLOCK_BOOTTIME.
///
/// The node computes its lease deadline on this clock, and the keeper enforces it. If the clock cannot be read, the
/// answer is `u64::MAX / 1000`. Every deadline has passed then, which is the safe side.
pub fn boottime_ms() -> u64 {
    boottime_us() / 1000
}

/// The same in microseconds; `u64::MAX` if the clock could not be read.
pub fn boottime_us() -> u64 {
    let Ok(now) = clock_gettime(ClockId::CLOCK_BOOTTIME) else { return u64::MAX };
    let secs = u64::try_from(now.tv_sec()).unwrap_or(u64::MAX);
    let us = u64::try_from(now.tv_nsec()).unwrap_or(0) / 1000;
    secs.saturating_mul(1_000_000).saturating_add(us)
}
