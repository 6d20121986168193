//! Behaviour that is allowed under faults, retries and requests of people; and the figures.

mod world;

use carillon_checker::plan::{Act, Deed};
use carillon_checker::witness::Life;
use carillon_checker::{Evidence, Group, judge};
use world::{Doctor, S, T, alert, ran, well};

type Story = fn(&mut Evidence);

const ALLOWED: &[(&str, Story)] = &[
    ("a misfire that is recorded in the millisecond of its due time", |w| {
        w.skipped("a-3-1", "misfire");
        let due_us = w.record("a-3-1").due_us;
        w.record("a-3-1").finished_us = Some(due_us);
    }),
    ("an attempt after a failure", |w| {
        w.record("r-2-1").status = "failed".into();
        w.record("r-2-1").exit_code = Some(3);
        w.life("r-2-1").end = Some(3);
        w.also(ran("r", 2, 2));
    }),
    ("a lost run that is to run again", |w| {
        w.record("l-2-1").status = "lost".into();
        w.life("l-2-1").end = None;
        w.end("n", T + 2 * S);
        w.also(ran("l", 2, 2));
    }),
    ("a node that dies between the start's commit and its process", |w| {
        w.record("a-2-1").status = "lost".into();
        w.without_life("a-2-1");
        w.end("n", T + 2 * S);
    }),
    ("a frozen node that notices late that it was given up", |w| {
        w.record("a-2-1").status = "lost".into();
        w.life("a-2-1").end = None;
        w.end("n", T + 32 * S);
    }),
    ("a process that is killed", |w| {
        w.record("a-2-1").status = "failed".into();
        w.record("a-2-1").exit_code = None;
        w.life("a-2-1").end = None;
        w.fault(Some("n"), T + 2 * S, T + 2 * S + 100_000).kills_runs = true;
    }),
    ("a newer firing takes the place of a run", |w| {
        w.record("r-2-1").status = "cancelled".into();
        w.record("r-2-1").reason = "replaced".into();
        w.life("r-2-1").end = None;
    }),
    ("a cancel that nobody answered", |w| {
        w.record("a-2-1").status = "cancelled".into();
        let act = w.act("a", Deed::Cancel, T + 2 * S, Some("a-2-1"));
        (act.answered_us, act.status) = (None, 0);
    }),
    ("a pause, and what comes due in it", |w| {
        w.skipped("a-3-1", "paused");
        w.act("a", Deed::Pause, T + 3 * S - 100_000, None);
        w.act("a", Deed::Resume, T + 3 * S + 500_000, None);
        w.record("a-3-1").finished_us = Some(T + 3 * S + 500_500);
    }),
    ("a pause in the middle of a start", |w| {
        w.act("a", Deed::Pause, T + 3 * S + 4_000, None);
        w.act("a", Deed::Resume, T + 3 * S + 500_000, None);
        w.record("a-3-1").started_us = Some(T + 3 * S + 4_500);
    }),
    ("runs beside each other where that is allowed", |w| w.life("b-2-1").last_us += 2 * S),
    ("a stretch that was missed", |w| {
        w.without_life("a-3-1");
        w.without_record("a-3-1");
        w.skipped("a-4-1", "misfire");
        w.record("a-4-1").first_due_us = T + 3 * S;
        w.record("a-4-1").count = 2;
    }),
    ("due while the run before it lived", |w| {
        w.life("a-2-1").last_us = T + 3 * S + 300_000;
        w.record("a-2-1").finished_us = Some(T + 3 * S + 305_000);
        w.skipped("a-3-1", "overlap");
    }),
    ("a database whose clock is ahead", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).moves_clock = true;
        w.life("a-3-1").first_us = T + 3 * S - 500_000;
    }),
    ("a run whose record went with lost commits", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        let (life, _) = ran("a", 3, 1);
        w.skipped("a-3-1", "the database went back in time: nobody knows whether it started");
        w.record("a-3-1").status = "lost".into();
        w.record("a-3-1").id = "given up".into();
        w.lives.push(life);
    }),
    ("a command that was not begun, as the lease was over", |w| {
        w.record("a-3-1").status = "lost".into();
        w.record("a-3-1").reason = "the node did not renew its lease in time".into();
        w.record("a-3-1").exit_code = None;
        w.lives.retain(|life| life.run != "a-3-1");
        w.fault(Some("n"), T + S, T + 3 * S);
    }),
    ("a command that was killed as the lease was over, which its node renewed right after", |w| {
        w.record("a-3-1").status = "lost".into();
        w.record("a-3-1").reason = "the node did not renew its lease in time".into();
        w.record("a-3-1").exit_code = None;
        w.life("a-3-1").end = None;
        w.fault(Some("n"), T + S, T + 3 * S);
    }),
    ("a second attempt, when the record of the first went with lost commits", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        w.record("r-3-1").attempt = 2;
        w.life("r-3-1").attempt = 2;
    }),
    ("a run whose job a person changed while nobody knew of it", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        let mut record = w.record("a-3-1").clone();
        (record.id, record.status, record.reason) = ("other".into(), "skipped".into(), "updated".into());
        record.started_us = None;
        w.records.push(record);
    }),
    ("a run that was forgotten with lost commits and is to run again", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        let (life, _) = ran("l", 3, 1);
        let (first_us, last_us) = (T + 3 * S + 500_000, T + 3 * S + 600_000);
        w.lives.push(Life { token: 350, first_us, last_us, ..life });
    }),
    ("an alert of an end that went with lost commits, together with the message", |w| {
        w.fault(None, T + 2 * S, T + 4 * S).loses_commits = true;
        w.alerts.routes = [("of-a".to_owned(), "a".to_owned())].into();
        w.alerts.heard = vec![alert("failed", "open", "a-2-1")];
    }),
    ("a manual run that was asked for in the millisecond of a due time", |w| {
        w.act("b", Deed::Trigger, T + 3 * S, Some("b-man"));
        let (mut life, mut record) = ran("b", 3, 1);
        (life.run, record.id, record.trigger) = ("b-man".into(), "b-man".into(), "manual".into());
        life.token += 1;
        w.also((life, record));
    }),
    ("nothing is known of what came due after a deletion", |w| {
        w.act("a", Deed::Delete, T + 4 * S + 500_000, None);
        w.without_life("a-5-1");
        w.without_record("a-5-1");
    }),
    ("what was due and had not started is skipped with the job", |w| {
        w.act("a", Deed::Delete, T + 5 * S + 500_000, None);
        w.skipped("a-5-1", "deleted");
    }),
    ("it is not known whether the job was deleted", |w| {
        let act = w.act("a", Deed::Delete, T + 3 * S, None);
        (act.answered_us, act.status) = (None, 0);
        w.without_life("a-4-1");
        w.without_record("a-4-1");
    }),
    ("a manual run that was asked for", |w| {
        w.act("b", Deed::Trigger, T + 3 * S, Some("b-man"));
        let (mut life, mut record) = ran("b", 3, 1);
        (life.run, record.id, record.trigger) = ("b-man".into(), "b-man".into(), "manual".into());
        (life.due_us, record.due_us) = (life.due_us + 1_000, record.due_us + 1_000);
        w.also((life, record));
    }),
];

