//! Many firings, each due at a moment of its own.

use std::collections::BTreeMap;

use carillon_domain::node::Config;

use super::driver::{Driver, config, prepared, started};

/// A node that holds a firing for each so many milliseconds. Starts are answered at once. How many there are in the third second,
/// and how late the latest run of them starts, in milliseconds.
fn starts_of_third_second(every_ms: u64) -> (usize, u64) {
    let limits = Config { max_in_flight: 10_000, max_executing: 5_000, max_batch: 5_000, ..config() };
    let mut driver = Driver::new(limits);
    let runs = driver.claim();
    let due = runs.iter().zip(1..).map(|(run, n): (_, u64)| (*run, n * every_ms)).filter(|(_, due)| *due <= 3_000);
    let claimed: BTreeMap<_, _> =
        due.map(|(run, due)| (run, (prepared(run, run.parts().1, due as i64), due))).collect();
    driver.claimed(Ok(claimed.values().map(|(one, _)| one.clone()).collect()));
    let (mut count, mut latest, mut begun) = (0, 0, 0);
    for ms in 1..=3_100 {
        driver.tick(ms);
        let starts = driver.starts();
        begun += starts.len();
        let waits = claimed.values().filter(|(_, due)| *due <= ms).count() > begun;
        assert!(!waits || driver.node.next_wake().as_ms() <= ms + 33, "it does not come back for what waits");
        if starts.is_empty() {
            continue;
        }
        if (2_001..=3_000).contains(&ms) {
            count += 1;
            latest = starts.iter().map(|at| ms - claimed[&at.run].1).max().unwrap_or(0).max(latest);
        }
        driver.answer_start(Ok(starts.iter().map(|at| started(&claimed[&at.run].0)).collect()));
    }
    assert_eq!(begun, claimed.len(), "all have started");
    (count, latest)
}

#[test]
pub fn few_firings_wait_for_nobody_and_many_share_their_starts() {
    assert_eq!([starts_of_third_second(100), starts_of_third_second(10)], [(10, 0), (100, 0)]);
    let (starts, latest) = starts_of_third_second(1);
    assert!(starts <= 32 && latest <= 33, "{starts} starts, {latest} ms late");
}
