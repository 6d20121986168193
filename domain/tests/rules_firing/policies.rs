//! Misfire, overlap, retry: what becomes of due times that passed.

use carillon_domain::firing::{Event, TransitionKind};
use carillon_domain::job::{Job, MisfirePolicy, OnLost, Overlap};
use carillon_domain::run::{Status, Trigger};

use super::desk::{Desk, at, ending, every, me, misfire, overlap, retrying};

/// The trigger, second and records of a claim in second `now`; `None` when nothing is to run yet.
fn claimed(job: Job, now: i64) -> (Option<(Trigger, i64)>, Vec<String>) {
    let mut desk = Desk::new(job);
    let answer = desk.claim(now);
    let held = desk.row().phase.held().map(|held| held.firing);
    assert_eq!(held.is_some(), answer == Ok(TransitionKind::Claimed));
    let rel = |ms: i64| ms / 1_000 - super::desk::ZERO;
    (held.map(|firing| (firing.trigger, rel(firing.due_at.as_ms()))), desk.history())
}

#[test]
fn a_misfire_is_later_than_its_grace_or_not_alone() {
    use MisfirePolicy::{CatchUp, FireOnce, Skip};
    use Trigger::{Misfire, Schedule};
    let none: [&str; 0] = [];
    type Case<'a> = (MisfirePolicy, u64, i64, Option<(Trigger, i64)>, &'a [&'a str]);
    let table: &[Case<'_>] = &[
        (Skip, 30, 60, Some((Schedule, 60)), &none),
        (Skip, 30, 90, Some((Schedule, 60)), &none),
        (Skip, 30, 91, None, &["schedule 60 skipped(misfire)"]),
        (Skip, 600, 120, None, &["schedule 60..120 x2 skipped(misfire)"]),
        (FireOnce, 30, 90, Some((Schedule, 60)), &none),
        (FireOnce, 30, 91, Some((Misfire, 60)), &none),
        (FireOnce, 600, 130, Some((Misfire, 120)), &["schedule 60 skipped(misfire)"]),
        (FireOnce, 0, 60, Some((Schedule, 60)), &none),
        (FireOnce, 0, 600_000, Some((Misfire, 600_000)), &["schedule 60..599940 x9999 skipped(misfire)"]),
        (CatchUp, 0, 130, Some((Misfire, 60)), &none),
        (CatchUp, 0, 99 * 60, Some((Misfire, 60)), &none),
        (CatchUp, 0, 100 * 60, Some((Misfire, 60)), &none),
        (CatchUp, 0, 101 * 60, Some((Misfire, 120)), &["schedule 60 skipped(misfire)"]),
        (CatchUp, 0, 600_000, Some((Misfire, 594_060)), &["schedule 60..594000 x9900 skipped(misfire)"]),
    ];
    for (policy, grace, now, expected, records) in table {
        let (held, history) = claimed(misfire(*policy, *grace), *now);
        assert_eq!(
            (held, history.as_slice()),
            (*expected, &*records.iter().map(|s| s.to_string()).collect::<Vec<_>>()),
            "{policy:?} with a grace of {grace} s at {now}"
        );
    }
}

#[test]
fn catch_up_runs_the_backlog_one_at_a_time_and_then_goes_on() {
    let mut desk = Desk::new(misfire(MisfirePolicy::CatchUp, 0));
    let mut ran = Vec::new();
    for now in [190, 191, 192] {
        ran.push(desk.run(now).firing.due_at);
        desk.finish(now, Status::Succeeded).unwrap();
    }
    assert_eq!(ran, [at(60), at(120), at(180)]);
    assert_eq!((desk.armed().due_at, desk.row().catch_up_until), (at(240), None));
}

/// 60, 120 and 180 are made good one by one, by a node that is behind: 240 comes due while none of them runs.
#[test]
fn what_comes_due_between_the_runs_of_a_backlog_is_made_good_too() {
    let mut desk = Desk::new(misfire(MisfirePolicy::CatchUp, 0));
    for (started, ended) in [(190, 191), (245, 246), (247, 248)] {
        desk.run(started);
        desk.finish(ended, Status::Succeeded).unwrap();
    }
    assert_eq!(desk.armed().due_at, at(240), "no run lived when it came due");
    let next = desk.run(310).firing;
    assert_eq!((next.trigger, next.due_at, desk.row().catch_up_until), (Trigger::Misfire, at(240), Some(at(300))));
    assert_eq!(desk.history().len(), 3, "{:?}", desk.history());
}

/// A job whose runs take longer than its interval comes back to its schedule.
#[test]
fn what_comes_due_while_a_run_of_a_backlog_lives_is_recorded_at_its_end() {
    let mut desk = Desk::new(misfire(MisfirePolicy::CatchUp, 0));
    for (due, from) in [(60, 190), (120, 281), (180, 372)] {
        assert_eq!(desk.run(from).firing.due_at, at(due));
        desk.finish(from + 90, Status::Succeeded).unwrap();
    }
    let skipped: Vec<_> = desk.history().into_iter().filter(|record| record.contains("skipped")).collect();
    let expected = ["240 skipped(overlap)", "300..360 x2 skipped(overlap)", "420 skipped(overlap)"];
    assert_eq!(skipped, expected.map(|record| format!("schedule {record}")));
    assert_eq!((desk.armed().due_at, desk.row().catch_up_until), (at(480), None));
}

/// The one firing of `fire_once` was prepared at 190, and the node started it behind 240.
#[test]
fn what_comes_due_before_a_made_good_run_begins_does_not_overlap_with_it() {
    let run = |overlap| {
        let mut desk = Desk::new(Job { overlap, ..misfire(MisfirePolicy::FireOnce, 30) });
        desk.claim(190).unwrap();
        desk.start(241).unwrap();
        desk.finish(242, Status::Succeeded).unwrap();
        let last = desk.history().pop();
        desk.claim(243).unwrap();
        (desk.held().firing.trigger, desk.held().firing.due_at, last)
    };
    let made_good = Some("misfire 180 succeeded".to_owned());
    assert_eq!(run(Overlap::Skip), (Trigger::Schedule, at(240), made_good.clone()), "late, and within its grace");
    assert_eq!(run(Overlap::Delay), (Trigger::Schedule, at(240), made_good), "it waited");
}

/// Prepared for 60 with a grace of ten seconds, and started too late: `Some` is the due time that starts instead.
#[test]
fn a_misfire_seen_at_the_start_is_dealt_with_there() {
    type Row = (MisfirePolicy, i64, TransitionKind, Option<i64>, Option<i64>, &'static [&'static str]);
    let table: [Row; 6] = [
        (MisfirePolicy::FireOnce, 70, TransitionKind::Started, Some(60), None, &[]),
        (MisfirePolicy::FireOnce, 71, TransitionKind::Started, Some(60), None, &[]),
        (
            MisfirePolicy::FireOnce,
            190,
            TransitionKind::Started,
            Some(180),
            None,
            &["schedule 60..120 x2 skipped(misfire)"],
        ),
        (MisfirePolicy::CatchUp, 190, TransitionKind::Started, Some(60), None, &[]),
        (MisfirePolicy::Skip, 71, TransitionKind::Misfired, None, Some(120), &["schedule 60 skipped(misfire)"]),
        (
            MisfirePolicy::Skip,
            190,
            TransitionKind::Misfired,
            None,
            Some(240),
            &["schedule 60..180 x3 skipped(misfire)"],
        ),
    ];
    for (policy, now, kind, due, armed, history) in table {
        let mut desk = Desk::new(misfire(policy, 10));
        desk.claim_ahead(50, 30).unwrap();
        let run = desk.held().run;
        assert_eq!(desk.start(now), Ok(kind), "{policy:?} at {now}");
        let held = desk.row().phase.held().copied();
        assert_eq!(
            held.map(|held| (held.firing.due_at, held.run)),
            due.map(|due| (at(due), run)),
            "{policy:?} at {now}"
        );
        assert_eq!(desk.row().armed.map(|armed| armed.due_at), armed.map(at), "{policy:?} at {now}");
        assert_eq!(desk.history(), history, "{policy:?} at {now}");
    }
}

