//! Monitors: which ends of runs call them, and that a failure calls once, whatever becomes of its next attempt.

use carillon_domain::alert::{Calls, Fact, HeldCalls, JobSubject, Ping, PingKind, Subject, What, calls, wanted_calls};
use carillon_domain::firing::FiringKey;
use carillon_domain::id::JobId;
use carillon_domain::run::{RunRecord, Status, Trigger};
use carillon_domain::time::Timestamp;

use super::{at, ended, fact, manual, record, secs, tried_again};

fn nth(minute: u32) -> Timestamp {
    at("02:00") + secs(u64::from(minute) * 60)
}

/// The firing of the first minute.
fn key() -> FiringKey {
    FiringKey { job: JobId(1), due_at: nth(1), trigger: Trigger::Schedule }
}

/// An attempt at the firing of the first minute; each starts a minute after the one before.
fn attempt(number: u32, status: Status) -> RunRecord {
    RunRecord { attempt: number, due_at: nth(1), first_due_at: nth(1), ..record(1, nth(number), status) }
}

fn never_started(record: RunRecord) -> RunRecord {
    RunRecord { started_at: None, ..record }
}

fn monitored(fact: Fact, ping: Option<Ping>) -> Fact {
    let Subject::Job(job) = fact.subject else { panic!("a monitor is one of a job") };
    Fact { subject: Subject::Job(JobSubject { ping, ..job }), ..fact }
}

fn monitor(name: &str) -> Option<Ping> {
    Some(Ping::of_url(&format!("https://hc-ping.com/{name}")))
}

/// A store of calls that wait.
#[derive(Debug, Default)]
struct World(HeldCalls);

impl World {
    /// One step, which loads no more than a store would: what the facts may touch, and what is due for a look.
    fn step(&mut self, now: Timestamp, facts: &[Fact]) -> Calls {
        let wanted = wanted_calls(facts);
        let is_due = |job: &JobId| self.0[job].iter().any(|held| held.look_at <= now);
        let loaded = self.0.keys().filter(|job| wanted.contains(job) || is_due(job));
        let loaded: HeldCalls = loaded.map(|job| (*job, self.0[job].clone())).collect();
        let made = calls(&loaded, facts, now);
        assert_eq!(made, calls(&self.0, facts, now), "too few are loaded");
        self.0.extend(made.held.clone());
        self.0.retain(|_, held| !held.is_empty());
        made
    }

    /// The minutes of the runs that the monitor `x` hears of, with the kind of each call.
    fn hears(&mut self, now: Timestamp, facts: &[Fact]) -> Vec<(PingKind, Timestamp)> {
        let facts: Vec<Fact> = facts.iter().map(|fact| monitored(fact.clone(), monitor("x"))).collect();
        let made = self.step(now, &facts).made;
        assert!(made.iter().all(|call| call.url.starts_with("https://hc-ping.com/x")), "{made:?}");
        made.into_iter().map(|call| (call.kind, call.at - secs(7))).collect()
    }
}

#[test]
fn calls_that_wait_are_loaded_for_runs_that_may_touch_them() {
    for (name, fact, touches) in [
        ("it succeeds at its first attempt", ended(attempt(1, Status::Succeeded)), false),
        ("it succeeds at its second attempt", ended(attempt(2, Status::Succeeded)), true),
        ("it is tried again", tried_again(attempt(1, Status::Failed), nth(2)), true),
        ("it never started", ended(never_started(attempt(1, Status::Skipped))), true),
    ] {
        let wanted: Vec<JobId> = wanted_calls(&[fact]).into_iter().collect();
        assert_eq!(wanted, if touches { vec![JobId(1)] } else { vec![] }, "{name}");
    }
}

#[test]
fn a_monitor_is_called_at_the_end_of_runs_only() {
    let only_failures = Some(Ping { success: None, ..Ping::of_url("https://hc-ping.com/1") });
    let calls = |fact: Fact| World::default().step(nth(9), &[monitored(fact, only_failures.clone())]).made;
    let end = |minute, status| ended(record(1, nth(minute), status));
    let failure = calls(end(1, Status::TimedOut));
    assert_eq!(
        (failure.len(), failure[0].kind, failure[0].url.as_str()),
        (1, PingKind::Failure, "https://hc-ping.com/1/fail")
    );
    assert_eq!(failure, calls(end(1, Status::TimedOut)), "the same run has the same id");
    assert_ne!(failure[0].id, calls(end(2, Status::TimedOut))[0].id);
    for silent in [
        end(1, Status::Succeeded),
        end(1, Status::Cancelled),
        end(1, Status::Skipped),
        tried_again(attempt(1, Status::Failed), nth(2)),
    ] {
        assert_eq!(calls(silent), []);
    }
    assert_eq!(calls(tried_again(attempt(1, Status::Lost), nth(2))).len(), 1, "a lost run counts at once");
}

