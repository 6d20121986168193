//! Wall clocks that jump, forwards or back, and return.

use std::time::Duration;

use mysql_async::prelude::Queryable;

use super::dice::Dice;
use super::field::{Field, Target};
use super::outcome::{Begun, Seen, Struck, comes, last_for, must_come, now_us};
use crate::databases::{Server, blocking};

/// How long it may take until a jump is seen.
const PATIENCE: Duration = Duration::from_secs(30);
const ASK: Duration = Duration::from_secs(5);
/// The most that two readings of a clock may differ by on a busy machine.
const NEAR_MS: i64 = 500;

fn ms(dice: &mut Dice, low: u64, high: u64) -> i64 {
    let size = i64::try_from(dice.between(low, high)).expect("some hours");
    if dice.coin() { size } else { -size }
}

fn is_near(one: Option<i64>, other: i64) -> bool {
    one.is_some_and(|one| (one - other).abs() < NEAR_MS)
}

/// The clock of the database, or of a member, by some seconds.
pub(super) fn of_database(field: &Field, dice: &mut Dice) -> Struck {
    let number = field.hit(dice);
    let server = &field.servers.members()[number];
    let clock = server.clock()?;
    let (was, offset, time) = (field.role(number), ms(dice, 1_500, 8_000), dice.ms(500, 4_000));
    let begun = Begun::on(None);
    clock.put(offset);
    let seen = comes(PATIENCE, || is_near(offset_ms(server), offset));
    let last = offset_ms(server);
    last_for(time);
    clock.put(0);
    must_come(PATIENCE, "the database's clock is right again", || is_near(offset_ms(server), 0))?;
    let evidence = format!("the clock of {was} was put by {offset} ms, and seen by {last:?} ms from the machine's");
    if !seen {
        return Err(evidence);
    }
    Ok(Seen { database_clock_ms: offset, ..begun.seen(evidence) })
}

/// By how much a server's clock is before the machine's.
fn offset_ms(server: &Server) -> Option<i64> {
    let sql = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
    let asking = async { server.try_root().await.ok()?.query_first::<i64, _>(sql).await.ok()? };
    let theirs_us = blocking(async { tokio::time::timeout(ASK, asking).await.ok()? })?;
    Some((theirs_us - i64::try_from(now_us()).ok()?) / 1_000)
}

/// The wall clock of a node, by minutes or hours.
pub(super) fn of_node(target: &Target, dice: &mut Dice) -> Struck {
    let clock = target.clock.as_ref().map_err(Clone::clone)?;
    let minute_ms = 60_000;
    let offset =
        if dice.coin() { ms(dice, minute_ms, 10 * minute_ms) } else { ms(dice, 60 * minute_ms, 300 * minute_ms) };
    must_come(PATIENCE, "the node reports an offset", || reported_ms(target).is_some())?;
    let right = reported_ms(target).unwrap_or_default();
    let begun = Begun::on(Some(target.name()));
    clock.put(offset);
    // Whichever way the node counts.
    let is_moved = |by: i64| reported_ms(target).is_some_and(|now| ((now - right).abs() - by.abs()).abs() < NEAR_MS);
    let seen = comes(PATIENCE, || is_moved(offset));
    let last = reported_ms(target);
    last_for(dice.ms(200, 3_000));
    clock.put(0);
    must_come(PATIENCE, "the node's clock is right again", || is_moved(0))?;
    let evidence = format!("its clock was put by {offset} ms; its offset was {right} ms before and {last:?} ms then");
    if seen { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

/// How far a node says it is from the database's clock.
fn reported_ms(target: &Target) -> Option<i64> {
    let (_, said) = target.member.server()?.try_get("/metrics", ASK)?;
    let value = said.lines().find_map(|line| line.strip_prefix("carillon_clock_offset_seconds "))?;
    #[allow(clippy::cast_possible_truncation, reason = "hours in milliseconds")]
    value.parse::<f64>().ok().map(|seconds| (seconds * 1_000.0) as i64)
}