#[test]
fn a_backlog_that_is_seen_at_the_start_is_worked_off_one_at_a_time() {
    let mut desk = Desk::new(misfire(MisfirePolicy::CatchUp, 10));
    desk.claim_ahead(50, 30).unwrap();
    desk.start(190).unwrap();
    desk.finish(191, Status::Succeeded).unwrap();
    assert_eq!((desk.run(192).firing.due_at, desk.row().catch_up_until), (at(120), Some(at(180))));
}

/// Its id is not known to the holder before a claim of its own has told it.
#[test]
fn a_misfire_seen_at_the_start_leaves_a_manual_run_that_waits_to_the_claim() {
    let mut desk = Desk::new(Job { overlap: Overlap::Delay, ..misfire(MisfirePolicy::FireOnce, 10) });
    desk.claim_ahead(50, 30).unwrap();
    let (kind, manual) = desk.trigger(65).unwrap();
    assert_eq!(
        (kind, desk.held().firing.due_at),
        (TransitionKind::Triggered, at(60)),
        "it waits behind what is prepared"
    );
    assert_eq!(desk.start(130), Ok(TransitionKind::Misfired));
    assert_eq!((desk.history(), desk.armed().due_at), (vec!["schedule 60 skipped(misfire)".to_owned()], at(120)));
    desk.claim(131).unwrap();
    assert_eq!(desk.held().run, manual);
}

