//! A disk of the database that is full for a while.

use std::time::{Duration, Instant};

use super::dice::Dice;
use super::field::Field;
use super::outcome::{Begun, Struck, last_for};
use super::probe::{self, Write};
use crate::databases::Servers;
use crate::processes::state;

/// How long it may take until the server notices.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the server may take to go on by itself: some look for space once a minute. Then it is restarted, as people would.
const RECOVERY: Duration = Duration::from_secs(5);
/// A probe's write: more than what the server has set aside.
const BYTES: usize = 1 << 20;
/// How long a probe waits for an answer.
const WAIT: Duration = Duration::from_secs(2);

pub(super) fn full(field: &Field, dice: &mut Dice) -> Struck {
    let number = match &field.servers {
        // The others take no write of a probe.
        Servers::Group(_) => field.writer().ok_or("no member takes writes")?,
        _ => field.hit(dice),
    };
    let server = &field.servers.members()[number];
    let disk = server.disk()?;
    let (was, pid) = (field.role(number), server.pid());
    let (begun, since) = (Begun::on(None), Instant::now());
    let mut seen = Write::Done;
    while seen == Write::Done && since.elapsed() < PATIENCE {
        disk.fill();
        seen = probe::write(field, server, BYTES, WAIT);
    }
    let until = Instant::now() + dice.ms(200, 2_000);
    while seen != Write::Done && Instant::now() < until {
        disk.fill();
        last_for(Duration::from_millis(50));
    }
    disk.free();
    let back = match probe::works_again(field, server, RECOVERY) {
        Ok(after) => format!("it went on {after:?} after there was space again"),
        Err(last) => {
            let how = format!("a probe's write was still {last:?} (process in state {:?})", state(pid));
            server.kill();
            field.servers.start_again(number)?;
            format!("{how}, so it was restarted")
        }
    };
    let evidence = format!("on the full disk of {was} a probe's write is {seen:?}; {back}");
    if seen == Write::Done { Err(evidence) } else { Ok(begun.seen(evidence)) }
}