/// Each row: what becomes of the next attempt, and what the monitor hears then. `1` and `2` are the minutes of the attempts.
#[test]
fn a_failure_calls_once_whatever_becomes_of_its_next_attempt() {
    let dropped = || fact(1, nth(5), What::RetryDropped(key()));
    let failure = |minute| vec![(PingKind::Failure, nth(minute))];
    for (what, facts, heard) in [
        ("it succeeds", vec![ended(attempt(2, Status::Succeeded))], vec![(PingKind::Success, nth(2))]),
        ("it fails for good", vec![ended(attempt(2, Status::Failed))], failure(2)),
        ("it times out for good", vec![ended(attempt(2, Status::TimedOut))], failure(2)),
        ("its node dies", vec![ended(attempt(2, Status::Lost))], failure(2)),
        ("it may have started in lost commits", vec![ended(never_started(attempt(2, Status::Lost)))], failure(2)),
        ("a person ends it while it runs", vec![ended(attempt(2, Status::Cancelled))], vec![]),
        ("a person cancels it before it starts", vec![ended(never_started(attempt(2, Status::Cancelled)))], failure(1)),
        ("it is skipped", vec![ended(never_started(attempt(2, Status::Skipped)))], failure(1)),
        ("it is dropped without a record", vec![dropped()], failure(1)),
        ("the job is deleted", vec![fact(1, nth(5), What::Gone)], failure(1)),
        (
            "another attempt fails, and its next one is dropped",
            vec![tried_again(attempt(2, Status::Failed), nth(3)), dropped()],
            failure(2),
        ),
        (
            "another firing goes on",
            vec![ended(manual(attempt(1, Status::Succeeded))), dropped()],
            vec![(PingKind::Success, nth(1)), (PingKind::Failure, nth(1))],
        ),
    ] {
        // In steps of their own, and in one.
        let mut world = World::default();
        assert_eq!(world.hears(nth(1), &[tried_again(attempt(1, Status::Failed), nth(2))]), [], "{what}");
        let apart: Vec<_> = facts.iter().flat_map(|fact| world.hears(nth(5), std::slice::from_ref(fact))).collect();
        assert_eq!(apart, heard, "{what}");
        assert!(world.0.is_empty(), "{what}: {world:?}");
        assert_eq!(world.hears(nth(6), &[dropped(), fact(1, nth(6), What::Gone)]), [], "{what}: nothing twice");
        let first = std::iter::once(tried_again(attempt(1, Status::Failed), nth(2)));
        let together: Vec<Fact> = first.chain(facts).collect();
        let mut world = World::default();
        assert_eq!((world.hears(nth(5), &together), world.0), (heard, HeldCalls::new()), "{what}, in one step");
    }
}

#[test]
fn a_call_that_waits_is_looked_at_each_minute() {
    let mut world = World::default();
    let look = |world: &World| world.0[&JobId(1)][0].look_at;
    world.hears(nth(1), &[tried_again(attempt(1, Status::Failed), nth(2))]);
    assert_eq!(look(&world), nth(3), "a minute after the start of the next attempt");
    assert_eq!(world.step(nth(2), &[]), Calls::default());
    assert_eq!(world.hears(nth(3), &[]), [], "it still waits");
    assert_eq!(look(&world), nth(4));
}

#[test]
fn a_call_that_waits_follows_the_definition() {
    let failed = || tried_again(attempt(1, Status::Failed), nth(2));
    let dropped = || fact(1, nth(5), What::RetryDropped(key()));
    let urls = |now: Option<Ping>, then: What| {
        let mut world = World::default();
        world.step(nth(1), &[monitored(failed(), monitor("x"))]);
        let made = world.step(nth(5), &[monitored(fact(1, nth(5), then), now)]).made;
        (made.into_iter().map(|call| call.url).collect::<Vec<_>>(), world.0.is_empty())
    };
    assert_eq!(urls(monitor("y"), dropped().what), (vec!["https://hc-ping.com/y/fail".to_owned()], true));
    assert_eq!(urls(None, dropped().what), (vec![], true), "it has no monitor any more");
    let gone = (vec!["https://hc-ping.com/x/fail".to_owned()], true);
    assert_eq!(urls(None, What::Gone), gone, "a deleted job has no definition, so the address is the last one");
    let seen = || What::Seen { starts: false, ends: false };
    assert_eq!(urls(monitor("y"), seen()), (vec![], false), "it waits on");
    assert_eq!(urls(None, seen()), (vec![], true), "nobody asks for it any more");
    let only_success = Some(Ping { failure: None, ..Ping::of_url("https://hc-ping.com/x") });
    let mut world = World::default();
    world.step(nth(1), &[monitored(failed(), only_success)]);
    assert!(world.0.is_empty(), "no call, so none waits");
}

#[test]
fn the_calls_of_one_job_leave_those_of_another_alone() {
    let failed = |job: u64| RunRecord { job: JobId(job), ..attempt(1, Status::Failed) };
    let mut world = World::default();
    let both = [tried_again(failed(1), nth(2)), tried_again(failed(2), nth(2))];
    world.hears(nth(1), &both);
    let waits = |world: &World| world.0.keys().copied().collect::<Vec<_>>();
    assert_eq!(waits(&world), [JobId(1), JobId(2)]);
    assert_eq!(world.hears(nth(2), &[fact(2, nth(2), What::Gone)]).len(), 1);
    assert_eq!(waits(&world), [JobId(1)]);
    let healthy = ended(record(1, nth(9), Status::Succeeded));
    assert!(wanted_calls(&[monitored(healthy, monitor("x"))]).is_empty(), "a healthy run needs no look");
}
