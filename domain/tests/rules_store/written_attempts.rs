//! Several attempts of one firing are written back after lost commits, each by the node that ran it.

use std::collections::BTreeMap;
use std::sync::Arc;

use carillon_domain::firing::{Event, Firing, Held, Waiting};
use carillon_domain::id::JobId;
use carillon_domain::job::{Job, Overlap, Retry};
use carillon_domain::node::port::{KnownRun, WriteBackAnswer};
use carillon_domain::run::{Ending, RunRecord, Status, Trigger};
use carillon_domain::store::{ConcurrentJob, JobRow, Need, Rows, write_back};
use carillon_domain::time::Timestamp;

use super::rows::{JOB, after, at, decided, job, row, run};
use super::write_back::{Answer, ended, held_after, known, request, rows_of, statuses, written};

/// The due time that waits in the job's own row, and the further attempts that wait in any row.
fn waiting_after(written: &Answer) -> (Option<Timestamp>, Vec<u32>) {
    let own = written.write.jobs.first().and_then(|write| write.after.as_ref());
    let armed = own.and_then(|state| state.armed);
    let beside = written.write.concurrent.iter().filter_map(|write| Some(write.after.as_ref()?.waiting?.firing));
    let attempts = armed.into_iter().chain(beside).map(|firing| firing.attempt).filter(|attempt| *attempt > 1);
    (armed.map(|firing| firing.due_at), attempts.collect())
}

/// The first attempt ended at one node and the second one ran at another. Where the second is known already, the end of the first is
/// recorded, and nothing waits for a second one again.
#[test]
fn an_attempt_that_was_followed_by_another_is_not_followed_again() {
    let retrying = |overlap| Job { retry: Retry { max_attempts: 3, ..Retry::default() }, overlap, ..job() };
    let second = |status: Option<Status>| {
        let one = known(2, 10);
        let firing = Firing { trigger: Trigger::Schedule, ..one.held.firing.next_attempt(at(12)) };
        let ended = status.map(|status| Ending::new(status, at(14)));
        KnownRun { held: Held { firing, started_at: Some(at(12)), ..one.held }, ended, ..one }
    };
    let first = || ended(1, 10, Status::Failed);
    for overlap in [Overlap::Skip, Overlap::Allow] {
        for (name, later) in [
            ("it succeeded", second(Some(Status::Succeeded))),
            ("it failed, and a third waits", second(Some(Status::Failed))),
            ("it lives", second(None)),
        ] {
            let name = format!("{overlap:?}, {name}");
            let told = |written: &Answer| {
                statuses(written).into_iter().map(|(.., attempt, status)| (attempt, status)).collect::<Vec<_>>()
            };
            let expected = later.ended.as_ref().map(|ending| (2, ending.status));

            // In one request, in either order.
            let forth = written(vec![first(), later.clone()], row(&retrying(overlap)));
            let back = written(vec![later.clone(), first()], row(&retrying(overlap)));
            assert_eq!(
                told(&forth),
                [Some((1, Status::Failed)), expected].into_iter().flatten().collect::<Vec<_>>(),
                "{name}"
            );
            assert_eq!(
                told(&back),
                [expected, Some((1, Status::Failed))].into_iter().flatten().collect::<Vec<_>>(),
                "{name}"
            );
            assert_eq!(held_after(&forth), held_after(&back), "{name}");
            assert_eq!(waiting_after(&forth), waiting_after(&back), "{name}");
            let waits = expected.is_some_and(|(_, status)| status == Status::Failed).then_some(3);
            assert_eq!(waiting_after(&back).1, waits.into_iter().collect::<Vec<u32>>(), "{name}");

            // In a later request, by another node.
            let mut rows = rows_of(row(&retrying(overlap)));
            let done = decided(write_back(&request(vec![later], true), &rows));
            let definition = row(&retrying(overlap)).definition;
            let state = done.write.jobs[0].after.clone().expect("the row");
            rows = Rows { history: rows.history, ..rows_of(JobRow { state, definition: definition.clone() }) };
            for write in &done.write.concurrent {
                let beside = Arc::unwrap_or_clone(write.after.clone().expect("a row beside"));
                rows.add_concurrent(ConcurrentJob { row: beside, definition: definition.clone() });
            }
            rows.add_history(vec![JOB], at(0), done.write.records.clone());
            let late = decided(write_back(&request(vec![first()], true), &rows));
            assert_eq!(told(&late), [(1, Status::Failed)], "{name}");
            assert!(late.write.concurrent.is_empty(), "{name}: {:?}", late.write.concurrent);
            assert!(
                late.write.jobs.iter().all(|write| write
                    .after
                    .as_ref()
                    .is_some_and(|state| state.armed == rows.jobs[&JOB].as_ref().unwrap().state.armed)),
                "{name}"
            );
            assert_eq!(late.answer, Some(vec![WriteBackAnswer::Recorded]), "{name}");
        }
    }
}

/// Whether a later attempt was recorded is asked where another attempt would follow, and nowhere else.
#[test]
fn only_what_would_be_tried_again_needs_the_history() {
    let retry = Retry { max_attempts: 2, ..Retry::default() };
    let needs = |run: KnownRun, retry: Retry| {
        let rows = Rows { history: BTreeMap::new(), ..rows_of(row(&Job { retry, ..job() })) };
        write_back(&request(vec![run], true), &rows).map(|_| ()).err()
    };
    assert_eq!(needs(ended(1, 10, Status::Failed), retry), Some(Need::History(vec![JOB], at(10))));
    assert_eq!(needs(ended(1, 10, Status::Succeeded), retry), None);
    assert_eq!(needs(ended(1, 10, Status::Failed), Retry::default()), None);
    assert_eq!(needs(known(1, 10), retry), None);
}

/// Second attempts of other firings say nothing about this one, which failed and is tried again.
#[test]
fn an_attempt_is_followed_only_by_one_of_its_own_firing() {
    let retry = Retry { max_attempts: 2, ..Retry::default() };
    let record =
        |job, due, trigger, attempt| RunRecord::commits_lost(job, Some(run(7)), (at(due), trigger, attempt), at(40));
    for (name, record) in [
        ("another job", record(JobId(8), 10, Trigger::Schedule, 2)),
        ("another due time", record(JOB, 20, Trigger::Schedule, 2)),
        ("a manual run", record(JOB, 10, Trigger::Manual, 2)),
        ("the same attempt", record(JOB, 10, Trigger::Schedule, 1)),
    ] {
        let mut rows = rows_of(row(&Job { retry, ..job() }));
        rows.add_history(vec![JOB, JobId(8)], at(0), vec![record]);
        let done = decided(write_back(&request(vec![ended(1, 10, Status::Failed)], true), &rows));
        assert_eq!(waiting_after(&done).1, [2], "{name}");
    }
    // A manual run waits for its second attempt.
    let triggered = after(&row(&Job { retry, ..job() }), &Event::Trigger { run: run(9) }, at(5));
    let mut state = (*triggered.state).clone();
    state.manual = state.manual.map(|waiting| Waiting { run: None, firing: waiting.firing.next_attempt(at(20)) });
    let first = ended(9, 5, Status::Failed);
    let first = KnownRun { held: Held { firing: Firing::manual(at(5)), ..first.held }, ..first };
    let done = written(vec![first], JobRow { state: Arc::new(state), ..triggered });
    assert_eq!(statuses(&done), [(at(5), 1, Status::Failed)]);
    assert!(done.write.concurrent.is_empty(), "{:?}", done.write.concurrent);
}
