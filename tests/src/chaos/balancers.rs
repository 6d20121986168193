//! A balancer that leads each connection elsewhere. A node behind it has to notice, and must neither take what one member has not applied
//! yet for lost nor use several members at a time.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::dice::Dice;
use super::field::{Field, Target};
use super::outcome::{Begun, Struck, last_for, must_come};

/// How long the node may take to be ready behind a balancer that leads to one member.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) fn rotates(field: &Field, target: &Target, dice: &mut Dice) -> Struck {
    let (time, starts_anew) = (dice.ms(2_000, 10_000), dice.coin());
    let begun = Begun::on(Some(target.name()));
    let turned = target.wires.turn(|| {
        let server = target.member.server().filter(|_| starts_anew);
        let killed = server.is_some_and(|server| super::nodes::send(server.pid(), Signal::SIGKILL).is_ok());
        last_for(time);
        let (uses, is_ready) = (field.server_of(target), target.member.is_ready());
        (killed, uses, is_ready)
    });
    let ((killed, uses, was_ready), led) = turned.ok_or_else(|| format!("{} has no balancer", target.name()))?;
    must_come(PATIENCE, "the node is ready behind one member", || target.member.is_ready())?;
    let evidence = format!(
        "for {time:?} its balancer led {led:?} connections to the members; the node {}; then it used {uses:?} and was {}ready",
        if killed { "was killed, to start there" } else { "ran" },
        if was_ready { "" } else { "not " },
    );
    if led.iter().filter(|led| **led > 0).count() > 1 { Ok(begun.seen(evidence)) } else { Err(evidence) }
}
