//! The flow that waits for nothing: every run goes at once, whatever calls are in flight.

use crate::node::flow::{Decision, Load};

const fn send(runs: usize) -> Decision {
    if runs > 0 { Decision::Send(runs) } else { Decision::Wait }
}

pub(super) fn start(load: &Load) -> Decision {
    send(load.due.min(load.free_places).min(load.max_batch))
}

pub(super) fn finish(load: &Load) -> Decision {
    send(load.ended.min(load.max_batch))
}

pub(super) fn claim(load: &Load) -> usize {
    load.max_in_flight.saturating_sub(load.held).min(load.max_batch)
}

/// Half of the spare places: due runs must not wait for a claim.
pub(super) const fn places_of_claim(load: &Load) -> usize {
    if load.overdue { load.free_places.saturating_sub(load.due) / 2 } else { 0 }
}
