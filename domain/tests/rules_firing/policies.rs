//! The misfire, overlap and retry policies.

use carillon_domain::firing::{Event, TransitionKind};
use carillon_domain::job::{Job, MisfirePolicy, OnLost, Overlap};
use carillon_domain::measured::{ClaimedAt, Usage};
use carillon_domain::run::{Ending, Status, Trigger};

use super::fixture::{JobFixture, at, ending, every, me, misfire, overlap, retrying};

/// The trigger and second of the firing that a claim in second `now` takes, if it takes one, and the records.
fn claimed(job: Job, now: i64) -> (Option<(Trigger, i64)>, Vec<String>) {
    let mut fixture = JobFixture::new(job);
    let answer = fixture.claim(now);
    let held = fixture.row().phase.held().map(|held| held.firing);
    assert_eq!(held.is_some(), answer == Ok(TransitionKind::Claimed));
    let rel = |ms: i64| ms / 1_000 - super::fixture::ZERO;
    (held.map(|firing| (firing.trigger, rel(firing.due_at.as_ms()))), fixture.history())
}

#[test]
fn a_misfire_is_later_than_its_grace_or_part_of_a_batch() {
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
fn catch_up_runs_the_backlog_one_at_a_time_and_then_the_schedule() {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 0));
    let mut ran = Vec::new();
    for now in [190, 191, 192] {
        ran.push(fixture.run(now).firing.due_at);
        fixture.finish(now, Status::Succeeded).unwrap();
    }
    assert_eq!(ran, [at(60), at(120), at(180)]);
    assert_eq!((fixture.armed().due_at, fixture.row().catch_up_until), (at(240), None));
}

/// A node that is behind runs 60, 120 and 180 one by one. 240 comes due while none of them runs.
#[test]
fn due_times_between_the_runs_of_a_backlog_are_misfires_too() {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 0));
    for (started, ended) in [(190, 191), (245, 246), (247, 248)] {
        fixture.run(started);
        fixture.finish(ended, Status::Succeeded).unwrap();
    }
    assert_eq!(fixture.armed().due_at, at(240), "no run lived when it came due");
    let next = fixture.run(310).firing;
    assert_eq!((next.trigger, next.due_at, fixture.row().catch_up_until), (Trigger::Misfire, at(240), Some(at(300))));
    assert_eq!(fixture.history().len(), 3, "{:?}", fixture.history());
}

/// So a job whose runs take longer than its interval returns to its schedule.
#[test]
fn due_times_during_a_run_of_a_backlog_are_recorded_at_its_end() {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 0));
    for (due, from) in [(60, 190), (120, 281), (180, 372)] {
        assert_eq!(fixture.run(from).firing.due_at, at(due));
        fixture.finish(from + 90, Status::Succeeded).unwrap();
    }
    let skipped: Vec<_> = fixture.history().into_iter().filter(|record| record.contains("skipped")).collect();
    let expected = ["240 skipped(overlap)", "300..360 x2 skipped(overlap)", "420 skipped(overlap)"];
    assert_eq!(skipped, expected.map(|record| format!("schedule {record}")));
    assert_eq!((fixture.armed().due_at, fixture.row().catch_up_until), (at(480), None));
}

/// A job that does not skip runs them in turn, and nobody knows when a lost run ended.
#[test]
fn due_times_during_a_run_of_a_backlog_are_left_to_it_unless_they_overlapped() {
    for (overlap, status, skipped) in [
        (Overlap::Skip, Status::Succeeded, 1),
        (Overlap::Delay, Status::Succeeded, 0),
        (Overlap::Skip, Status::Lost, 0),
    ] {
        let mut fixture = JobFixture::new(Job { overlap, ..misfire(MisfirePolicy::CatchUp, 0) });
        fixture.run(190);
        fixture.finish(280, status).unwrap();
        let records = fixture.history();
        let overlapped = records.iter().filter(|record| record.ends_with("skipped(overlap)")).count();
        assert_eq!(overlapped, skipped, "{overlap:?}, {status:?}: {records:?}");
    }
}

