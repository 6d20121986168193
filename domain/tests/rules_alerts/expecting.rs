//! Judging due times against the expectations of their job.

use carillon_domain::alert::expect::{DueFacts, Judged, Judgement, LiveRun, Paused, SETTLE, judge, needed};
use carillon_domain::alert::{Because, Broken, Expect, TimeOfDay, Verdict, When};
use carillon_domain::job::Job;
use carillon_domain::run::{DueRange, Reason, RunRecord, Status, Trigger};
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;

use super::{at, manual, record, run, secs};

const STARTS: Expect = Expect { start_within: Some(secs(300)), finish_within: None, finish_by: None };
const ENDS: Expect = Expect { start_within: None, finish_within: Some(secs(1_800)), finish_by: None };

/// An hourly job that was created at half past midnight; expectations hold from then on.
fn hourly() -> Timeline {
    Job::new(("billing", "invoice"), "0 * * * *", "{}").timeline(at("00:30")).unwrap()
}

fn look(expect: &Expect, records: &[RunRecord], now: Timestamp) -> Judgement {
    let facts = DueFacts { records, ..DueFacts::default() };
    judge(expect, &hourly(), Judged::from(at("00:30")), &facts, now)
}

fn one(when: When, limit: Timestamp, because: Because) -> Broken {
    let due = DueRange { count: 1, first: at("01:00"), last: at("01:00") };
    Broken { when, due, limit, because, run: None }
}

/// A run of 01:00.
fn ran(status: Status, started: &str, finished: &str) -> RunRecord {
    RunRecord { started_at: Some(at(started)), finished_at: at(finished), ..record(1, at("01:00"), status) }
}

#[test]
fn a_due_time_is_judged_once_its_limit_has_settled() {
    let early = look(&STARTS, &[], at("01:05:04"));
    assert_eq!((early.verdicts.as_slice(), early.next_look), ([].as_slice(), Some(at("01:05:05"))));
    let late = look(&STARTS, &[], at("01:05:05"));
    let broken = one(When::LateStart, at("01:05"), Because::NotStarted);
    assert_eq!(late.verdicts, [Verdict::Broken(broken)]);
    assert_eq!(late.next_look, Some(at("02:05") + SETTLE));
    let again = judge(&STARTS, &hourly(), late.judged, &DueFacts::default(), at("02:05:04"));
    assert!(again.verdicts.is_empty(), "it is judged once");
}

#[test]
fn a_start_is_judged_by_the_first_attempt() {
    let kept = Verdict::Kept { when: When::LateStart, due_at: at("01:00") };
    let id = record(1, at("01:00"), Status::Failed).id;
    let late = |started| Because::StartedLate(at(started));
    let broken = |because| Verdict::Broken(Broken { run: Some(id), ..one(When::LateStart, at("01:05"), because) });
    for (records, verdict) in [
        (vec![ran(Status::Failed, "01:00", "01:01")], kept.clone()),
        (vec![ran(Status::Succeeded, "01:05", "01:06")], kept.clone()),
        (vec![ran(Status::Succeeded, "01:05:01", "01:06")], broken(late("01:05:01"))),
        (
            vec![
                RunRecord { attempt: 2, ..ran(Status::Succeeded, "01:07", "01:08") },
                ran(Status::Failed, "01:04", "01:04"),
            ],
            kept,
        ),
        (
            vec![manual(ran(Status::Succeeded, "01:00", "01:01"))],
            Verdict::Broken(one(When::LateStart, at("01:05"), Because::NotStarted)),
        ),
        (
            vec![RunRecord {
                due_at: at("02:00"),
                first_due_at: at("02:00"),
                ..ran(Status::Succeeded, "01:00", "01:01")
            }],
            Verdict::Broken(one(When::LateStart, at("01:05"), Because::NotStarted)),
        ),
    ] {
        assert_eq!(look(&STARTS, &records, at("01:10")).verdicts, [verdict], "{records:?}");
    }
}

