//! Concurrent runs of a job that no longer allows overlap, and the fencing tokens of all rows.

use carillon_domain::firing::{Event, FiringKey, TransitionKind};
use carillon_domain::job::{Job, Misfire, MisfirePolicy, Overlap};
use carillon_domain::run::Status;

use super::fixture::{JobFixture, at, ending, me, misfire, retrying, secs};

fn finish_concurrent(fixture: &mut JobFixture, key: FiringKey, now: i64, status: Status) {
    fixture.now = at(now);
    let run = fixture.concurrent[&key].phase.held().unwrap().run;
    fixture.apply_concurrent(key, &Event::Finish { session: me(), run, ending: ending(status, at(now)) }).unwrap();
}

/// The concurrent run of second 60 executes, and the job no longer allows overlap.
fn once_allowed(overlap: Overlap) -> (JobFixture, FiringKey) {
    let mut fixture = JobFixture::new(retrying(Overlap::Allow, 2, 30));
    fixture.claim(60).unwrap();
    assert_eq!(fixture.start(60), Ok(TransitionKind::StartedConcurrently));
    let key = *fixture.concurrent.keys().next().unwrap();
    fixture.update(70, Job { overlap, ..fixture.job.clone() }).unwrap();
    (fixture, key)
}

#[test]
fn a_concurrent_run_counts_as_the_previous_run_when_overlap_is_no_longer_allowed() {
    let (mut skip, key) = once_allowed(Overlap::Skip);
    skip.claim(120).unwrap();
    assert_eq!((skip.start(120), skip.armed().due_at), (Ok(TransitionKind::Deferred), at(180)));
    assert_eq!(skip.history(), ["schedule 120 skipped(overlap)"]);
    finish_concurrent(&mut skip, key, 130, Status::Succeeded);
    assert_eq!(skip.run(180).firing.due_at, at(180));

    let (mut delay, key) = once_allowed(Overlap::Delay);
    delay.claim(120).unwrap();
    assert_eq!(delay.start(120), Ok(TransitionKind::Deferred));
    assert_eq!((delay.armed().due_at, delay.row().claim_at()), (at(120), Some(at(121))), "claimable again in a second");
    delay.claim(121).unwrap();
    finish_concurrent(&mut delay, key, 170, Status::Succeeded);
    assert_eq!(
        (delay.start(170), delay.held().firing.due_at),
        (Ok(TransitionKind::Started), at(120)),
        "a delay is no misfire"
    );

    let (mut replace, key) = once_allowed(Overlap::Replace);
    replace.claim(120).unwrap();
    assert_eq!(replace.start(120), Ok(TransitionKind::Deferred));
    assert!(replace.concurrent[&key].cancel.is_some(), "the older run is asked to end");
    replace.claim(121).unwrap();
    finish_concurrent(&mut replace, key, 122, Status::Cancelled);
    assert_eq!(replace.start(122), Ok(TransitionKind::Started));
    assert_eq!(replace.history(), ["schedule 60 cancelled(replaced)"]);
}

/// It is no misfire, however long the other run lives.
#[test]
fn a_deferred_firing_starts_whatever_the_grace_is() {
    let mut fixture = JobFixture::new(retrying(Overlap::Allow, 2, 30));
    fixture.claim(60).unwrap();
    fixture.start(60).unwrap();
    let key = *fixture.concurrent.keys().next().unwrap();
    let misfire = Misfire { policy: MisfirePolicy::Skip, grace: secs(10) };
    fixture.update(70, Job { overlap: Overlap::Delay, misfire, ..fixture.job.clone() }).unwrap();
    fixture.claim(120).unwrap();
    assert_eq!(fixture.start(120), Ok(TransitionKind::Deferred));
    finish_concurrent(&mut fixture, key, 150, Status::Succeeded);
    fixture.claim(150).unwrap();
    assert_eq!((fixture.start(150), fixture.held().firing.due_at), (Ok(TransitionKind::Started), at(120)));
}

