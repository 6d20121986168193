//! Firings that may have started in lost commits.

use carillon_domain::firing::{Event, KnownDue, Phase, Rejected, TransitionKind};
use carillon_domain::invariants;
use carillon_domain::job::{Job, MisfirePolicy, OnLost, Overlap};
use carillon_domain::run::{Status, Trigger};

use super::fixture::{JobFixture, at, every, me, misfire, overlap, retrying};

const LOST_REASON: &str = "lost(the database went back in time: nobody knows whether it started)";

/// A claim in second `now` after commits were lost up to `until`: the held firing and the records.
fn claimed(fixture: &mut JobFixture, until: i64, now: i64) -> (Option<(Trigger, i64)>, Vec<String>) {
    fixture.losses_until = Some(at(until));
    let answer = fixture.claim(now);
    let held = fixture.row().phase.held().map(|held| held.firing);
    assert_eq!(held.is_some(), answer == Ok(TransitionKind::Claimed), "{answer:?}");
    invariants::recorded_once(&fixture.records).unwrap();
    let rel = |ms: i64| ms / 1_000 - super::fixture::ZERO;
    (held.map(|firing| (firing.trigger, rel(firing.due_at.as_ms()))), fixture.history())
}

#[test]
fn due_times_up_to_the_loss_are_lost_and_later_ones_follow_the_misfire_policy() {
    use MisfirePolicy::{CatchUp, FireOnce, Skip};
    let schedule = |due| Some((Trigger::Schedule, due));
    let misfire_run = |due| Some((Trigger::Misfire, due));
    type Case<'a> = (MisfirePolicy, i64, i64, Option<(Trigger, i64)>, &'a [&'a str]);
    let table: &[Case<'_>] = &[
        (Skip, 59, 60, schedule(60), &[]),
        (Skip, 60, 60, None, &["schedule 60 LOST"]),
        (Skip, 60, 120, schedule(120), &["schedule 60 LOST"]),
        (Skip, 90, 121, None, &["schedule 60 LOST", "schedule 120 skipped(misfire)"]),
        (Skip, 150, 301, None, &["schedule 60..120 x2 LOST", "schedule 180..300 x3 skipped(misfire)"]),
        (FireOnce, 150, 301, misfire_run(300), &["schedule 60..120 x2 LOST", "schedule 180..240 x2 skipped(misfire)"]),
        (CatchUp, 150, 301, misfire_run(180), &["schedule 60..120 x2 LOST"]),
        (CatchUp, 600_000, 600_000, None, &["schedule 60..600000 x10000 LOST"]),
    ];
    for (policy, until, now, expected, records) in table {
        let mut fixture = JobFixture::new(misfire(*policy, 0));
        let records: Vec<String> = records.iter().map(|record| record.replace("LOST", LOST_REASON)).collect();
        assert_eq!(
            claimed(&mut fixture, *until, *now),
            (*expected, records),
            "{policy:?}, lost until {until}, at {now}"
        );
    }
}

#[test]
fn a_job_with_rerun_fires_as_usual() {
    let mut fixture = JobFixture::new(Job { on_lost: OnLost::Rerun, ..every(60) });
    assert_eq!(claimed(&mut fixture, 60, 60), (Some((Trigger::Schedule, 60)), vec![]));
}

/// Versions begin at the database's microseconds, so this bound is above all tokens of the lost commits.
#[test]
fn a_token_is_higher_than_all_tokens_of_the_lost_commits() {
    let mut fixture = JobFixture::new(Job { on_lost: OnLost::Rerun, ..every(60) });
    let highest_lost = at(60).as_ms() as u64 * 1_000 + 999;
    claimed(&mut fixture, 60, 60);
    assert!(fixture.row().version > highest_lost, "{}", fixture.row().version);
    let first = fixture.row().version;
    fixture.start(60).unwrap();
    fixture.finish(61, Status::Succeeded).unwrap();
    claimed(&mut fixture, 60, 120);
    assert_eq!(fixture.row().version, first + 3, "the version is lifted once");
}

#[test]
fn a_retry_is_lost_too() {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 3, 100));
    fixture.run(60);
    fixture.finish(61, Status::Failed).unwrap();
    fixture.records.clear();
    let records = vec![format!("schedule 60 #2 {LOST_REASON}"), format!("schedule 120 {LOST_REASON}")];
    assert_eq!(claimed(&mut fixture, 130, 161), (None, records));
    assert_eq!(fixture.armed().due_at, at(180));
}

#[test]
fn a_backlog_is_lost_up_to_the_loss_and_goes_on_after_it() {
    for (until, expected, lost) in [
        (60, Some((Trigger::Misfire, 120)), "schedule 60 LOST"),
        (150, Some((Trigger::Misfire, 180)), "schedule 60..120 x2 LOST"),
        (300, None, "schedule 60..300 x5 LOST"),
    ] {
        let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 0));
        fixture.claim(301).unwrap();
        fixture.reset(301).unwrap();
        assert_eq!(
            claimed(&mut fixture, until, 302),
            (expected, vec![lost.replace("LOST", LOST_REASON)]),
            "until {until}"
        );
    }
}

#[test]
fn a_delayed_firing_is_lost_and_its_skipped_due_times_are_not_recorded_again() {
    let mut fixture = JobFixture::new(overlap(Overlap::Delay));
    fixture.run(60);
    fixture.finish(250, Status::Succeeded).unwrap();
    fixture.records.clear();
    assert_eq!(claimed(&mut fixture, 251, 252), (None, vec![format!("schedule 120 {LOST_REASON}")]));
    assert_eq!(fixture.armed().due_at, at(300));
}

