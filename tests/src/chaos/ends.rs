//! Faults of the database's process.

use std::time::{Duration, Instant};

use super::class::Class;
use super::dice::Dice;
use super::field::Field;
use super::outcome::{Begun, Counters, last_for};
use crate::processes::state;

pub(super) fn strike(class: Class, field: &Field, dice: &mut Dice) -> Counters {
    let half_a_lease = u64::try_from(field.timing.self_kill_after.as_millis() / 2).unwrap_or(u64::MAX);
    match class {
        Class::DatabaseKilled => ended(field, "killed", dice.ms(0, 1_500)),
        Class::DatabaseRestarted => ended(field, "stopped", Duration::ZERO),
        _ => frozen(field, dice.ms(200, half_a_lease.clamp(200, 5_000))),
    }
}

fn ended(field: &Field, how: &str, away: Duration) -> Counters {
    let server = &field.server;
    let (before, begun, since) = (server.pid(), Begun::on(None), Instant::now());
    if how == "killed" {
        server.kill()
    } else {
        server.stop()
    }
    let after = state(before);
    last_for(away);
    server.start_again();
    let evidence = format!(
        "process {before} was {how} and then seen as {after:?}; process {} answers {:?} after the blow",
        server.pid(),
        since.elapsed()
    );
    if after.is_none() && server.pid() != before { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

fn frozen(field: &Field, time: Duration) -> Counters {
    let (pid, begun) = (field.server.pid(), Begun::on(None));
    field.server.freeze();
    let seen = state(pid);
    last_for(time);
    field.server.thaw();
    let evidence = format!("process {pid} was in state {seen:?} for {time:?}");
    if seen == Some('T') { Ok(begun.seen(evidence)) } else { Err(evidence) }
}
