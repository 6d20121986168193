//! Waiting for the end of a run, for a bounded time.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::surroundings::Surroundings;
use crate::cli::client::Call;
use crate::cli::failure::CommandFailure;

/// The longest wait of one call: clients of the protocol give up after some minutes.
pub(super) const LONGEST_WAIT_SECONDS: u32 = 300;
/// How long to wait between two looks at a run: at first, and at the most.
const FIRST_LOOK: Duration = Duration::from_millis(50);
const SLOWEST_LOOK: Duration = Duration::from_secs(1);
/// How many looks in a row may fail before the waiting is given up: a node may restart meanwhile.
const MOST_FAILURES: u32 = 5;

/// The run with its output, when it has ended or the time is over.
pub(super) fn run(surroundings: &Surroundings, id: &str, seconds: u32) -> Result<Value, CommandFailure> {
    let until = Instant::now() + Duration::from_secs(seconds.into());
    let (mut pause, mut failures) = (FIRST_LOOK, 0);
    loop {
        let looked = surroundings.client.call(Call::get(format!("/v1/runs/{id}")));
        let left = until.saturating_duration_since(Instant::now());
        let over = left.is_zero() || surroundings.given_up.is_cancelled();
        match looked {
            Ok(reply) if over || has_ended(&reply.body) => return Ok(reply.body),
            Ok(_) => failures = 0,
            Err(failure) if over || failures == MOST_FAILURES => return Err(failure),
            Err(_) => failures += 1,
        }
        sleep(pause.min(left));
        pause = (pause * 2).min(SLOWEST_LOOK);
    }
}

/// Whether a run is over.
pub(super) fn has_ended(run: &Value) -> bool {
    !matches!(run["status"].as_str(), Some("waiting" | "running"))
}
