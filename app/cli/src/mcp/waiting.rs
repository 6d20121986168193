//! Waiting for the end of a run, for a bounded time.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::surroundings::Surroundings;
use crate::failure::CommandFailure;
use crate::job::ended;

/// The longest wait of one call: clients of the protocol give up after some minutes.
pub(super) const LONGEST_WAIT_SECONDS: u32 = 300;
const SLOWEST_LOOK: Duration = Duration::from_secs(1);

/// The run with its output, when it has ended, the time is over, or nobody waits any more.
pub(super) fn run(surroundings: &Surroundings, id: &str, seconds: u32) -> Result<Value, CommandFailure> {
    let until = Instant::now() + Duration::from_secs(seconds.into());
    let left = || match surroundings.given_up.is_cancelled() {
        true => Duration::ZERO,
        false => until.saturating_duration_since(Instant::now()),
    };
    ended(&surroundings.client, id, SLOWEST_LOOK, left)
}
