//! Measures how fast schedules are parsed and queried on one core: `cargo run --release --example schedule_speed`.
//!
//! Each figure is the best of several rounds, because other programs share the machine.

#![allow(clippy::disallowed_methods)] // A stopwatch needs a clock.

use std::hint::black_box;
use std::time::{Duration, Instant};

use carillon_domain::schedule::{Options, Schedule, Timeline};
use carillon_domain::time::Timestamp;

const SCHEDULES: [(&str, &str); 18] = [
    ("every minute", "* * * * *"),
    ("every 5 minutes", "*/5 * * * *"),
    ("hourly", "@hourly"),
    ("daily", "0 3 * * *"),
    ("daily, Berlin", "CRON_TZ=Europe/Berlin 30 2 * * *"),
    ("every minute, New York", "CRON_TZ=America/New_York * * * * *"),
    ("office hours, New York", "CRON_TZ=America/New_York */15 9-17 * * MON-FRI"),
    ("weekly", "0 0 * * 0"),
    ("monthly", "@monthly"),
    ("yearly", "@yearly"),
    ("13th or Friday", "0 12 13 * FRI"),
    ("last day", "0 0 L * *"),
    ("last workday, near the 15th", "0 0 LW,15W * *"),
    ("third Friday", "0 0 * * FRI#3"),
    ("29 February", "0 0 29 2 *"),
    ("every second", "* * * * * *"),
    ("lists, six fields", "5,35 1-59/7,3 */2,9 1,15,L JAN-JUN MON-FRI"),
    ("@every 90s", "@every 90s"),
];

fn main() {
    let begin = Instant::now();
    let first = Schedule::parse("TZ=Asia/Tehran @daily", &Options::default()).map(|s| s.next_after(Timestamp::EPOCH));
    black_box(first.is_ok());
    println!("first due time in a zone: {:.2} ms, once per process and zone", begin.elapsed().as_secs_f64() * 1e3);
    println!("{:28} {:>12} {:>12} {:>12} {:>14}", "schedule", "next/s", "previous/s", "parse us", "count 10 y us");
    let mut total = 0.0;
    const CALLS: u32 = 200_000;
    for (name, text) in SCHEDULES {
        let start = Timestamp::parse_rfc3339("2026-03-01T00:00:00Z").unwrap_or_default();
        let options = Options { hash_key: "default/job", ..Options::default() };
        let Ok(schedule) = Schedule::parse(text, &options) else { continue };
        let timeline = Timeline::new(schedule, start);
        let last = timeline.next_after(start).unwrap_or_default();

        // Restart from the first instant regularly, so that sparse schedules do not reach the year 9999.
        let next = best(CALLS, |n, due| {
            let due = if n % 256 == 0 { start } else { due };
            timeline.next_after(due).unwrap_or(start)
        });
        let previous = best(CALLS, |n, due| {
            let due = if n % 16 == 0 { last } else { due };
            timeline.last_until(due - Timestamp::TICK).unwrap_or(last)
        });
        let parse = best(2_000, |_, due| {
            black_box(Schedule::parse(black_box(text), &options).is_ok());
            due
        });
        let count = best(200, |_, due| {
            black_box(timeline.count(start, start + Duration::from_secs(10 * 31_556_952)));
            due
        });
        total += next;
        println!("{name:28} {:>12.0} {:>12.0} {:>12.2} {:>14.2}", 1.0 / next, 1.0 / previous, parse * 1e6, count * 1e6,);
    }
    println!("{:28} {:>12.0}", "average of all kinds", SCHEDULES.len() as f64 / total);
}

/// The seconds that one call takes, in the best of five rounds of `calls`.
fn best(calls: u32, mut call: impl FnMut(u32, Timestamp) -> Timestamp) -> f64 {
    let round = |_| {
        let begin = Instant::now();
        let mut due = Timestamp::EPOCH;
        for n in 0..calls {
            due = call(n, due);
        }
        black_box(due);
        begin.elapsed()
    };
    (0..5).map(round).min().unwrap_or_default().as_secs_f64() / f64::from(calls)
}
