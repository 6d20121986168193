//! Decisions that the tests of the node see only in part, because the node asks again soon.

use super::linger::Linger;
use super::tuned::Tuned;
use super::{Decision, Load, eager};
use crate::time::BootTime;

fn at(ms: u64) -> BootTime {
    BootTime::from_ms(1_000_000 + ms)
}

/// A node that has nothing to do.
fn idle(now: BootTime) -> Load {
    Load {
        now,
        due: 0,
        ended: 0,
        executing: 0,
        starting: 0,
        held: 0,
        free_places: 20,
        starts: 0,
        finishes: 0,
        claims: 0,
        overdue: false,
        is_alone: true,
        drains: false,
        max_in_flight: 100,
        max_executing: 20,
        max_batch: 50,
    }
}

#[test]
fn an_ended_run_waits_a_quarter_of_a_second_after_a_finish() {
    let after = |ms: u64, load: &dyn Fn(Load) -> Load, record_by: Option<u64>| {
        let mut linger = Linger::default();
        linger.sent(at(0));
        record_by.into_iter().for_each(|ms| linger.record_by(at(ms)));
        linger.wait(&load(idle(at(ms))))
    };
    let busy = |due| move |load| Load { executing: 20, due, ..load };
    assert_eq!(after(10, &|load| load, None), Some(at(250)));
    assert_eq!(after(10, &busy(0), None), Some(at(250)), "nothing waits for a place");
    assert_eq!(after(10, &|load| Load { executing: 19, due: 1, ..load }, None), Some(at(250)), "places are free");
    assert_eq!(after(10, &busy(1), None), Some(at(25)), "a place is wanted");
    assert_eq!(after(10, &|load| load, Some(40)), Some(at(40)));
    let many = |executing| move |load| Load { executing, ..load };
    assert_eq!(after(250, &many(11), Some(400)), Some(at(400)), "the pause is over, and others will end soon");
    assert_eq!(after(250, &many(10), Some(400)), None, "few execute, so it waits for nobody");
}

#[test]
fn the_tuned_flow_records_what_has_ended_and_nothing_else() {
    let finish = |load: Load| Tuned::default().finish(&load);
    assert_eq!(finish(idle(at(0))), Decision::Wait);
    assert_eq!(finish(Load { ended: 1, ..idle(at(0)) }), Decision::Send(50));
    assert_eq!(finish(Load { ended: 1, finishes: 1, ..idle(at(0)) }), Decision::Wait, "one is on its way");
}

#[test]
fn starts_go_first_for_a_while_if_one_can_go() {
    let first = |load: Load| Tuned::default().starts_go_first(&load);
    assert_eq!(first(idle(at(0))), None);
    let until = first(Load { due: 5, ..idle(at(0)) });
    assert!(until > Some(at(0)), "{until:?}");
    assert_eq!(first(Load { due: 5, executing: 20, ..idle(at(0)) }), None, "no place is free");
    // Starts come so fast that the next one waits for others.
    let mut rated = Tuned::default();
    (0..100).for_each(|n| rated.rate.sent(40, at(10 * n)));
    (0..4).for_each(|_| rated.rate.sent(40, at(1_000)));
    assert!(rated.rate.wait(5, at(1_000)).is_some());
    assert_eq!(rated.starts_go_first(&Load { due: 5, ..idle(at(1_000)) }), None);
}

#[test]
fn the_eager_flow_takes_what_fits() {
    let held = |held| eager::claim(&Load { held, ..idle(at(0)) });
    assert_eq!([0, 50, 70, 100, 101].map(held), [50, 50, 30, 0, 0]);
    let places = |overdue, due| eager::places_of_claim(&Load { overdue, due, ..idle(at(0)) });
    assert_eq!([places(false, 0), places(true, 0), places(true, 6), places(true, 21)], [0, 10, 7, 0]);
    assert_eq!(eager::start(&Load { due: 7, ..idle(at(0)) }), Decision::Send(7));
    assert_eq!(eager::finish(&idle(at(0))), Decision::Wait);
}
