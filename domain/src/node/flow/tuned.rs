//! The flow of a server: calls wait for others as long as nobody needs them sooner.
//!
//! While a call is in flight the node collects the work for the next one, so a busy node sends few large batches. If many runs wait, a
//! second call of the kind goes out too: the database works while the node takes in an answer.

use crate::mechanism::{Mechanism, enabled as uses};
use crate::node::flow::linger::Linger;
use crate::node::flow::start_priority::StartPriority;
use crate::node::flow::start_rate::StartRate;
use crate::node::flow::{Decision, Load};
use crate::time::BootTime;

/// So many runs are worth a call of their own while another is in flight.
pub(super) const ENOUGH: usize = 250;
/// The most claims, starts and finishes in flight together. More only get in each other's way.
const BUSY: usize = 3;
/// The most calls in flight of one kind.
const WINDOW: usize = 2;
/// A start takes one of so many parts of the due runs, so that the first begin while the others are being written.
const PARTS: usize = 4;
/// The most runs that one finish records. A pause of one of their jobs waits for the commit, which takes two to three times as long for
/// twice as many.
const TOGETHER: usize = 500;

/// The memory of the tuned flow.
#[derive(Debug, Default, Clone, Hash)]
pub(in crate::node) struct Tuned {
    pub linger: Linger,
    pub rate: StartRate,
    priority: StartPriority,
}

impl Tuned {
    pub fn start(&mut self, load: &Load) -> Decision {
        if load.due == 0 || !fits_window(load, load.starts, load.due) {
            return Decision::Wait;
        }
        if uses(Mechanism::StartRate)
            && let Some(until) = self.rate.wait(load.due, load.now)
        {
            return Decision::WaitUntil(until);
        }
        // If claims or finishes keep the database busy, the start takes all that fit.
        let nothing_else = load.claims == 0 && load.finishes == 0;
        let part = if nothing_else { load.due.div_ceil(PARTS).max(ENOUGH) } else { load.due };
        match load.free_places.min(part).min(load.max_batch) {
            0 => Decision::Wait,
            runs => Decision::Send(runs),
        }
    }

    pub fn finish(&mut self, load: &Load) -> Decision {
        if load.ended == 0 || !fits_window(load, load.finishes, load.ended) {
            return Decision::Wait;
        }
        if let Some(until) = self.starts_go_first(load) {
            return Decision::WaitUntil(until);
        }
        let together = TOGETHER.min(load.max_batch);
        // A drain waits for nothing, and a full batch gains nothing by waiting.
        let lingers = uses(Mechanism::Linger) && !load.drains && load.ended < together;
        match self.linger.wait(load).filter(|_| lingers) {
            Some(until) => Decision::WaitUntil(until),
            None => Decision::Send(together),
        }
    }

    /// Until when starts go before all that can wait, if they do.
    pub fn starts_go_first(&mut self, load: &Load) -> Option<BootTime> {
        if !uses(Mechanism::StartPriority) {
            return None;
        }
        let waits_for_others = uses(Mechanism::StartRate) && self.rate.wait(load.due, load.now).is_some();
        self.priority.until(load, load.due > 0 && !waits_for_others)
    }
}

/// Whether `waiting` runs are worth a call while `in_flight` calls of the kind are in flight.
fn fits_window(load: &Load, in_flight: usize, waiting: usize) -> bool {
    let window = if uses(Mechanism::InFlightWindow) { WINDOW } else { 1 };
    let calls = load.claims + load.starts + load.finishes;
    in_flight == 0 || in_flight < window && waiting >= ENOUGH.min(load.max_batch) && calls < BUSY
}

/// Alone, a node takes all that it can hold. Among others it leaves them the firings that it could not start soon. It takes fewer at once
/// the more it holds, so that firings of one due time spread.
pub(super) fn claim(load: &Load) -> usize {
    let free = load.max_in_flight.saturating_sub(load.held);
    if load.is_alone {
        return free.min(load.max_batch);
    }
    let share = (load.max_batch * free).div_ceil(load.max_in_flight.max(1));
    share.min(free).min(room_to_start(load))
}

/// How many more may fall due before they queue for too long: a quarter of `max_executing` may wait. None until half of that quarter
/// has gone, so a busy node claims in batches and not one by one.
fn room_to_start(load: &Load) -> usize {
    let queue = (load.max_executing / 4).max(1);
    let taken = load.executing + load.starting + load.due;
    let room = (load.max_executing + queue).saturating_sub(taken);
    if room >= queue.div_ceil(2) { room } else { 0 }
}

/// None if no row is overdue, none that due runs wait for, and a quarter is left for runs that fall due before the answer.
pub(super) fn places_of_claim(load: &Load) -> usize {
    let spare = load.free_places.saturating_sub(load.due);
    if load.overdue && uses(Mechanism::ClaimAndStart) { spare - spare.div_ceil(4) } else { 0 }
}

/// A full node leaves the next firings to a claim, which takes them in the order of their due times.
pub(super) fn claims_successors(load: &Load) -> bool {
    uses(Mechanism::SuccessorClaim) && claim(load) > 0
}

/// The successor takes the place of the run that ended, unless due runs are short of places.
pub(super) fn starts_successors(load: &Load) -> bool {
    uses(Mechanism::ClaimAndStart) && load.free_places >= load.due.min(load.max_batch)
}
