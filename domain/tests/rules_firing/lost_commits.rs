//! What becomes of firings that may have started in commits that the database lost.

use carillon_domain::firing::{Event, Phase, TransitionKind};
use carillon_domain::invariants;
use carillon_domain::job::{Job, MisfirePolicy, OnLost, Overlap};
use carillon_domain::run::{Status, Trigger};

use super::desk::{Desk, at, every, me, misfire, overlap, retrying};

const WHY: &str = "lost(the database went back in time: nobody knows whether it started)";

/// The claim in second `now` of a desk whose database lost commits up to `until`: what is held then, and the records.
fn claimed(desk: &mut Desk, until: i64, now: i64) -> (Option<(Trigger, i64)>, Vec<String>) {
    desk.losses_until = Some(at(until));
    let answer = desk.claim(now);
    let held = desk.row().phase.held().map(|held| held.firing);
    assert_eq!(held.is_some(), answer == Ok(TransitionKind::Claimed), "{answer:?}");
    invariants::recorded_once(&desk.records).unwrap();
    let rel = |ms: i64| ms / 1_000 - super::desk::ZERO;
    (held.map(|firing| (firing.trigger, rel(firing.due_at.as_ms()))), desk.history())
}

#[test]
fn what_was_due_by_then_is_lost_and_what_passed_later_is_the_misfire_policys() {
    use MisfirePolicy::{CatchUp, FireOnce, Skip};
    let schedule = |due| Some((Trigger::Schedule, due));
    let made_good = |due| Some((Trigger::Misfire, due));
    type Case<'a> = (MisfirePolicy, i64, i64, Option<(Trigger, i64)>, &'a [&'a str]);
    let table: &[Case<'_>] = &[
        (Skip, 59, 60, schedule(60), &[]),
        (Skip, 60, 60, None, &["schedule 60 LOST"]),
        (Skip, 60, 120, schedule(120), &["schedule 60 LOST"]),
        (Skip, 90, 121, None, &["schedule 60 LOST", "schedule 120 skipped(misfire)"]),
        (Skip, 150, 301, None, &["schedule 60..120 x2 LOST", "schedule 180..300 x3 skipped(misfire)"]),
        (FireOnce, 150, 301, made_good(300), &["schedule 60..120 x2 LOST", "schedule 180..240 x2 skipped(misfire)"]),
        (CatchUp, 150, 301, made_good(180), &["schedule 60..120 x2 LOST"]),
        (CatchUp, 600_000, 600_000, None, &["schedule 60..600000 x10000 LOST"]),
    ];
    for (policy, until, now, expected, records) in table {
        let mut desk = Desk::new(misfire(*policy, 0));
        let records: Vec<String> = records.iter().map(|record| record.replace("LOST", WHY)).collect();
        assert_eq!(claimed(&mut desk, *until, *now), (*expected, records), "{policy:?}, lost until {until}, at {now}");
    }
}

#[test]
fn a_job_that_prefers_twice_to_never_fires_as_usual() {
    let mut desk = Desk::new(Job { on_lost: OnLost::Rerun, ..every(60) });
    assert_eq!(claimed(&mut desk, 60, 60), (Some((Trigger::Schedule, 60)), vec![]));
}

/// Versions, and so tokens, begin at the database's microseconds: none that was given out before it went back is higher.
#[test]
fn a_token_is_higher_than_any_that_was_given_out_in_what_was_lost() {
    let mut desk = Desk::new(Job { on_lost: OnLost::Rerun, ..every(60) });
    let highest_lost = at(60).as_ms() as u64 * 1_000 + 999;
    claimed(&mut desk, 60, 60);
    assert!(desk.row().version > highest_lost, "{}", desk.row().version);
    let first = desk.row().version;
    desk.start(60).unwrap();
    desk.finish(61, Status::Succeeded).unwrap();
    claimed(&mut desk, 60, 120);
    assert_eq!(desk.row().version, first + 3, "once is enough");
}

#[test]
fn a_further_attempt_is_lost_too() {
    let mut desk = Desk::new(retrying(Overlap::Skip, 3, 100));
    desk.run(60);
    desk.finish(61, Status::Failed).unwrap();
    desk.records.clear();
    let records = vec![format!("schedule 60 #2 {WHY}"), format!("schedule 120 {WHY}")];
    assert_eq!(claimed(&mut desk, 130, 161), (None, records));
    assert_eq!(desk.armed().due_at, at(180));
}

#[test]
fn a_backlog_is_lost_up_to_then_and_goes_on_after_it() {
    for (until, expected, lost) in [
        (60, Some((Trigger::Misfire, 120)), "schedule 60 LOST"),
        (150, Some((Trigger::Misfire, 180)), "schedule 60..120 x2 LOST"),
        (300, None, "schedule 60..300 x5 LOST"),
    ] {
        let mut desk = Desk::new(misfire(MisfirePolicy::CatchUp, 0));
        desk.claim(301).unwrap();
        desk.reset(301).unwrap();
        assert_eq!(claimed(&mut desk, until, 302), (expected, vec![lost.replace("LOST", WHY)]), "until {until}");
    }
}

#[test]
fn the_firing_that_delay_kept_waiting_is_lost_and_what_it_skipped_is_not_told_again() {
    let mut desk = Desk::new(overlap(Overlap::Delay));
    desk.run(60);
    desk.finish(250, Status::Succeeded).unwrap();
    desk.records.clear();
    assert_eq!(claimed(&mut desk, 251, 252), (None, vec![format!("schedule 120 {WHY}")]));
    assert_eq!(desk.armed().due_at, at(300));
}

#[test]
fn a_manual_run_keeps_its_id_and_its_further_attempt_gets_one() {
    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 10));
    let (_, run) = desk.trigger(30).unwrap();
    assert_eq!(claimed(&mut desk, 30, 31), (None, vec![format!("manual 30 {WHY}")]));
    assert_eq!(desk.records[0].id, run);

    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 10));
    desk.pause(10, None).unwrap();
    desk.trigger(60).unwrap();
    desk.run(60);
    desk.resume(61).unwrap();
    desk.finish(61, Status::Failed).unwrap();
    desk.records.clear();
    assert_eq!(claimed(&mut desk, 71, 72), (None, vec![format!("manual 60 #2 {WHY}")]));
}

