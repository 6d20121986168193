//! Waking: never late, never busy, whatever the clocks do.

use carillon_domain::node::call::Call;
use carillon_domain::node::call::CallFailure;
use carillon_domain::node::port::StartAnswer;
use carillon_domain::node::{Effect, Input};
use carillon_domain::time::BootTime;

use super::driver::{Driver, UTC0_MS, me, peer, prepared, timed, utc};

/// Ticks at each wake for `ms` with nothing answered; no wake may come twice.
fn idles(driver: &mut Driver, ms: u64) {
    let end = driver.now.as_ms() + ms;
    let mut wakes = 0;
    while driver.node.next_wake().as_ms() <= end {
        let wake = driver.node.next_wake();
        driver.tick(wake.as_ms().max(driver.now.as_ms()));
        let next = driver.node.next_wake();
        assert!(next > driver.now, "woken at {wake:?}, and again at {next:?}");
        wakes += 1;
        assert!(wakes < 200, "a busy loop");
    }
}

#[test]
pub fn a_node_whose_store_never_answers_sleeps() {
    let mut driver = Driver::new(timed());
    idles(&mut driver, 11_900);
}

#[test]
pub fn a_heartbeat_on_its_way_wakes_nobody_where_the_lease_is_a_file() {
    let mut driver = Driver::new(carillon_domain::node::Config { self_kill: false, ..timed() });
    idles(&mut driver, 60_000);
}

#[test]
pub fn a_failure_that_leaves_nothing_to_ask_again_wakes_nobody_for_ever() {
    let mut start = Driver::new(timed());
    start.prepare(0);
    start.answer_start(Err(CallFailure::Unknown));
    start.settled(Ok(vec![carillon_domain::node::port::SettleAnswer::Gone]));
    idles(&mut start, 11_000);

    let mut claim = Driver::new(timed());
    claim.claim();
    claim.claimed(Err(CallFailure::RolledBack));
    claim.feed(Input::Drain);
    idles(&mut claim, 11_000);

    let mut recovery = Driver::new(timed());
    recovery.tick(10_000);
    recovery.held(Err(CallFailure::RolledBack));
    idles(&mut recovery, 1_900);
}

#[test]
pub fn a_failed_recovery_is_tried_again_after_its_backoff() {
    let mut driver = Driver::new(timed());
    driver.tick(10_000);
    driver.take();
    driver.held(Err(CallFailure::Unknown));
    assert!(driver.node.next_wake() <= BootTime::from_ms(10_050));
    driver.tick(10_050);
    assert!(driver.take().iter().any(|effect| matches!(effect, Effect::Call { call: Call::ListHeld { .. }, .. })));
}

#[test]
pub fn a_clock_that_was_set_back_neither_starts_early_nor_hammers_the_store() {
    let mut driver = Driver::new(timed());
    driver.tick(1_000);
    for beat in 1..=4u64 {
        driver.tick(1_000 + 3_000 * beat);
        driver.beat_with(vec![peer(me(), beat)], UTC0_MS - 3_600_000 + 3_000 * beat as i64);
    }
    driver.take();
    let now = driver.now.as_ms();
    let run = driver.claim()[0];
    // Due 5 s from now by the clock that was set back.
    let due_ms = driver.node.utc(driver.now).as_ms() - UTC0_MS + 5_000;
    let claimed = prepared(run, 1, due_ms);
    driver.claimed(Ok(vec![claimed.clone()]));
    driver.tick(now + 4_999);
    assert!(driver.starts().is_empty(), "not early");
    assert!(driver.node.next_wake() <= BootTime::from_ms(now + 5_000));
    driver.tick(now + 5_000);
    assert_eq!(driver.starts(), [claimed.at]);
}

#[test]
pub fn a_clock_that_was_set_forward_makes_a_prepared_run_due() {
    let mut driver = Driver::new(timed());
    let claimed = driver.prepare(25_000);
    driver.tick(3_000);
    driver.beat_with(vec![peer(me(), 2)], UTC0_MS + 3_000 + 22_000);
    assert_eq!(driver.starts(), [claimed.at]);
    driver.answer_start(Ok(vec![StartAnswer::Early { start_at: utc(25_000) }]));
    assert!(driver.starts().is_empty(), "not in the same millisecond");
    driver.tick(3_001);
    assert_eq!(driver.starts(), [claimed.at]);
}