#[test]
fn a_living_run_has_started() {
    let live = |clock, trigger| LiveRun { run: run(7), due_at: at("01:00"), trigger, started_at: at(clock) };
    let verdicts = |expect: &Expect, live: LiveRun| {
        let facts = DueFacts { live: &[live], ..DueFacts::default() };
        judge(expect, &hourly(), Judged::from(at("00:30")), &facts, at("01:59")).verdicts
    };
    let kept = Verdict::Kept { when: When::LateStart, due_at: at("01:00") };
    assert_eq!(verdicts(&STARTS, live("01:04", Trigger::Schedule)), std::slice::from_ref(&kept));
    assert_eq!(verdicts(&STARTS, live("01:04", Trigger::Misfire)), [kept]);
    let limit = at("01:05");
    let late = Broken { run: Some(run(7)), ..one(When::LateStart, limit, Because::StartedLate(at("01:06"))) };
    assert_eq!(verdicts(&STARTS, live("01:06", Trigger::Schedule)), [Verdict::Broken(late)]);
    let not_started = one(When::LateStart, limit, Because::NotStarted);
    assert_eq!(verdicts(&STARTS, live("01:04", Trigger::Manual)), [Verdict::Broken(not_started)]);
    let still = Broken { run: Some(run(7)), ..one(When::LateFinish, at("01:30"), Because::StillRuns(at("01:04"))) };
    assert_eq!(verdicts(&ENDS, live("01:04", Trigger::Schedule)), [Verdict::Broken(still)], "full nodes or a slow run");
}

#[test]
fn an_end_must_be_a_success_in_time() {
    let id = record(1, at("01:00"), Status::Failed).id;
    let ended = |status, clock| Because::Ended(status, at(clock));
    for (records, because) in [
        (vec![ran(Status::Succeeded, "01:00", "01:30")], None),
        (vec![ran(Status::Succeeded, "01:00", "01:30:01")], Some(Because::SucceededLate(at("01:30:01")))),
        (vec![ran(Status::Failed, "01:00", "01:01")], Some(ended(Status::Failed, "01:01"))),
        (vec![ran(Status::Cancelled, "01:00", "01:01")], Some(ended(Status::Cancelled, "01:01"))),
        (
            vec![
                ran(Status::Failed, "01:00", "01:01"),
                RunRecord { attempt: 2, ..ran(Status::Succeeded, "01:02", "01:03") },
            ],
            None,
        ),
        (
            vec![
                RunRecord { attempt: 2, ..ran(Status::TimedOut, "01:02", "01:03") },
                ran(Status::Failed, "01:00", "01:01"),
            ],
            Some(ended(Status::TimedOut, "01:03")),
        ),
    ] {
        let verdict = match because {
            None => Verdict::Kept { when: When::LateFinish, due_at: at("01:00") },
            Some(because) => Verdict::Broken(Broken { run: Some(id), ..one(When::LateFinish, at("01:30"), because) }),
        };
        assert_eq!(look(&ENDS, &records, at("01:59")).verdicts, [verdict], "{records:?}");
    }
}

#[test]
fn a_due_time_that_did_not_run_tells_why() {
    let skipped = |reason| {
        let range = DueRange { count: 1, first: at("01:00"), last: at("01:00") };
        RunRecord::skipped(carillon_domain::id::JobId(1), range, reason, at("01:01"))
    };
    for reason in [Reason::Overlap, Reason::Misfire, Reason::Paused, Reason::Updated] {
        let record = skipped(reason.clone());
        let broken = Broken { run: Some(record.id), ..one(When::LateStart, at("01:05"), Because::NotRun(reason)) };
        assert_eq!(look(&STARTS, &[record], at("01:10")).verdicts, [Verdict::Broken(broken)]);
    }
    let pause = |since: &str, until: Option<&str>| Paused { since: at(since), until: until.map(at), reason: None };
    for (pause, because) in [
        (pause("00:45", None), Because::Paused(pause("00:45", None))),
        (pause("00:45", Some("03:00")), Because::Paused(pause("00:45", Some("03:00")))),
        (pause("00:45", Some("00:50")), Because::NotStarted),
        (pause("00:45", Some("01:00")), Because::NotStarted),
    ] {
        let facts = DueFacts { pause: Some(&pause), ..DueFacts::default() };
        let verdicts = judge(&STARTS, &hourly(), Judged::from(at("00:30")), &facts, at("01:10")).verdicts;
        assert_eq!(verdicts, [Verdict::Broken(one(When::LateStart, at("01:05"), because))]);
    }
}