#[test]
fn the_backoff_of_a_concurrent_run_counts_as_running_and_waits_for_other_runs() {
    let (mut fixture, key) = once_allowed(Overlap::Delay);
    finish_concurrent(&mut fixture, key, 80, Status::Failed);
    fixture.claim(120).unwrap();
    assert_eq!(fixture.start(120), Ok(TransitionKind::Deferred));

    let mut manual = JobFixture::new(Job { overlap: Overlap::Allow, ..misfire(MisfirePolicy::Skip, 30) });
    let (_, first) = manual.trigger(1).unwrap();
    let (_, second) = manual.trigger(2).unwrap();
    manual.update(3, misfire(MisfirePolicy::Skip, 30)).unwrap();
    let keys: Vec<FiringKey> = manual.concurrent.keys().copied().collect();
    for (key, run) in keys.iter().zip([first, second]) {
        manual.apply_concurrent(*key, &Event::Claim { session: me(), run, until: at(3), losses_until: None }).unwrap();
    }
    let mut start = |which: usize| {
        let run = [first, second][which];
        manual.apply_concurrent(keys[which], &Event::Start { session: me(), run })
    };
    assert_eq!((start(0), start(1)), (Ok(TransitionKind::Started), Ok(TransitionKind::Deferred)));
    assert_eq!(manual.concurrent[&keys[1]].claim_at(), Some(at(4)));
}

#[test]
fn a_manual_run_is_deferred_like_any_other() {
    let (mut skip, _) = once_allowed(Overlap::Skip);
    let (_, run) = skip.trigger(71).unwrap();
    skip.claim(71).unwrap();
    assert_eq!(skip.start(71), Ok(TransitionKind::Deferred));
    assert_eq!((skip.records[0].id, skip.history()[0].as_str()), (run, "manual 71 skipped(overlap)"));
    assert_eq!(skip.armed().due_at, at(120));

    let (mut delay, key) = once_allowed(Overlap::Delay);
    let (_, run) = delay.trigger(71).unwrap();
    delay.claim(71).unwrap();
    assert_eq!((delay.start(71), delay.row().claim_at()), (Ok(TransitionKind::Deferred), Some(at(72))), "not at once");
    finish_concurrent(&mut delay, key, 72, Status::Succeeded);
    assert_eq!(delay.run(72).run, run);
}

#[test]
fn a_backlog_runs_one_at_a_time_even_if_the_job_allows_overlap() {
    let catch_up = Misfire { policy: MisfirePolicy::CatchUp, grace: secs(0) };
    let mut fixture =
        JobFixture::new(Job { overlap: Overlap::Allow, misfire: catch_up, ..misfire(MisfirePolicy::CatchUp, 0) });
    for due in [60, 120, 180] {
        fixture.claim(190).unwrap();
        assert_eq!((fixture.start(190), fixture.held().firing.due_at), (Ok(TransitionKind::Started), at(due)));
        assert!(fixture.claim(190).is_err(), "one at a time");
        fixture.finish(190, Status::Succeeded).unwrap();
    }
    fixture.claim(240).unwrap();
    assert_eq!(fixture.start(240), Ok(TransitionKind::StartedConcurrently), "a firing on time runs concurrently again");
}

#[test]
fn a_manual_run_is_no_part_of_a_backlog() {
    let mut fixture = JobFixture::new(misfire(MisfirePolicy::CatchUp, 0));
    fixture.trigger(100).unwrap();
    assert_eq!(fixture.run(310).firing.due_at, at(60));
    fixture.finish(311, Status::Succeeded).unwrap();
    fixture.pause(312, None).unwrap();
    fixture.update(313, Job { overlap: Overlap::Allow, ..fixture.job.clone() }).unwrap();
    fixture.claim(314).unwrap();
    assert_eq!((fixture.start(314), fixture.concurrent.len()), (Ok(TransitionKind::StartedConcurrently), 1));
}

#[test]
fn fencing_tokens_grow_over_all_starts_of_a_job() {
    let mut fixture = JobFixture::new(retrying(Overlap::Allow, 3, 30));
    fixture.claim(60).unwrap();
    fixture.start(60).unwrap();
    let key = *fixture.concurrent.keys().next().unwrap();
    finish_concurrent(&mut fixture, key, 61, Status::Failed);
    fixture.claim(120).unwrap();
    fixture.start(120).unwrap();
    for (event, now) in [("claim", 121), ("start", 121)] {
        fixture.now = at(now);
        let run = fixture.concurrent[&key].phase.held().map_or(fixture.clone().draw(), |held| held.run);
        let session = me();
        let event = if event == "claim" {
            Event::Claim { session, run, until: at(121), losses_until: None }
        } else {
            Event::Start { session, run }
        };
        fixture.apply_concurrent(key, &event).unwrap();
    }
    let tokens: Vec<u64> = fixture.starts.iter().map(|held| held.fencing_token).collect();
    assert!(tokens.is_sorted_by(|before, after| before < after), "{tokens:?}");
    assert_eq!((tokens.len(), tokens[2]), (3, fixture.row().version));
}