#[test]
fn a_lost_manual_run_keeps_its_id_and_its_retry_gets_one() {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 10));
    let (_, run) = fixture.trigger(30).unwrap();
    assert_eq!(claimed(&mut fixture, 30, 31), (None, vec![format!("manual 30 {LOST_REASON}")]));
    assert_eq!(fixture.records[0].id, run);

    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 10));
    fixture.pause(10, None).unwrap();
    fixture.trigger(60).unwrap();
    fixture.run(60);
    fixture.resume(61).unwrap();
    fixture.finish(61, Status::Failed).unwrap();
    fixture.records.clear();
    assert_eq!(claimed(&mut fixture, 71, 72), (None, vec![format!("manual 60 #2 {LOST_REASON}")]));
}

#[test]
fn due_times_of_a_pause_are_recorded_as_paused() {
    let mut fixture = JobFixture::new(every(60));
    fixture.pause(10, Some(130)).unwrap();
    let records = ["schedule 60..120 x2 skipped(paused)".to_owned(), format!("schedule 180 {LOST_REASON}")];
    assert_eq!(claimed(&mut fixture, 190, 200), (None, records.to_vec()));
}

#[test]
fn concurrent_runs_are_given_up() {
    for (on_lost, expected) in
        [(OnLost::Skip, Ok(TransitionKind::GivenUp)), (OnLost::Rerun, Ok(TransitionKind::Claimed))]
    {
        let mut fixture = JobFixture::new(Job { on_lost, ..retrying(Overlap::Allow, 2, 10) });
        fixture.trigger(30).unwrap();
        let key = *fixture.concurrent.keys().next().unwrap();
        fixture.losses_until = Some(at(30));
        let claim = Event::Claim { session: me(), run: fixture.draw(), until: at(31), losses_until: Some(at(30)) };
        assert_eq!(fixture.apply_concurrent(key, &claim), expected, "{on_lost:?}");
        let skip = on_lost == OnLost::Skip;
        assert_eq!((fixture.concurrent.is_empty(), fixture.history().len()), (skip, usize::from(skip)));
        assert!(!skip || fixture.history() == [format!("manual 30 {LOST_REASON}")]);
    }
}

#[test]
fn a_held_row_is_not_claimed_after_a_loss() {
    let mut fixture = JobFixture::new(every(60));
    fixture.run(60);
    let before = fixture.row().clone();
    fixture.losses_until = Some(at(60));
    assert!(fixture.claim(61).is_err());
    assert!(matches!(before.phase, Phase::Executing(_)) && *fixture.row() == before);
}

fn known(due: i64, attempt: u32) -> KnownDue {
    KnownDue { due_at: at(due), attempt, first_due_at: at(due) }
}

/// The row is armed for second 60. Each line: what is known, the records, and the firing that is armed then.
#[test]
fn due_times_that_nobody_knows_are_lost_before_one_that_is_known() {
    let stretch = KnownDue { first_due_at: at(60), ..known(120, 1) };
    let table: Vec<(Vec<KnownDue>, &[&str], Option<i64>)> = vec![
        (vec![], &[], None),
        (vec![known(30, 1)], &[], None),
        (vec![known(60, 1)], &[], Some(120)),
        (vec![known(180, 1)], &["schedule 60..120 x2 LOST"], Some(240)),
        (vec![known(120, 1), known(240, 1)], &["schedule 60 LOST", "schedule 180 LOST"], Some(300)),
        (vec![stretch, known(240, 1)], &["schedule 180 LOST"], Some(300)),
    ];
    for (known, records, armed) in table {
        let mut fixture = JobFixture::new(every(60));
        let answer = fixture.apply(&Event::Reconcile { known: known.clone() });
        assert_eq!(answer.ok(), armed.map(|_| TransitionKind::Rearmed), "{known:?}");
        let records: Vec<String> = records.iter().map(|record| record.replace("LOST", LOST_REASON)).collect();
        assert_eq!((fixture.history(), fixture.armed().due_at), (records, at(armed.unwrap_or(60))), "{known:?}");
        invariants::recorded_once(&fixture.records).unwrap();
    }
}

#[test]
fn a_retry_that_nobody_knows_is_lost_before_a_firing_that_is_known() {
    let lost = format!("schedule 60 #2 {LOST_REASON}");
    for (known, records, armed) in
        [(known(60, 1), vec![], None), (known(60, 2), vec![], Some(120)), (known(120, 1), vec![lost], Some(180))]
    {
        let mut fixture = JobFixture::new(retrying(Overlap::Skip, 3, 100));
        fixture.run(60);
        fixture.finish(61, Status::Failed).unwrap();
        fixture.records.clear();
        let answer = fixture.apply(&Event::Reconcile { known: vec![known] });
        assert_eq!(answer.ok(), armed.map(|_| TransitionKind::Rearmed), "{known:?}");
        assert_eq!((fixture.history(), fixture.armed().due_at), (records, at(armed.unwrap_or(60))), "{known:?}");
    }
}

/// The end of a pause, too, records in one stretch what the row has forgotten.
#[test]
fn a_paused_row_is_moved_and_one_that_executes_is_not() {
    let event = Event::Reconcile { known: vec![known(180, 1)] };
    let mut paused = JobFixture::new(every(60));
    paused.pause(10, None).unwrap();
    assert_eq!(paused.apply(&event), Ok(TransitionKind::Rearmed));
    assert_eq!(
        (paused.history(), paused.armed().due_at),
        (vec![format!("schedule 60..120 x2 {LOST_REASON}")], at(240))
    );
    let mut held = JobFixture::new(every(60));
    held.run(60);
    assert_eq!(held.apply(&event), Err(Rejected::NothingDue));
}