/// The single firing of `fire_once` counts as running from its first attempt on, so 240 overlapped with it.
#[test]
fn due_times_before_a_retry_of_a_misfire_run_overlap_with_it() {
    let misfire = misfire(MisfirePolicy::FireOnce, 30).misfire;
    let mut fixture = JobFixture::new(Job { misfire, ..retrying(Overlap::Skip, 2, 60) });
    fixture.run(190);
    fixture.finish(191, Status::Failed).unwrap();
    assert_eq!(fixture.run(251).firing.attempt, 2);
    fixture.finish(252, Status::Succeeded).unwrap();
    assert!(fixture.history().contains(&"schedule 240 skipped(overlap)".to_owned()), "{:?}", fixture.history());
}

/// The single firing of `fire_once` was prepared at 190, and the node started it after 240.
#[test]
fn due_times_before_a_misfire_run_begins_do_not_overlap_with_it() {
    let run = |overlap| {
        let mut fixture = JobFixture::new(Job { overlap, ..misfire(MisfirePolicy::FireOnce, 30) });
        fixture.claim(190).unwrap();
        fixture.start(241).unwrap();
        fixture.finish(242, Status::Succeeded).unwrap();
        let last = fixture.history().pop();
        fixture.claim(243).unwrap();
        (fixture.held().firing.trigger, fixture.held().firing.due_at, last)
    };
    let misfire_run = Some("misfire 180 succeeded".to_owned());
    assert_eq!(run(Overlap::Skip), (Trigger::Schedule, at(240), misfire_run.clone()), "late, and within its grace");
    assert_eq!(run(Overlap::Delay), (Trigger::Schedule, at(240), misfire_run), "it waited");
}

/// Prepared for 60 with a grace of ten seconds, and started too late. The first `Option` is the due time that starts
/// instead, the second the armed one.
#[test]
fn the_misfire_policy_decides_on_a_misfire_at_the_start() {
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
        let mut fixture = JobFixture::new(misfire(policy, 10));
        fixture.claim_ahead(50, 30).unwrap();
        let run = fixture.held().run;
        assert_eq!(fixture.start(now), Ok(kind), "{policy:?} at {now}");
        let held = fixture.row().phase.held().copied();
        assert_eq!(
            held.map(|held| (held.firing.due_at, held.run)),
            due.map(|due| (at(due), run)),
            "{policy:?} at {now}"
        );
        assert_eq!(fixture.row().armed.map(|armed| armed.due_at), armed.map(at), "{policy:?} at {now}");
        assert_eq!(fixture.history(), history, "{policy:?} at {now}");
    }
}

#[test]
fn a_backlog_that_begins_at_the_start_runs_one_at_a_time() {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 10));
    fixture.claim_ahead(50, 30).unwrap();
    fixture.start(190).unwrap();
    fixture.finish(191, Status::Succeeded).unwrap();
    assert_eq!((fixture.run(192).firing.due_at, fixture.row().catch_up_until), (at(120), Some(at(180))));
}

/// The holder does not know the id of the manual run before it claims it.
#[test]
fn a_misfire_at_the_start_leaves_a_waiting_manual_run_to_the_next_claim() {
    let mut fixture = JobFixture::new(Job { overlap: Overlap::Delay, ..misfire(MisfirePolicy::FireOnce, 10) });
    fixture.claim_ahead(50, 30).unwrap();
    let (kind, manual) = fixture.trigger(65).unwrap();
    assert_eq!(
        (kind, fixture.held().firing.due_at),
        (TransitionKind::Triggered, at(60)),
        "it waits behind the prepared firing"
    );
    assert_eq!(fixture.start(130), Ok(TransitionKind::Misfired));
    assert_eq!((fixture.history(), fixture.armed().due_at), (vec!["schedule 60 skipped(misfire)".to_owned()], at(120)));
    fixture.claim(131).unwrap();
    assert_eq!(fixture.held().run, manual);
}