/// Made good at second 130 for 120, and given back unstarted: what passes meanwhile belongs to the same batch.
#[test]
fn a_made_good_firing_that_never_started_is_looked_at_again_with_what_passed_since() {
    let given_back = |policy| {
        let mut desk = Desk::new(misfire(policy, 0));
        desk.claim(130).unwrap();
        desk.sweep(140).unwrap();
        desk
    };
    let mut soon = given_back(MisfirePolicy::FireOnce);
    soon.claim(141).unwrap();
    assert_eq!((soon.held().firing.trigger, soon.held().firing.due_at), (Trigger::Misfire, at(120)));
    assert_eq!(soon.history(), ["schedule 60 skipped(misfire)"]);

    let mut late = given_back(MisfirePolicy::FireOnce);
    late.claim(310).unwrap();
    assert_eq!((late.held().firing.trigger, late.held().firing.due_at), (Trigger::Misfire, at(300)), "the latest");
    assert_eq!(late.history(), ["schedule 60 skipped(misfire)", "schedule 120..240 x3 skipped(misfire)"]);

    let mut backlog = given_back(MisfirePolicy::CatchUp);
    backlog.claim(6_070).unwrap();
    assert_eq!((backlog.held().firing.due_at, backlog.row().catch_up_until), (at(120), Some(at(6_060))));
    assert_eq!(backlog.history(), ["schedule 60 skipped(misfire)"], "the newest hundred of all");
}

#[test]
fn a_run_that_outlives_due_times_follows_overlap() {
    let table: [(Overlap, i64, &[&str]); 3] = [
        (Overlap::Skip, 300, &["schedule 120..240 x3 skipped(overlap)"]),
        (Overlap::Delay, 120, &["schedule 180..240 x2 skipped(overlap)"]),
        (Overlap::Replace, 240, &["schedule 120..180 x2 skipped(overlap)"]),
    ];
    for (policy, armed, records) in table {
        let mut desk = Desk::new(overlap(policy));
        desk.run(60);
        desk.finish(250, Status::Succeeded).unwrap();
        assert_eq!(
            (desk.armed().due_at, &desk.history()[1..]),
            (at(armed), &*records.iter().map(|s| s.to_string()).collect::<Vec<_>>()),
            "{policy:?}"
        );
        desk.claim(400).unwrap();
        let trigger = if policy == Overlap::Skip { Trigger::Misfire } else { Trigger::Schedule };
        assert_eq!(desk.held().firing.trigger, trigger, "{policy:?}: what waited is no misfire");
    }
    let mut allow = Desk::new(overlap(Overlap::Allow));
    for due in [60, 120, 180] {
        allow.claim(due).unwrap();
        assert_eq!(allow.start(due), Ok(TransitionKind::StartedConcurrently));
    }
    assert_eq!((allow.concurrent.len(), allow.armed().due_at), (3, at(240)));
}

