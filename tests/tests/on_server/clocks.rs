//! A clock that tests move, under a server that must not feel it otherwise.

use std::time::{Duration, Instant};

use carillon_tests::databases::{Server, Surroundings};
use carillon_tests::processes::cpu_seconds;
use carillon_tests::waiting::wait_until_within;

/// How long it is looked at.
const LOOKS_FOR: Duration = Duration::from_secs(3);
/// An idle server takes a hundredth of a core. One whose waits end at once takes as much as it gets.
const IDLE: f64 = 0.3;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_clock_can_be_moved_is_idle_where_nobody_asks_it() {
    let server = Server::start_in(crate::BRAND, Surroundings { clock: true, ..Surroundings::default() }, &[]);
    if let Err(why) = server.clock() {
        return carillon_tests::skipped::tell(&format!("the cost of a clock that can be moved: {why}"));
    }
    let used = || {
        let (before, begun) = (cpu_seconds(server.pid()), Instant::now());
        wait_until_within(LOOKS_FOR * 2, "the time passes", || begun.elapsed() >= LOOKS_FOR);
        (cpu_seconds(server.pid()) - before) / begun.elapsed().as_secs_f64()
    };
    // Right after its start it has things to do.
    let mut shares = vec![used()];
    while shares.last().is_some_and(|share| *share > IDLE) && shares.len() < 5 {
        shares.push(used());
    }
    assert!(shares.last().is_some_and(|share| *share <= IDLE), "of a core it took {shares:?}");
}
