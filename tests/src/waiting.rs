//! Waiting for what happens outside this process and tells nobody: looking again and again.

use std::time::{Duration, Instant};

use crate::server::PATIENCE;

/// Waits until `look` finds something; panics when it does not.
#[track_caller]
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_for_within(PATIENCE, what, look)
}

/// Waits for a condition; panics when it does not come.
#[track_caller]
pub fn wait_until(what: &str, condition: impl FnMut() -> bool) {
    wait_until_within(PATIENCE, what, condition);
}

/// As [`wait_until`], with another patience.
#[track_caller]
pub fn wait_until_within(patience: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    wait_for_within(patience, what, || condition().then_some(()));
}

/// As [`wait_for`], with another patience.
#[track_caller]
pub fn wait_for_within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {patience:?} in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}