#[test]
fn attempts_follow_one_another_and_the_last_lets_the_schedule_go_on() {
    let mut desk = Desk::new(retrying(Overlap::Skip, 3, 40));
    desk.run(60);
    desk.finish(61, Status::Failed).unwrap();
    assert_eq!(desk.armed().start_at, at(101));
    desk.run(101);
    desk.finish(102, Status::TimedOut).unwrap();
    assert_eq!(desk.armed().start_at, at(182), "twice as long");
    desk.run(182);
    assert_eq!(desk.finish(183, Status::Failed), Ok(TransitionKind::Finished));
    assert_eq!(desk.history()[3], "schedule 120..180 x2 skipped(overlap)", "a backoff counts as running");
    assert_eq!(desk.armed().due_at, at(240));
}

#[test]
fn a_newer_firing_takes_the_place_of_an_attempt_that_would_come_after_it() {
    let mut desk = Desk::new(retrying(Overlap::Replace, 3, 40));
    desk.run(60);
    assert_eq!(desk.finish(90, Status::Failed), Ok(TransitionKind::Finished), "the attempt would be at 130");
    assert_eq!(desk.armed().due_at, at(120));
}

#[test]
fn what_passed_while_a_lost_run_may_have_lived_is_for_the_misfire_policy() {
    let mut desk = Desk::new(Job { on_lost: OnLost::Skip, ..misfire(MisfirePolicy::FireOnce, 0) });
    desk.run(60);
    desk.sweep(250).unwrap();
    desk.claim(250).unwrap();
    assert_eq!((desk.held().firing.trigger, desk.held().firing.due_at), (Trigger::Misfire, at(240)));
    assert_eq!(desk.history()[1], "schedule 120..180 x2 skipped(misfire)");
}

#[test]
fn one_shots_and_the_end_of_a_schedule_complete_a_job() {
    let once = Job { schedule: "@at 2027-01-15T08:01:00Z".into(), ..every(60) };
    let ends = Job { end_at: Some(at(90)), ..every(60) };
    for job in [once, ends] {
        let mut desk = Desk::new(job);
        desk.run(60);
        desk.finish(61, Status::Succeeded).unwrap();
        assert!(desk.row().is_completed());
        assert_eq!(desk.row().claim_at(), Some(carillon_domain::time::Timestamp::MAX));
        desk.trigger(70).unwrap();
        assert_eq!(desk.run(70).firing.trigger, Trigger::Manual, "a person may still run it");
        desk.finish(71, Status::Succeeded).unwrap();
        assert!(desk.row().is_completed());
    }
}

#[test]
fn an_end_that_is_told_of_the_future_counts_from_now() {
    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 30));
    desk.run(60);
    desk.now = at(70);
    let run = desk.held().run;
    desk.apply(&Event::Finish { session: me(), run, ending: ending(Status::Failed, at(500)) }).unwrap();
    assert_eq!((desk.records[0].finished_at, desk.armed().start_at), (at(70), at(100)));
}

#[test]
fn the_lag_of_a_run_counts_from_when_it_should_have_started() {
    let mut desk = Desk::new(retrying(Overlap::Skip, 2, 30));
    desk.claim(60).unwrap();
    desk.start(67).unwrap();
    desk.finish(70, Status::Failed).unwrap();
    desk.claim(100).unwrap();
    desk.start(102).unwrap();
    desk.finish(103, Status::Succeeded).unwrap();
    let lags: Vec<_> = desk.records.iter().map(|record| record.lag_ms).collect();
    assert_eq!(lags, [Some(7_000), Some(2_000)], "of a further attempt from the end of the backoff");
}

#[test]
fn what_the_policies_have_settled_stays_settled_when_it_is_given_back() {
    let mut waited = Desk::new(overlap(Overlap::Delay));
    waited.run(60);
    waited.finish(170, Status::Succeeded).unwrap();
    waited.claim(170).unwrap();
    waited.reset(171).unwrap();
    assert_eq!(waited.run(179).firing.trigger, Trigger::Schedule, "a delay is no misfire, however late it starts");

    let mut retried =
        Desk::new(Job { misfire: misfire(MisfirePolicy::FireOnce, 0).misfire, ..retrying(Overlap::Skip, 2, 5) });
    retried.run(70);
    retried.finish(71, Status::Failed).unwrap();
    retried.claim(76).unwrap();
    retried.reset(77).unwrap();
    let again = retried.run(130).firing;
    assert_eq!((again.due_at, again.attempt), (at(60), 2), "a further attempt of what was made good");
}