/// A misfire run for 120 is prepared at second 130 and released unstarted. Later due times join its batch.
#[test]
fn the_misfire_policy_decides_again_on_a_released_misfire_run() {
    let released = |policy| {
        let mut fixture = JobFixture::new(misfire(policy, 0));
        fixture.claim(130).unwrap();
        fixture.sweep(140).unwrap();
        fixture
    };
    let mut soon = released(MisfirePolicy::FireOnce);
    soon.claim(141).unwrap();
    assert_eq!((soon.held().firing.trigger, soon.held().firing.due_at), (Trigger::Misfire, at(120)));
    assert_eq!(soon.history(), ["schedule 60 skipped(misfire)"]);

    let mut late = released(MisfirePolicy::FireOnce);
    late.claim(310).unwrap();
    assert_eq!((late.held().firing.trigger, late.held().firing.due_at), (Trigger::Misfire, at(300)), "the latest");
    assert_eq!(late.history(), ["schedule 60 skipped(misfire)", "schedule 120..240 x3 skipped(misfire)"]);

    let mut backlog = released(MisfirePolicy::CatchUp);
    backlog.claim(6_070).unwrap();
    assert_eq!((backlog.held().firing.due_at, backlog.row().catch_up_until), (at(120), Some(at(6_060))));
    assert_eq!(backlog.history(), ["schedule 60 skipped(misfire)"], "the newest hundred of all due times");
}

#[test]
fn due_times_during_a_run_follow_the_overlap_policy() {
    let table: [(Overlap, i64, &[&str]); 3] = [
        (Overlap::Skip, 300, &["schedule 120..240 x3 skipped(overlap)"]),
        (Overlap::Delay, 120, &["schedule 180..240 x2 skipped(overlap)"]),
        (Overlap::Replace, 240, &["schedule 120..180 x2 skipped(overlap)"]),
    ];
    for (policy, armed, records) in table {
        let mut fixture = JobFixture::new(overlap(policy));
        fixture.run(60);
        fixture.finish(250, Status::Succeeded).unwrap();
        assert_eq!(
            (fixture.armed().due_at, &fixture.history()[1..]),
            (at(armed), &*records.iter().map(|s| s.to_string()).collect::<Vec<_>>()),
            "{policy:?}"
        );
        fixture.claim(400).unwrap();
        let trigger = if policy == Overlap::Skip { Trigger::Misfire } else { Trigger::Schedule };
        assert_eq!(fixture.held().firing.trigger, trigger, "{policy:?}: a delayed firing is no misfire");
    }
    let mut allow = JobFixture::new(overlap(Overlap::Allow));
    for due in [60, 120, 180] {
        allow.claim(due).unwrap();
        assert_eq!(allow.start(due), Ok(TransitionKind::StartedConcurrently));
    }
    assert_eq!((allow.concurrent.len(), allow.armed().due_at), (3, at(240)));
}

#[test]
fn attempts_follow_one_another_and_the_schedule_goes_on_after_the_last() {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 3, 40));
    fixture.run(60);
    fixture.finish(61, Status::Failed).unwrap();
    assert_eq!(fixture.armed().start_at, at(101));
    fixture.run(101);
    fixture.finish(102, Status::TimedOut).unwrap();
    assert_eq!(fixture.armed().start_at, at(182), "twice as long");
    fixture.run(182);
    assert_eq!(fixture.finish(183, Status::Failed), Ok(TransitionKind::Finished));
    assert_eq!(fixture.history()[3], "schedule 120..180 x2 skipped(overlap)", "a backoff counts as running");
    assert_eq!(fixture.armed().due_at, at(240));
}

#[test]
fn a_newer_firing_replaces_an_attempt_that_would_start_after_it() {
    let mut fixture = JobFixture::new(retrying(Overlap::Replace, 3, 40));
    fixture.run(60);
    assert_eq!(fixture.finish(90, Status::Failed), Ok(TransitionKind::Finished), "the attempt would be at 130");
    assert_eq!(fixture.armed().due_at, at(120));
}

#[test]
fn due_times_during_a_lost_run_follow_the_misfire_policy() {
    let mut fixture = JobFixture::new(Job { on_lost: OnLost::Skip, ..misfire(MisfirePolicy::FireOnce, 0) });
    fixture.run(60);
    fixture.sweep(250).unwrap();
    fixture.claim(250).unwrap();
    assert_eq!((fixture.held().firing.trigger, fixture.held().firing.due_at), (Trigger::Misfire, at(240)));
    assert_eq!(fixture.history()[1], "schedule 120..180 x2 skipped(misfire)");
}

