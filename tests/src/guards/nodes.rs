//! Stories of whole nodes.

use std::time::Duration;

use carillon_domain::invariants::Verdict;
use carillon_domain::job::Job;
use carillon_domain::lease::Timing;
use carillon_domain::node::call::CallKind;
use carillon_doubles::Fault;
use carillon_store::MAX_OUTPUT_BYTES;

use super::script::{Script, Slow};
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
    let mut script = Script::with(vec![once("a")]);
    script.store.faults().at("claim", 1, Fault::AnswerLost);
    script.boot();
    script.pass(60);
    script.verdict_at_rest()
}

/// A start whose answer is lost.
pub fn the_answer_to_a_start_is_lost() -> Verdict {
    let mut script = Script::with(vec![once("a")]);
    script.store.faults().at("start", 1, Fault::AnswerLost);
    script.boot();
    script.pass(60);
    script.verdict_at_rest()
}

/// A start that lands after it was settled, and before the next one.
pub fn a_stray_start_lands() -> Verdict {
    let mut script = Script::with(vec![once("a")]);
    let (store, mut starts) = (script.store.clone(), 0);
    script.store.faults().choose(move |call| {
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
    script.boot();
    script.pass(60);
    script.verdict_at_rest()
}

/// A finish that the database refuses once.
pub fn a_finish_is_refused() -> Verdict {
    let mut script = Script::with(vec![once("a")]);
    script.store.faults().at("finish", 1, Fault::Refused);
    script.boot();
    script.pass(60);
    script.verdict_at_rest()
}

/// A node gives back what it has prepared, and the database refuses that once.
pub fn a_reset_is_refused() -> Verdict {
    let mut script = Script::with(vec![once("a")]);
    script.store.faults().at("release", 1, Fault::Refused);
    let leaving = script.boot();
    script.pass(5);
    script.drain(leaving);
    script.pass(20);
    script.boot();
    script.pass(60);
    script.verdict_at_rest()
}

/// The claim is applied and its answer on the way when recovery looks; what it gives back is on its way for longer still.
pub fn recovery_meets_a_claim_on_its_way() -> Verdict {
    let mut script = Script::with(vec![once("a")]);
    script.run_ms = 20_000;
    script.slow.push(Slow { node: 0, call: CallKind::Claim, there: 0, back: 3_000 });
    script.slow.push(Slow { node: 0, call: CallKind::Release, there: 12_000, back: 0 });
    script.boot();
    script.pass(60);
    script.verdict()
}

/// A person writes to the row while the node that drains gives it back.
pub fn a_row_is_written_to_while_it_is_given_back() -> Verdict {
    let mut script = Script::with(vec![once("a")]);
    script.slow.push(Slow { node: 0, call: CallKind::Release, there: 2_000, back: 0 });
    let leaving = script.boot();
    script.pass(5);
    script.drain(leaving);
    script.pass(1);
    script.resume(&key("a"));
    script.pass(4);
    script.boot();
    script.pass(60);
    script.verdict_at_rest()
}

/// Two ends go to the database together, and it refuses the output of one of them.
pub fn one_of_two_outputs_is_refused() -> Verdict {
    let mut script = Script::with(vec![once("quiet"), once("loud")]);
    script.output = |name| if name == "loud" { vec![b'x'; MAX_OUTPUT_BYTES + 1] } else { b"done".to_vec() };
    script.store.faults().at("finish", 1, Fault::Refused);
    script.boot();
    script.pass(60);
    script.verdict_at_rest()
}

/// The first heartbeat is applied at once and its answer comes nine seconds later; no further one goes through.
pub fn the_answer_to_a_heartbeat_takes_long() -> Verdict {
    let mut script = Script::with(many());
    script.run_ms = 100_000;
    script.slow.push(Slow { node: 0, call: CallKind::Heartbeat, there: 0, back: 9_000 });
    let slow = script.boot();
    script.cut_off(slow);
    script.boot_onlooker();
    script.pass(60);
    script.verdict()
}

/// The node can claim and start, and no heartbeat of it is acknowledged.
pub fn no_heartbeat_goes_through() -> Verdict {
    let mut script = Script::with(vec![job("a")]);
    let silent = script.boot();
    script.pass(1);
    script.cut_off(silent);
    script.pass(60);
    script.verdict()
}

/// Nobody is silent.
pub fn two_nodes_live_for_long() -> Verdict {
    let mut script = Script::with(many());
    script.run_ms = 300_000;
    script.boot();
    script.boot();
    script.pass(60);
    script.verdict()
}

/// A node beats, and is cut off right after the database lost that commit. The survivor had not seen this heartbeat: to it
/// the node is silent for longer than it really is. It notices the loss, and a person accepts it soon.
pub fn a_heartbeat_is_lost_that_a_survivor_had_not_seen() -> Verdict {
    let mut script =
        Script::timed(vec![job("a")], Timing { heartbeat: Duration::from_millis(3_500), ..Timing::default() });
    script.run_ms = 300_000;
    let beating = script.boot();
    script.pass(1);
    script.boot_onlooker();
    script.pass(10);
    let backup = script.store.back_up();
    script.pass(3);
    script.store.restore(&backup);
    script.cut_off(beating);
    script.pass(6);
    script.accept();
    script.pass(40);
    script.verdict()
}

/// A run of half a minute whose start is lost with the claim before it.
fn with_a_lost_start(slow: Option<Slow>) -> Script {
    let mut script = Script::with(vec![job("a")]);
    script.run_ms = 45_000;
    script.boot();
    script.pass(1);
    let backup = script.store.back_up();
    script.pass(12);
    script.slow.extend(slow);
    script.go_back(&backup);
    script.pass(6);
    script
}

/// The next firings come due while it runs.
pub fn a_run_lives_whose_start_is_lost() -> Verdict {
    let mut script = with_a_lost_start(None);
    script.accept_in_time();
    script.pass(60);
    script.verdict()
}

/// Its node takes half a minute to write it back.
pub fn a_loss_is_accepted_before_a_node_has_written_back() -> Verdict {
    let mut script = with_a_lost_start(Some(Slow { node: 0, call: CallKind::WriteBack, there: 25_000, back: 0 }));
    script.accept_in_time();
    script.pass(60);
    script.verdict()
}

/// Somebody has configured `expire_after` for a quick takeover.
pub fn others_are_told_to_act_too_soon() -> Verdict {
    let hasty = Timing { expire_after: Duration::from_secs(14), ..Timing::default() };
    if hasty.check().is_err() {
        return Ok(());
    }
    let mut script = Script::timed(vec![job("a")], hasty);
    script.run_ms = 300_000;
    let frozen = script.boot();
    script.pass(11);
    script.boot();
    script.freeze(frozen);
    script.pass(60);
    script.verdict()
}

/// It was under way while its session was ended and swept.
pub fn a_heartbeat_of_a_fenced_node_comes_late() -> Verdict {
    let mut script = Script::with(vec![job("a")]);
    let frozen = script.boot();
    script.pass(10);
    script.slow.push(Slow { node: frozen, call: CallKind::Heartbeat, there: 60_000, back: 0 });
    script.boot();
    script.pass(4);
    script.freeze(frozen);
    script.pass(120);
    script.verdict_in_time(20)
}
