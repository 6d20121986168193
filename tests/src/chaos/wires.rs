//! Faults of the wire between a node and the database.

use std::time::Duration;

use super::class::Class;
use super::dice::Dice;
use super::field::Target;
use super::outcome::{Begun, Struck, comes, last_for};
use super::wire::{Aim, Flow, Snare};

/// How long a statement of the kind may take to come by.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sets a trap for one statement and tells what became of it.
pub(super) fn snare(class: Class, target: &Target, dice: &mut Dice) -> Struck {
    let aim = *dice.pick(&Aim::ALL);
    let snare = match class {
        Class::WireCutBefore => Snare::CutBefore,
        Class::WireCutAfter => Snare::CutAfter,
        Class::WireHalfPacket => Snare::HalfPacket,
        // Statements may take 5 s: a node that waits for longer hangs up.
        Class::WireHeld => Snare::Held(dice.ms(200, 4_000)),
        _ => match dice.between(0, 2) {
            // Before the node has had the server end the connection, or after it.
            0 => Snare::HeldClientGone(dice.ms(1, 30)),
            1 => Snare::HeldClientGone(dice.ms(500, 3_000)),
            _ => Snare::HeldBeyondReach(dice.ms(500, 3_000)),
        },
    };
    let begun = Begun::on(Some(target.name()));
    let caught = target.wires.set(snare, aim).recv_timeout(PATIENCE);
    target.wires.disarm();
    target.wires.let_pass(Flow::OPEN);
    let caught = caught.map_err(|_| format!("no {aim:?} came by within {PATIENCE:?}"))?;
    let evidence = format!("{snare:?} of {:?}: {caught:?}", aim);
    let is_seen = match snare {
        Snare::CutAfter | Snare::Held(_) => caught.answer.as_ref().is_some_and(super::wire::Answer::is_done),
        _ => true,
    };
    if is_seen { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

/// Lets nothing pass for a while, in one direction or in both.
pub(super) fn close(class: Class, target: &Target, dice: &mut Dice) -> Struck {
    let (flow, what) = match (class, dice.coin()) {
        (Class::WireBlackHole, _) => (Flow::CLOSED, "both ways"),
        (_, true) => (Flow { to_server: true, to_node: false }, "from the server"),
        (_, false) => (Flow { to_server: false, to_node: true }, "to the server"),
    };
    let (time, before) = (dice.ms(500, 4_000), target.wires.stopped());
    let begun = Begun::on(Some(target.name()));
    target.wires.let_pass(flow);
    last_for(time);
    comes(PATIENCE, || target.wires.stopped() > before);
    let stopped = target.wires.stopped() - before;
    target.wires.let_pass(Flow::OPEN);
    if stopped == 0 {
        return Err(format!("nothing came by within {:?}", time + PATIENCE));
    }
    Ok(begun.seen(format!("closed {what} for at least {time:?}: {stopped} packets or connections were stopped")))
}
