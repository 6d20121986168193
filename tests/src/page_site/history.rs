//! A month of history, written into the database of a server that is stopped: nobody waits a month for a picture.

use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use super::crontab::{Entry, JOBS};
use crate::chaos::now_us;

const MINUTE_MS: i64 = 60_000;
/// How far back it goes.
const PAST_MS: i64 = 30 * 24 * 60 * MINUTE_MS;
/// The most runs of one job.
const MOST: i64 = 900;

/// Writes the runs of every job.
///
/// # Panics
/// Where the database is not there, or is in use.
pub(super) fn write(database: &Path) {
    let mut connection = Connection::open(database).expect("the database");
    let rows = connection.transaction().expect("nobody else writes");
    let now_ms = i64::try_from(now_us() / 1_000).expect("a time of this age");
    let mut dice = Dice(0x5eed);
    for job in &JOBS {
        let id: i64 = rows
            .query_row("SELECT id FROM job WHERE name = ?1", [job.name], |row| row.get(0))
            .expect("the job was created before");
        let period_ms = job.every_min * MINUTE_MS;
        let newest_ms = now_ms - now_ms.rem_euclid(period_ms);
        for back in (0..MOST.min(PAST_MS / period_ms)).rev() {
            run(&rows, job, id, newest_ms - back * period_ms, &mut dice);
        }
    }
    rows.commit().expect("committed");
}

fn run(rows: &Transaction<'_>, job: &Entry, id: i64, due_ms: i64, dice: &mut Dice) {
    let lag_ms = 2 + dice.below(40);
    let started_ms = due_ms + lag_ms;
    let takes_ms = job.usual_ms * (80 + dice.below(45)) / 100;
    let now_ms = i64::try_from(now_us() / 1_000).expect("a time of this age");
    let finished_ms = (started_ms + takes_ms).min(now_ms - 1_000).max(started_ms);
    let (cpu_ms, peak_kib) = (takes_ms * 7 / 10, 20_000 + takes_ms % 50_000);
    let fails = job.fails_one_of > 0 && dice.next().is_multiple_of(job.fails_one_of);
    let (status, exit_code) = if fails { ("failed", 1) } else { ("succeeded", 0) };
    let run_id: Vec<u8> = [dice.next() >> 1, dice.next()].iter().flat_map(|half| half.to_be_bytes()).collect();
    rows.execute(
        "INSERT INTO run (id, job_id, due_at, trigger, attempt, status, exit_code, started_at, finished_at, lag_ms, node, \
         fencing_token, count, first_due_at, prepared_ms, cpu_ms, peak_memory_kib) \
         VALUES (?1, ?2, ?3, 'schedule', 1, ?4, ?5, ?6, ?7, ?8, 'bell-1', 1, 1, ?3, ?9, ?10, ?11)",
        params![run_id, id, due_ms, status, exit_code, started_ms, finished_ms, lag_ms, 20_000 + lag_ms, cpu_ms, peak_kib],
    )
    .expect("a run of the past");
}

/// The same numbers each time, so that pictures change only where the page does. (xorshift64, Marsaglia 2003)
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> i64 {
        i64::try_from(self.next() % end).expect("a small number")
    }
}
