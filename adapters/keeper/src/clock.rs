//! The one clock of a lease: CLOCK_BOOTTIME, which goes on while the machine sleeps and which nobody can set.

use nix::time::{ClockId, clock_gettime};

/// Milliseconds on CLOCK_BOOTTIME.
///
/// The node computes its lease deadline on this clock, the keeper enforces it (DESIGN section 5). If the clock could not
/// be read the answer is `u64::MAX / 1000`: every deadline has passed, which is the safe side.
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
