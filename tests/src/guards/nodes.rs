//! Stories of whole nodes.

use std::time::Duration;

use carillon_domain::invariants::Verdict;
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::call::CallKind;
use carillon_doubles::Fault;
use carillon_store::MAX_OUTPUT_BYTES;

use super::world::{Slow, World};
use crate::conformance::fixture::{at, job, key};

/// A job that is due once, ten seconds from the beginning.
fn once(name: &str) -> Job {
    Job { end_at: Some(at(15)), ..job(name) }
}

/// Jobs that are due every ten seconds, some in each partition.
fn many() -> Vec<Job> {
    ["a", "b", "c", "d", "e", "f", "g", "h"].map(job).into()
}

/// A claim whose answer is lost.
pub fn a_claim_was_applied_and_forgotten() -> Verdict {
    let mut world = World::with(vec![once("a")]);
    world.store.faults().at("claim", 1, Fault::AnswerLost);
    world.boot();
    world.pass(60);
    world.verdict_at_rest()
}

/// A start whose answer is lost.
pub fn the_answer_to_a_start_is_lost() -> Verdict {
    let mut world = World::with(vec![once("a")]);
    world.store.faults().at("start", 1, Fault::AnswerLost);
    world.boot();
    world.pass(60);
    world.verdict_at_rest()
}

/// A start that lands after it was settled, and before the next one.
pub fn a_stray_start_lands() -> Verdict {
    let mut world = World::with(vec![once("a")]);
    let (store, mut starts) = (world.store.clone(), 0);
    world.store.faults().choose(move |call| {
        starts += usize::from(call == "start");
        match (call, starts) {
            ("start", 1) => Some(Fault::Stray),
            ("start", 2) => {
                store.land_stray();
                None
            }
            _ => None,
        }
    });
    world.boot();
    world.pass(60);
    world.verdict_at_rest()
}

/// A finish that the database refuses once.
pub fn a_finish_is_refused() -> Verdict {
    let mut world = World::with(vec![once("a")]);
    world.store.faults().at("finish", 1, Fault::Refused);
    world.boot();
    world.pass(60);
    world.verdict_at_rest()
}

/// A node gives back what it has prepared, and the database refuses that once.
pub fn a_reset_is_refused() -> Verdict {
    let mut world = World::with(vec![once("a")]);
    world.store.faults().at("release", 1, Fault::Refused);
    let leaving = world.boot();
    world.pass(5);
    world.drain(leaving);
    world.pass(20);
    world.boot();
    world.pass(60);
    world.verdict_at_rest()
}

/// The claim is applied and its answer on the way when recovery looks; what it gives back is on its way for longer still.
pub fn recovery_meets_a_claim_on_its_way() -> Verdict {
    let mut world = World::with(vec![once("a")]);
    world.run_ms = 20_000;
    world.slow.push(Slow { node: 0, call: CallKind::Claim, there: 0, back: 3_000 });
    world.slow.push(Slow { node: 0, call: CallKind::Release, there: 12_000, back: 0 });
    world.boot();
    world.pass(60);
    world.verdict()
}

/// A person writes to the row while the node that drains gives it back.
pub fn a_row_is_written_to_while_it_is_given_back() -> Verdict {
    let mut world = World::with(vec![once("a")]);
    world.slow.push(Slow { node: 0, call: CallKind::Release, there: 2_000, back: 0 });
    let leaving = world.boot();
    world.pass(5);
    world.drain(leaving);
    world.pass(1);
    world.resume(&key("a"));
    world.pass(4);
    world.boot();
    world.pass(60);
    world.verdict_at_rest()
}

/// Two ends go to the database together, and it refuses the output of one of them.
pub fn one_of_two_outputs_is_refused() -> Verdict {
    let mut world = World::with(vec![once("quiet"), once("loud")]);
    world.output = |name| if name == "loud" { vec![b'x'; MAX_OUTPUT_BYTES + 1] } else { b"done".to_vec() };
    world.store.faults().at("finish", 1, Fault::Refused);
    world.boot();
    world.pass(60);
    world.verdict_at_rest()
}

/// The first heartbeat is applied at once and its answer comes nine seconds later; no further one goes through.
pub fn the_answer_to_a_heartbeat_takes_long() -> Verdict {
    let mut world = World::with(many());
    world.run_ms = 100_000;
    world.slow.push(Slow { node: 0, call: CallKind::Heartbeat, there: 0, back: 9_000 });
    let slow = world.boot();
    world.cut_off(slow);
    world.boot_onlooker();
    world.pass(60);
    world.verdict()
}

/// The node can claim and start, and no heartbeat of it is acknowledged.
pub fn no_heartbeat_goes_through() -> Verdict {
    let mut world = World::with(vec![job("a")]);
    let silent = world.boot();
    world.pass(1);
    world.cut_off(silent);
    world.pass(60);
    world.verdict()
}

/// Nobody is silent.
pub fn two_nodes_live_for_long() -> Verdict {
    let mut world = World::with(many());
    world.run_ms = 300_000;
    world.boot();
    world.boot();
    world.pass(60);
    world.verdict()
}

/// A node beats, and is cut off right after the database lost that commit. The survivor had not seen this heartbeat: to it
/// the node is silent for longer than it really is. It notices the loss, and a person accepts it soon.
pub fn a_heartbeat_is_lost_that_a_survivor_had_not_seen() -> Verdict {
    let mut world =
        World::timed(vec![job("a")], Timing { heartbeat: Duration::from_millis(3_500), ..Timing::default() });
    world.run_ms = 300_000;
    let beating = world.boot();
    world.pass(1);
    world.boot_onlooker();
    world.pass(10);
    let backup = world.store.back_up();
    world.pass(3);
    world.store.restore(&backup);
    world.cut_off(beating);
    world.pass(6);
    world.accept();
    world.pass(40);
    world.verdict()
}

/// Somebody has configured `expire_after` for a quick takeover.
pub fn others_are_told_to_act_too_soon() -> Verdict {
    let hasty = Timing { expire_after: Duration::from_secs(14), ..Timing::default() };
    if hasty.check().is_err() {
        return Ok(());
    }
    let mut world = World::timed(vec![job("a")], hasty);
    world.run_ms = 300_000;
    let frozen = world.boot();
    world.pass(11);
    world.boot();
    world.freeze(frozen);
    world.pass(60);
    world.verdict()
}

/// It was under way while its session was ended and swept.
pub fn a_heartbeat_of_a_fenced_node_comes_late() -> Verdict {
    let mut world = World::with(vec![job("a")]);
    let frozen = world.boot();
    world.pass(10);
    world.slow.push(Slow { node: frozen, call: CallKind::Heartbeat, there: 60_000, back: 0 });
    world.boot();
    world.pass(4);
    world.freeze(frozen);
    world.pass(120);
    world.verdict_in_time(20)
}