#[test]
fn the_due_times_of_a_pause_are_left_to_its_end() {
    let mut desk = Desk::new(every(60));
    desk.pause(10, Some(130)).unwrap();
    let records = ["schedule 60..120 x2 skipped(paused)".to_owned(), format!("schedule 180 {WHY}")];
    assert_eq!(claimed(&mut desk, 190, 200), (None, records.to_vec()));
}

#[test]
fn rows_beside_the_jobs_own_go() {
    for (on_lost, expected) in
        [(OnLost::Skip, Ok(TransitionKind::GivenUp)), (OnLost::Rerun, Ok(TransitionKind::Claimed))]
    {
        let mut desk = Desk::new(Job { on_lost, ..retrying(Overlap::Allow, 2, 10) });
        desk.trigger(30).unwrap();
        let key = *desk.concurrent.keys().next().unwrap();
        desk.losses_until = Some(at(30));
        let claim = Event::Claim { session: me(), run: desk.draw(), until: at(31), losses_until: Some(at(30)) };
        assert_eq!(desk.apply_concurrent(key, &claim), expected, "{on_lost:?}");
        let skip = on_lost == OnLost::Skip;
        assert_eq!((desk.concurrent.is_empty(), desk.history().len()), (skip, usize::from(skip)));
        assert!(!skip || desk.history() == [format!("manual 30 {WHY}")]);
    }
}

#[test]
fn what_is_held_is_not_claimed_whatever_was_lost() {
    let mut desk = Desk::new(every(60));
    desk.run(60);
    let before = desk.row().clone();
    desk.losses_until = Some(at(60));
    assert!(desk.claim(61).is_err());
    assert!(matches!(before.phase, Phase::Executing(_)) && *desk.row() == before);
}
