//! Faults of the database's process.

use std::time::{Duration, Instant};

use super::class::Class;
use super::dice::Dice;
use super::field::Field;
use super::outcome::{Begun, Struck, last_for};
use crate::processes::state;

pub(super) fn strike(class: Class, field: &Field, dice: &mut Dice) -> Struck {
    let half_a_lease = u64::try_from(field.timing.self_kill_after.as_millis() / 2).unwrap_or(u64::MAX);
    let number = field.hit(dice);
    // The other members go on, once they agree that it is dead.
    let (away, asleep) =
        if field.kind.is_cluster() { (12_000, 12_000) } else { (1_500, half_a_lease.clamp(200, 5_000)) };
    match class {
        Class::DatabaseKilled => ended(field, number, "killed", dice.ms(0, away)),
        Class::DatabaseRestarted => ended(field, number, "stopped", Duration::ZERO),
        _ => frozen(field, number, dice.ms(200, asleep)),
    }
}

fn ended(field: &Field, number: usize, how: &str, away: Duration) -> Struck {
    let server = &field.servers.members()[number];
    let was = field.role(number);
    let (before, begun, since) = (server.pid(), Begun::on(None), Instant::now());
    if how == "killed" {
        server.kill()
    } else {
        server.stop()
    }
    let after = state(before);
    last_for(away);
    field.servers.start_again(number)?;
    let evidence = format!(
        "process {before} of {was} was {how} and then seen as {after:?}; process {} answers {:?} after the blow",
        server.pid(),
        since.elapsed()
    );
    if after.is_none() && server.pid() != before { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

fn frozen(field: &Field, number: usize, time: Duration) -> Struck {
    let server = &field.servers.members()[number];
    let was = field.role(number);
    let (pid, begun) = (server.pid(), Begun::on(None));
    server.freeze();
    let seen = state(pid);
    last_for(time);
    server.thaw();
    field.is_back(number)?;
    let evidence = format!("process {pid} of {was} was in state {seen:?} for {time:?}");
    if seen == Some('T') { Ok(begun.seen(evidence)) } else { Err(evidence) }
}