#[test]
fn a_one_shot_and_the_end_of_a_schedule_complete_a_job() {
    let once = Job { schedule: "@at 2027-01-15T08:01:00Z".into(), ..every(60) };
    let ends = Job { end_at: Some(at(90)), ..every(60) };
    for job in [once, ends] {
        let mut fixture = JobFixture::new(job);
        fixture.run(60);
        fixture.finish(61, Status::Succeeded).unwrap();
        assert!(fixture.row().is_completed());
        assert_eq!(fixture.row().claim_at(), Some(carillon_domain::time::Timestamp::MAX));
        fixture.trigger(70).unwrap();
        assert_eq!(fixture.run(70).firing.trigger, Trigger::Manual, "a person may still run it");
        fixture.finish(71, Status::Succeeded).unwrap();
        assert!(fixture.row().is_completed());
    }
}

#[test]
fn an_end_in_the_future_counts_as_now() {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 30));
    fixture.run(60);
    fixture.now = at(70);
    let run = fixture.held().run;
    fixture.apply(&Event::Finish { session: me(), run, ending: ending(Status::Failed, at(500)) }).unwrap();
    assert_eq!((fixture.records[0].finished_at, fixture.armed().start_at), (at(70), at(100)));
}

#[test]
fn the_lag_of_a_run_counts_from_its_start_time() {
    let mut fixture = JobFixture::new(retrying(Overlap::Skip, 2, 30));
    fixture.claim(60).unwrap();
    fixture.start(67).unwrap();
    fixture.finish(70, Status::Failed).unwrap();
    fixture.claim(100).unwrap();
    fixture.start(102).unwrap();
    fixture.finish(103, Status::Succeeded).unwrap();
    let lags: Vec<_> = fixture.records.iter().map(|record| record.lag_ms).collect();
    assert_eq!(lags, [Some(7_000), Some(2_000)], "the lag of a retry counts from the end of the backoff");
}

#[test]
fn an_exempt_firing_stays_exempt_after_a_release() {
    let mut waited = JobFixture::new(overlap(Overlap::Delay));
    waited.run(60);
    waited.finish(170, Status::Succeeded).unwrap();
    waited.claim(170).unwrap();
    waited.reset(171).unwrap();
    assert_eq!(waited.run(179).firing.trigger, Trigger::Schedule, "a delay is no misfire, however late it starts");

    let mut retried =
        JobFixture::new(Job { misfire: misfire(MisfirePolicy::FireOnce, 0).misfire, ..retrying(Overlap::Skip, 2, 5) });
    retried.run(70);
    retried.finish(71, Status::Failed).unwrap();
    retried.claim(76).unwrap();
    retried.reset(77).unwrap();
    let again = retried.run(130).firing;
    assert_eq!((again.due_at, again.attempt), (at(60), 2), "a retry of a misfire run");
}

#[test]
fn a_record_tells_how_long_a_run_was_prepared_and_what_it_used() {
    let usage = Usage { cpu_ms: Some(70), peak_memory_kib: Some(2_048) };
    // Seconds of the claim, and how long before the start at 60 that is. A start in the commit of its claim is heard of after it.
    for (claimed, prepared_ms) in [(Some(31), Some(29_000)), (Some(60), Some(0)), (Some(61), Some(0)), (None, None)] {
        let mut fixture = JobFixture::new(every(60));
        let held = fixture.run(60);
        fixture.now = at(65);
        let claimed_at = ClaimedAt(claimed.map(at));
        let ending = Ending { claimed_at, usage, ..ending(Status::Succeeded, at(65)) };
        fixture.apply(&Event::Finish { session: me(), run: held.run, ending }).unwrap();
        let record = &fixture.records[0];
        assert_eq!((record.prepared_ms, record.usage), (prepared_ms, usage), "claimed at {claimed:?}");
        assert_eq!(record.claimed_at(), claimed.map(|secs| at(secs.min(60))));
    }
}