#[test]
fn what_may_be_is_not_found() {
    for (what, story) in ALLOWED {
        let mut world = well();
        story(&mut world);
        let verdict = judge(&world);
        assert!(verdict.is_clean(), "{what}: {verdict}");
        assert_eq!(verdict.due, 20, "{what}");
    }
}

#[test]
fn each_due_time_has_one_fate_and_it_is_that_of_its_last_attempt() {
    let mut world = well();
    world.record("r-2-1").status = "failed".into();
    world.record("r-2-1").exit_code = Some(3);
    world.life("r-2-1").end = Some(3);
    world.also(ran("r", 2, 2));
    world.skipped("a-3-1", "misfire");
    world.without_life("a-4-1");
    world.without_record("a-4-1");
    let verdict = judge(&world);
    let fates: Vec<_> = verdict.fates.iter().map(|(fate, count)| (fate.as_str(), *count)).collect();
    assert_eq!(fates, [("skipped: misfire", 1), ("succeeded", 18), ("unknown", 1)]);
    assert_eq!((verdict.due, verdict.count(Group::SilentMisses), verdict.starts), (20, 1, 19));
}

#[test]
fn lateness_and_takeover_are_measured_by_the_runs_own_clocks() {
    let mut world = well();
    world.life("a-3-1").first_us += 40_000;
    // The node that had all jobs dies 300 ms after their second run; another goes on with job a 1.71 s later.
    world.fault(Some("n"), T + 2 * S + 300_000, T + 2 * S + 310_000);
    world.end("n", T + 2 * S + 310_000);
    for (job, until) in [("a", 4), ("b", 3), ("r", 3), ("l", 3)] {
        for n in until..=5 {
            world.record(&format!("{job}-{n}-1")).session = Some("other".into());
            world.record(&format!("{job}-{n}-1")).node = Some("o".into());
        }
    }
    let verdict = judge(&world);
    assert!(verdict.is_clean(), "{verdict}");
    let late = &verdict.lateness;
    assert_eq!(
        (late.by_witness_ms.count(), late.by_witness_ms.at(0.5), late.by_witness_ms.at(1.0)),
        (15, Some(10), Some(50))
    );
    assert_eq!((late.by_records_ms.at(1.0), late.calm_ms.count()), (Some(5), 6));
    assert_eq!(verdict.takeovers.len(), 1);
    assert_eq!(verdict.takeovers[0].waits_ms, [710, 710, 710, 1_710]);
    let [(_, first), (_, last), (_, each), (_, able)] = verdict.takeover_ms();
    assert_eq!((first.at(0.5), last.at(0.5), each.count()), (Some(710), Some(1_710), 4));
    assert_eq!(able.at(1.0), Some(1_010), "they were due a second after the second run of each");
    world.outages = vec![(T, T + S), (T + 2 * S + 500_000, T + 2 * S + 600_000), (T + 3 * S + 500_000, T + 9 * S)];
    let verdict = judge(&world);
    assert_eq!(verdict.takeovers[0].waits_ms, [710, 710, 710, 1_710], "the whole is told as well");
    assert_eq!(verdict.takeovers[0].able_ms, [10, 10, 10, 500]);
    world.outages.clear();
    let act =
        |deed, asked_us| Act { job: "a".into(), deed, run: None, asked_us, answered_us: Some(asked_us), status: 200 };
    world.plan.acts = vec![act(Deed::Pause, T + 3 * S + 100_000), act(Deed::Resume, T + 3 * S + 300_000)];
    assert_eq!(judge(&world).takeovers[0].able_ms, [10, 10, 10, 810]);
}
