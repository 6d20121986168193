//! Incidents: what is told of a trouble from its first fact until it is over.

use std::collections::BTreeMap;

use carillon_domain::alert::{
    Because, Broken, Class, CronMail, Ended, Fact, JobSubject, Route, Selection, State, Subject, Trouble, Verdict,
    What, When, retry_of, watch,
};
use carillon_domain::firing::{ConcurrentRun, Firing, FiringKey, JobState, Pause, Phase, Waiting};
use carillon_domain::id::JobId;
use carillon_domain::job::Job;
use carillon_domain::run::{DueRange, RunRecord, Status, Trigger};
use carillon_domain::time::Timestamp;

use super::{World, at, ended, fact, invoice, manual, of_node, record, route, secs, tried_again};

fn nth(minute: u32) -> Timestamp {
    at("02:00") + secs(u64::from(minute) * 60)
}

fn key() -> FiringKey {
    FiringKey { job: JobId(1), due_at: nth(1), trigger: Trigger::Schedule }
}

fn end(minute: u32, status: Status) -> Fact {
    ended(record(1, nth(minute), status))
}

#[test]
fn each_failure_is_told_and_its_place_in_the_row() {
    let mut world = World::new(vec![route("ops")]);
    let told: Vec<_> = (1..=4)
        .flat_map(|n| world.step(nth(n), &[end(n, if n == 2 { Status::TimedOut } else { Status::Failed })]))
        .collect();
    let endings: Vec<&str> = told.iter().map(|notice| notice.sentence.rsplit(". ").next().unwrap()).collect();
    assert_eq!(
        endings[1..],
        ["It is the 2nd failure in a row.", "It is the 3rd failure in a row.", "It is the 4th failure in a row."]
    );
    assert!(told.iter().all(|notice| notice.thread == told[0].thread), "mails of one trouble make one thread");
    assert_eq!(told.iter().map(|notice| notice.repeats).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let ids: std::collections::BTreeSet<_> = told.iter().map(|notice| notice.id).collect();
    assert_eq!(ids.len(), 4);
    let run = |notice: &carillon_domain::alert::Notice| (notice.run, notice.due_at);
    assert_eq!(run(&told[3]), (Some(record(1, nth(4), Status::Failed).id), Some(nth(4))));
    let over = world.step(nth(5), &[end(5, Status::Succeeded)]);
    assert_eq!((over[0].when, run(&over[0])), (When::Failed, (Some(record(1, nth(5), Status::Succeeded).id), None)));
    assert!(world.incidents.is_empty(), "nothing is kept of what is over");
    assert!(world.told(nth(6), &[end(6, Status::Succeeded)]).is_empty());
}

#[test]
fn after_waits_for_failures_in_a_row() {
    let mut world = World::new(vec![Route { after: 3, ..route("ops") }]);
    for (minute, status, told) in [
        (1, Status::Failed, vec![]),
        (2, Status::Lost, vec![]),
        (3, Status::Succeeded, vec![]),
        (4, Status::Failed, vec![]),
        (5, Status::Cancelled, vec![]),
        (6, Status::TimedOut, vec![]),
        (7, Status::Failed, vec!["failed open"]),
        (8, Status::Failed, vec!["failed open"]),
        (9, Status::Succeeded, vec!["failed recovered"]),
        (10, Status::Failed, vec![]),
    ] {
        assert_eq!(world.told(nth(minute), &[end(minute, status)]), told, "{minute}");
    }
    let skipped = world.told(nth(11), &[end(11, Status::Skipped)]);
    assert_eq!(skipped, ["skipped open"], "a due time that did not run is no failure");
}

#[test]
fn a_route_is_told_only_of_what_it_lists() {
    let only = |when: &[When]| Route { when: when.iter().copied().collect(), ..route("ops") };
    for (route, facts, told) in [
        (only(&[When::Failed]), vec![Status::TimedOut, Status::Lost, Status::Failed], vec!["failed open"]),
        (only(&[When::Failed]), vec![Status::Failed, Status::Succeeded], vec!["failed open"]),
        (
            only(&[When::TimedOut, When::Recovered]),
            vec![Status::TimedOut, Status::Failed, Status::Succeeded],
            vec!["timed_out open", "timed_out recovered"],
        ),
        (only(&[When::Skipped]), vec![Status::Failed, Status::Succeeded], vec![]),
        (
            only(&[When::Skipped, When::Recovered]),
            vec![Status::Skipped, Status::Skipped, Status::Failed],
            vec!["skipped open", "skipped open", "skipped recovered"],
        ),
    ] {
        let facts: Vec<_> = (1..).zip(facts).map(|(n, status)| end(n, status)).collect();
        assert_eq!(World::new(vec![route.clone()]).told(nth(9), &facts), told, "{route:?}");
    }
}

#[test]
fn a_trouble_that_a_route_does_not_list_is_not_told_to_it() {
    let mut world = World::new(vec![Route { when: [When::Failed, When::DiskFull].into(), ..route("ops") }]);
    let silent = of_node("a", nth(0), What::Trouble(Trouble::NodeLost { last_heard_at: nth(0), runs: 1 }));
    assert!(world.told(nth(1), &[silent]).is_empty() && world.incidents.is_empty());
}

#[test]
fn a_due_time_that_did_not_run_has_no_run_and_each_subject_a_thread() {
    let told = World::new(vec![route("ops")]).step(nth(1), &[end(1, Status::Skipped)]);
    assert_eq!((told[0].run, told[0].due_at), (None, Some(nth(1))));
    let drift = |node: &str| of_node(node, nth(1), What::Trouble(Trouble::ClockDrift { drift_ms: 900 }));
    let of = |job| ended(record(job, nth(1), Status::Failed));
    let told = World::new(vec![route("ops")]).step(nth(1), &[drift("a"), drift("b"), of(1), of(2)]);
    let threads: std::collections::BTreeSet<_> = told.iter().map(|notice| notice.thread).collect();
    let ids: std::collections::BTreeSet<_> = told.iter().map(|notice| notice.id).collect();
    assert_eq!((threads.len(), ids.len()), (4, 4));
}

#[test]
fn an_incident_is_looked_at_again_when_its_own_route_says_so() {
    let only = Selection { jobs: vec!["invoice-2".into()], ..Selection::default() };
    let mut world = World::new(vec![Route { repeat: Some(secs(3_600)), only, ..route("often") }, route("once")]);
    let of = |job| ended(record(job, nth(1), Status::Failed));
    world.step(nth(1), &[of(1)]);
    world.step(nth(5), &[of(2)]);
    let loaded = watch::Loaded { incidents: world.incidents.clone(), storms: BTreeMap::new() };
    assert_eq!(watch::step(&world.routes, loaded, &[], nth(20)).next_look, Some(nth(65)));
}

/// The definition of the record may be older than the one that the route knows: only [`What::Seen`] tells of the newest.
#[test]
fn a_run_under_other_labels_leaves_an_incident_open() {
    let only = Selection { labels: BTreeMap::from([("team".into(), "data".into())]), ..Selection::default() };
    let mut world = World::new(vec![Route { only, ..route("data") }]);
    world.step(nth(1), &[end(1, Status::Failed)]);
    let mut other = end(2, Status::Failed);
    if let Subject::Job(job) = &mut other.subject {
        job.labels.clear();
    }
    let loaded = watch::Loaded { incidents: world.incidents.clone(), storms: world.storms.clone() };
    assert!(watch::step(&world.routes, loaded, &[other], nth(2)).incidents.is_empty());
}

#[test]
fn with_repeat_an_open_trouble_is_told_once_in_so_long() {
    let mut world = World::new(vec![Route { repeat: Some(secs(4 * 3_600)), ..route("ops") }]);
    assert_eq!(world.told(nth(1), &[end(1, Status::Failed)]), ["failed open"]);
    assert!(world.told(nth(2), &[end(2, Status::Failed)]).is_empty());
    let writes = world.write(nth(3), &[]);
    assert_eq!(writes.incidents.len(), 0, "a step without a fact writes nothing");
    assert!(world.told(nth(240), &[]).is_empty());
    let again = world.step(nth(241), &[]);
    assert_eq!(again.len(), 1);
    let end_of_sentence = "It has not recovered: 2 failures in a row since 02:01:07 UTC on 24 November 2026.";
    assert!(again[0].sentence.ends_with(end_of_sentence), "{}", again[0].sentence);
    assert!(again[0].sentence.starts_with("Job billing/invoice failed at 02:02:07"), "the newest failure is told");
    assert_eq!((again[0].repeats, world.told(nth(242), &[]).len()), (1, 0));
    assert_eq!(world.told(nth(243), &[end(243, Status::Succeeded)]), ["failed recovered"]);
    assert!(world.told(nth(999), &[]).is_empty(), "what is over is not told again");
}

#[test]
fn a_trouble_of_the_cluster_is_told_when_it_begins_and_when_it_is_over() {
    let mut world = World::new(vec![route("ops")]);
    let silent = || of_node("a", nth(0), What::Trouble(Trouble::NodeLost { last_heard_at: nth(0), runs: 1 }));
    let drift = |drift_ms| of_node("a", nth(1), What::Trouble(Trouble::ClockDrift { drift_ms }));
    assert_eq!(world.told(nth(1), &[silent(), drift(900)]), ["node_lost open", "clock_drift open"]);
    assert!(world.told(nth(2), &[drift(1_000)]).is_empty(), "a clock that still differs is no news");
    assert!(world.told(nth(2), &[of_node("b", nth(2), What::Over(When::NodeLost))]).is_empty(), "b was never lost");
    assert_eq!(world.told(nth(3), &[of_node("a", nth(3), What::Over(When::NodeLost))]), ["node_lost recovered"]);
    let away = of_node("a", nth(4), What::Trouble(Trouble::DatabaseAway { from: nth(0), until: nth(4) }));
    assert_eq!(world.told(nth(4), &[away.clone(), away]), ["database_away open", "database_away open"]);
    assert_eq!(world.incidents.len(), 1, "the clock's");
    let narrow = carillon_domain::alert::Selection { namespaces: vec!["billing".into()], ..Default::default() };
    let mut narrow = World::new(vec![Route { only: narrow, ..route("ops") }]);
    assert!(narrow.told(nth(1), &[silent()]).is_empty(), "a route for jobs is not told of the cluster");
}

#[test]
fn a_failure_that_is_tried_again_waits_for_its_last_attempt() {
    let attempt = |attempt, status| RunRecord { attempt, ..record(1, nth(attempt), status) };
    let same = |attempt_number: u32, status| RunRecord { due_at: nth(1), ..attempt(attempt_number, status) };
    let mut world = World::new(vec![route("ops")]);
    assert!(world.told(nth(1), &[tried_again(same(1, Status::Failed), nth(2))]).is_empty());
    assert!(world.told(nth(2), &[ended(same(2, Status::Succeeded))]).is_empty(), "it went well in the end");
    assert!(world.incidents.is_empty());
    world.step(nth(1), &[tried_again(same(1, Status::Failed), nth(2))]);
    world.step(nth(2), &[tried_again(same(2, Status::TimedOut), nth(3))]);
    let last = world.step(nth(3), &[ended(same(3, Status::Failed))]);
    assert_eq!(last.len(), 1, "one firing failed, however many attempts it had");
    assert!(last[0].sentence.ends_with("It was attempt 3."), "{}", last[0].sentence);
    let mut lost = World::new(vec![route("ops")]);
    assert_eq!(
        lost.told(nth(1), &[tried_again(same(1, Status::Lost), nth(2))]),
        ["lost open"],
        "a lost run counts at once"
    );
}

#[test]
fn a_failure_whose_next_attempt_is_dropped_is_told_after_all() {
    let failed = || tried_again(record(1, nth(1), Status::Failed), nth(2));
    let dropped = || fact(1, nth(5), What::RetryDropped(key()));
    let mut world = World::new(vec![route("ops")]);
    let touched: Vec<Class> = watch::wanted(&world.routes, &[dropped()]).into_iter().map(|key| key.class).collect();
    assert_eq!(touched, [Class::Outcome]);
    world.step(nth(1), &[failed()]);
    let look = world.incidents.values().next().and_then(|incident| incident.next_look(&world.routes[0]));
    assert_eq!(look, Some(nth(3)), "a minute after the start of the next attempt");
    assert!(world.told(nth(3), &[]).is_empty(), "it still waits");
    assert_eq!(world.incidents.values().next().unwrap().held_back[0].look_at, nth(4));
    assert_eq!(world.told(nth(5), &[dropped()]), ["failed open"]);
    assert!(world.told(nth(6), &[dropped()]).is_empty());
    // A person cancels the waiting attempt, which leaves a record of its own.
    let mut world = World::new(vec![route("ops")]);
    world.step(nth(1), &[failed()]);
    let cancelled = RunRecord { attempt: 2, due_at: nth(1), started_at: None, ..record(1, nth(2), Status::Cancelled) };
    assert_eq!(world.told(nth(2), &[ended(cancelled)]), ["failed open"]);
    // Another firing says nothing about it.
    let mut world = World::new(vec![route("ops")]);
    world.step(nth(1), &[failed()]);
    assert!(world.told(nth(2), &[ended(manual(record(1, nth(1), Status::Succeeded)))]).is_empty());
    assert_eq!(world.told(nth(5), &[dropped()]), ["failed open"]);
}

#[test]
fn whether_a_failure_is_tried_again_is_seen_in_rows_and_later_records() {
    let job = Job::new(("billing", "invoice"), "@every 60s", "{}");
    let row = JobState::new(JobId(1), &job.timeline(at("01:00")).unwrap(), 1, at("01:00")).unwrap();
    let failed = record(1, nth(1), Status::Failed);
    let again = Firing::regular(nth(1)).next_attempt(nth(2));
    let waiting = JobState { armed: Some(again), ..row.clone() };
    assert_eq!(retry_of(key(), 1, Some(&waiting), &[], &[]), Some(nth(2)));
    assert_eq!(retry_of(key(), 1, Some(&row), &[], &[]), None, "the next due time is no attempt");
    let pause = Some(Pause { since: nth(1), until: None, reason: None });
    let paused = JobState { pause, ..waiting.clone() };
    assert_eq!(retry_of(key(), 1, Some(&paused), &[], &[]), None, "the end of a pause drops it");
    assert_eq!(retry_of(key(), 1, None, &[], std::slice::from_ref(&failed)), None);
    let second = RunRecord { attempt: 2, started_at: Some(nth(2)), ..failed.clone() };
    assert_eq!(
        retry_of(key(), 1, Some(&row), &[], std::slice::from_ref(&second)),
        Some(nth(2)),
        "it has ended already"
    );
    let waiting_beside = ConcurrentRun {
        key: key(),
        version: 1,
        phase: Phase::Idle,
        waiting: Some(Waiting { run: None, firing: again }),
        cancel: None,
        withdrawn: false,
    };
    assert_eq!(retry_of(key(), 1, Some(&row), std::slice::from_ref(&waiting_beside), &[]), Some(nth(2)));
    let other = FiringKey { due_at: nth(7), ..key() };
    assert_eq!(retry_of(other, 1, Some(&waiting), &[waiting_beside], &[]), None);
    assert_eq!(retry_of(key(), 2, Some(&waiting), &[], &[failed]), None, "an earlier attempt is none");
}

#[test]
fn a_deleted_job_is_forgotten_without_a_word() {
    let mut world = World::new(vec![Route { repeat: Some(secs(60)), ..route("ops") }]);
    world.step(nth(1), &[end(1, Status::Failed), end(2, Status::Skipped)]);
    assert!(world.told(nth(1), &[fact(1, nth(2), What::Gone)]).is_empty());
    assert!(world.incidents.is_empty() && world.told(nth(99), &[]).is_empty());
}

/// A job that leaves a route, or expects less, takes its incidents there along. Nobody asks for their end.
#[test]
fn incidents_that_nobody_asks_for_any_more_are_closed_without_a_word() {
    let labelled =
        |label: &str| Selection { labels: BTreeMap::from([("team".into(), label.into())]), ..Selection::default() };
    let late = |when| {
        let due = DueRange { count: 1, first: nth(1), last: nth(1) };
        let broken = Broken { when, due, limit: nth(1), because: Because::NotStarted, run: None };
        fact(1, nth(1), What::Judged(Verdict::Broken(broken)))
    };
    let seen = |team: &str, starts, ends| {
        let job = JobSubject { labels: BTreeMap::from([("team".into(), team.into())]), ..invoice(1) };
        Fact { at: nth(2), subject: Subject::Job(job), what: What::Seen { starts, ends } }
    };
    let all = [Class::Outcome, Class::LateStart, Class::LateFinish];
    for (seen, open) in [
        (seen("data", true, true), all.to_vec()),
        (seen("data", false, true), vec![Class::Outcome, Class::LateFinish]),
        (seen("data", true, false), vec![Class::Outcome, Class::LateStart]),
        (seen("web", true, true), vec![]),
    ] {
        let mut world = World::new(vec![Route { only: labelled("data"), ..route("data") }, route("everything")]);
        world.step(nth(1), &[end(1, Status::Failed), late(When::LateStart), late(When::LateFinish)]);
        assert_eq!(world.incidents.len(), 6);
        assert!(world.told(nth(2), std::slice::from_ref(&seen)).is_empty(), "{seen:?}");
        let left = world.incidents.keys().filter(|key| key.route == "data");
        assert_eq!(left.map(|key| key.class).collect::<Vec<_>>(), open, "{seen:?}");
        let elsewhere = world.incidents.keys().filter(|key| key.route == "everything").count();
        assert_eq!(elsewhere, if open.is_empty() { 3 } else { open.len() }, "{seen:?}");
        let recovered = world.told(nth(3), &[end(3, Status::Succeeded)]);
        assert_eq!(recovered.len(), if open.is_empty() { 1 } else { 2 }, "{seen:?}: {recovered:?}");
    }
}

#[test]
fn incidents_of_a_route_that_is_gone_go_too() {
    let mut world = World::new(vec![Route { repeat: Some(secs(60)), ..route("ops") }]);
    world.step(nth(1), &[end(1, Status::Failed)]);
    let loaded = watch::Loaded { incidents: world.incidents.clone(), storms: world.storms.clone() };
    let writes = watch::step(&[], loaded, &[], nth(9));
    assert!(writes.notices.is_empty() && writes.next_look.is_none());
    assert!(writes.incidents.values().all(Option::is_none) && writes.storms.values().all(Option::is_none));
    assert_eq!((writes.incidents.len(), writes.storms.len()), (1, 1));
}

fn with_output(status: Status, change: impl FnOnce(&mut JobSubject)) -> Fact {
    let mut fact = ended(record(1, nth(1), status));
    if let (What::Ended(ended), Subject::Job(job)) = (&mut fact.what, &mut fact.subject) {
        *ended = Ended { has_output: true, ..ended.clone() };
        change(job);
    }
    fact
}

#[test]
fn output_is_told_once_for_each_run_that_wrote_some() {
    let only = Route { when: [When::Output].into(), ..route("mail") };
    let mut world = World::new(vec![only, route("ops")]);
    let cron = CronMail { user: "root".into(), command: "backup".into() };
    let told = world.step(nth(2), &[with_output(Status::Failed, |job| job.cron = Some(cron.clone()))]);
    let seen: Vec<_> = told.iter().map(|n| (n.route.as_str(), n.when, n.with_output, n.cron_mail.as_ref())).collect();
    assert_eq!(seen, [("mail", When::Output, true, Some(&cron)), ("ops", When::Failed, true, None)]);
    let quiet = World::new(vec![route("ops")]).step(nth(2), &[end(2, Status::Failed)]);
    assert!(!quiet[0].with_output, "it wrote none");
    let over = world.step(nth(3), &[with_output(Status::Succeeded, |_| ())]);
    let seen: Vec<_> = over.iter().map(|n| (n.when, n.state, n.with_output)).collect();
    let output = (When::Output, State::Open, true);
    assert_eq!(seen, [output, (When::Failed, State::Recovered, false), output], "a recovery has no output");
    assert!(world.told(nth(4), &[end(4, Status::Succeeded)]).is_empty(), "a run without output sends no mail");
}