#[test]
fn due_times_while_the_cluster_was_down_are_one_broken_expectation() {
    // Down from 01:30 to 06:30; the misfire policy runs the latest due time and records the others.
    let missed = DueRange { count: 4, first: at("02:00"), last: at("05:00") };
    let records = [
        ran(Status::Succeeded, "01:00", "01:01"),
        RunRecord::skipped(carillon_domain::id::JobId(1), missed, Reason::Misfire, at("06:30")),
        RunRecord {
            trigger: Trigger::Misfire,
            started_at: Some(at("06:30:02")),
            ..record(1, at("06:00"), Status::Succeeded)
        },
    ];
    let due = DueRange { count: 5, first: at("02:00"), last: at("06:00") };
    let because = Because::StartedLate(at("06:30:02"));
    let run = Some(records[2].id);
    let judgement = look(&STARTS, &records, at("06:31"));
    assert_eq!(
        judgement.verdicts,
        [
            Verdict::Kept { when: When::LateStart, due_at: at("01:00") },
            Verdict::Broken(Broken { when: When::LateStart, due, limit: at("06:05"), because, run }),
        ]
    );
    assert_eq!(judgement.judged.starts, at("06:00"));
    assert_eq!(needed(&STARTS, &hourly(), Judged::from(at("00:30")), at("06:31")), Some((at("01:00"), at("06:00"))));
    assert_eq!(needed(&STARTS, &hourly(), judgement.judged, at("06:31")), None);
}

#[test]
fn both_kinds_are_judged_each_at_its_limit() {
    let both = Expect { finish_by: TimeOfDay::new(1, 20, 0), ..STARTS };
    let first = look(&both, &[], at("01:05:05"));
    assert_eq!(first.verdicts.len(), 1);
    assert_eq!(first.next_look, Some(at("01:20:05")));
    let second = judge(&both, &hourly(), first.judged, &DueFacts::default(), at("01:20:05"));
    assert_eq!(second.verdicts, [Verdict::Broken(one(When::LateFinish, at("01:20"), Because::NotStarted))]);
    assert_eq!(both.finish_limit("UTC", at("01:20")), Some(at("01:20") + secs(86_400)), "strictly after the due time");
    let nearer = Expect { finish_within: Some(secs(600)), ..both };
    assert_eq!(nearer.finish_limit("UTC", at("01:00")), Some(at("01:10")), "the earlier limit counts");
}

#[test]
fn due_times_of_another_schedule_are_not_judged() {
    let timeline = Job::new(("billing", "invoice"), "0 * * * *", "{}").timeline(at("02:30")).unwrap();
    let judgement = judge(&STARTS, &timeline, Judged::from(at("00:30")), &DueFacts::default(), at("03:10"));
    let Verdict::Broken(broken) = &judgement.verdicts[0] else { panic!("{judgement:?}") };
    assert_eq!((broken.due.count, broken.due.first), (1, at("03:00")));
    let once = Job { end_at: Some(at("01:30")), ..Job::new(("billing", "invoice"), "0 * * * *", "{}") };
    let timeline = once.timeline(at("00:30")).unwrap();
    let judgement = judge(&STARTS, &timeline, Judged::from(at("00:30")), &DueFacts::default(), at("03:10"));
    assert_eq!((judgement.verdicts.len(), judgement.next_look), (1, None), "its schedule has ended");
}

#[test]
fn very_many_due_times_are_judged_in_several_looks() {
    let timeline = Job::new(("billing", "invoice"), "@every 1s", "{}").timeline(at("00:00")).unwrap();
    let (mut judged, mut count, mut looks, now) = (Judged::from(at("00:00")), 0, 0, at("08:00"));
    loop {
        let judgement = judge(&STARTS, &timeline, judged, &DueFacts::default(), now);
        for verdict in &judgement.verdicts {
            let Verdict::Broken(broken) = verdict else { panic!("{verdict:?}") };
            assert_eq!(broken.due.first, judged.starts + secs(1));
            count += broken.due.count;
        }
        (judged, looks) = (judgement.judged, looks + 1);
        if judgement.next_look.is_some_and(|look| look > now) {
            break;
        }
    }
    assert_eq!((count, looks), (8 * 3_600 - 305, 3));
}

#[test]
fn what_cannot_be_expected_is_refused_with_its_field() {
    let (second, week) = (secs(1), secs(7 * 86_400));
    for (expect, field) in [
        (Expect::default(), Some("")),
        (Expect { start_within: Some(secs(0)), ..Expect::default() }, Some("start_within")),
        (Expect { finish_within: Some(week + second), ..Expect::default() }, Some("finish_within")),
        (
            Expect { start_within: Some(secs(20)), finish_within: Some(secs(10)), finish_by: None },
            Some("finish_within"),
        ),
        (Expect { finish_by: TimeOfDay::new(6, 0, 0), ..Expect::default() }, None),
        (Expect { start_within: Some(second), finish_within: Some(second), finish_by: None }, None),
        (Expect { start_within: Some(second), finish_within: Some(week), finish_by: TimeOfDay::new(0, 0, 0) }, None),
    ] {
        assert_eq!(expect.check().err().map(|(field, _)| field), field, "{expect:?}");
    }
}
