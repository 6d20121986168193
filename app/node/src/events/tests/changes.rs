//! Changes of jobs among the runs of a look.

use std::collections::BTreeSet;

use carillon_domain::time::Timestamp;
use carillon_store::JobKey;
use carillon_store::feed::AuditLine;

use super::super::mark::Mark;
use super::super::ring::Told;
use super::{Bench, data, ended, running, said, skipped};

/// A change of job `a` at a second; its runs end at the second of their number.
fn change(action: &str, second: i64) -> AuditLine {
    let job = Some(JobKey { namespace: "default".into(), name: "a".into() });
    let (who, action) = ("ann".to_owned(), action.to_owned());
    AuditLine { at: Timestamp::from_ms(1_000 * second), who, action, job, generation: Some(3) }
}

fn of(name: &str, line: AuditLine) -> AuditLine {
    AuditLine { job: Some(JobKey { namespace: "prod".into(), name: name.into() }), ..line }
}

fn marks(told: &[Told]) -> Vec<[u64; 2]> {
    let text = |told: &Told| String::from_utf8(told.event().frame.to_vec()).unwrap();
    let id = |told| text(told).lines().find_map(|line| line.strip_prefix("id: ").map(str::to_owned));
    told.iter().filter_map(|told| Mark::parse(&id(told)?)).map(|mark| mark.numbers).collect()
}

#[test]
fn a_change_tells_who_did_what_to_which_job() {
    let mut bench = Bench::new();
    bench.changes.push((7, of("b", change("job.updated", 101))));
    let told = bench.next();
    let event = data(&told[0]);
    let expected = serde_json::json!({
        "type": "job.changed",
        "key": "audit:7",
        "at": "1970-01-01T00:01:41.000Z",
        "namespace": "prod",
        "job": {"name": "b", "generation": 3},
        "action": "job.updated",
        "who": "ann",
    });
    assert_eq!((event, told.len()), (expected, 1));
    assert!(bench.told().is_empty());
}

#[test]
fn every_entry_of_the_log_is_told_and_those_that_change_no_job_by_another_name() {
    let mut bench = Bench::new();
    let asked = |action: &str| AuditLine { generation: None, ..change(action, 1) };
    bench.changes.extend([(1, asked("job.run")), (2, asked("run.cancelled"))]);
    bench.changes.push((3, AuditLine { job: None, ..asked("losses.accepted") }));
    let told = bench.next();
    assert!(told.iter().all(|told| data(told)["type"] == "audit.written"), "{told:?}");
    assert_eq!(data(&told[0])["key"], "audit:1");
    assert_eq!(
        told.iter().map(said).collect::<Vec<_>>(),
        ["job.run a", "run.cancelled a", "losses.accepted of the cluster"]
    );
    bench.changes.push((4, change("job.tagged", 1)));
    let told = bench.next();
    assert_eq!((data(&told[0])["type"].as_str(), told.len()), (Some("job.changed"), 1), "an action of a newer version");
}

#[test]
fn the_runs_and_changes_of_a_job_are_told_by_their_times() {
    let mut bench = Bench::new();
    bench.rows.extend([(101, ended(101)), (103, skipped(103)), (105, ended(105))]);
    bench.changes.extend([
        (1, change("job.updated", 100)),
        (2, change("job.paused", 102)),
        (3, change("job.resumed", 103)),
        (4, change("job.updated", 104)),
        (5, change("job.deleted", 106)),
    ]);
    let expected = [
        "job.updated a",
        "run.started 101",
        "run.ended 101",
        "job.paused a",
        "run.skipped 103",
        "job.resumed a",
        "job.updated a",
        "run.started 105",
        "run.ended 105",
        "job.deleted a",
    ];
    assert_eq!(bench.told(), expected);
    // A run that executes counts from its start.
    bench.running = vec![running(107)];
    bench.changes.extend([(6, change("job.paused", 0)), (7, change("job.resumed", 2))]);
    assert_eq!(bench.told(), ["job.paused a", "run.started 107", "job.resumed a"]);
}

/// Times of different jobs may contradict the numbers of the log. Then the log keeps its order.
#[test]
fn each_journal_keeps_its_own_order() {
    let mut bench = Bench::new();
    bench.rows.extend([(101, ended(101)), (102, ended(102))]);
    bench.changes.extend([
        (1, of("b", change("job.updated", 900))),
        (2, change("job.updated", 101)),
        (3, of("b", change("job.paused", 800))),
        (4, change("job.paused", 100)),
    ]);
    let told = bench.told();
    let changes: Vec<&str> = told.iter().map(String::as_str).filter(|text| text.starts_with("job.")).collect();
    assert_eq!(changes, ["job.updated b", "job.updated a", "job.paused b", "job.paused a"]);
    let at = |text: &str| told.iter().position(|told| told == text);
    assert!(at("job.updated b") < at("run.started 101") && at("run.ended 101") < at("job.updated a"), "{told:?}");
    assert!(at("job.paused a") < at("run.started 102"), "no later than they must: {told:?}");
}

/// Wherever a reader is cut off: the numbers of its mark leave out nothing in either journal.
#[test]
fn a_mark_in_the_middle_of_a_look_counts_both_journals() {
    let mut bench = Bench::new();
    bench.rows.extend((101..110).map(|number| (number, ended(number))));
    bench.changes.extend((1..9).map(|number| (number, change("job.updated", 100 + number as i64))));
    let told = bench.next();
    let (mut got, mut rows) = ([BTreeSet::new(), BTreeSet::new()], Vec::new());
    for told in &told {
        if let Told::Row(row) = told {
            got[row.journal.place()].insert(row.number);
            rows.push(got.clone());
        }
    }
    let marks = marks(&told);
    assert_eq!((marks.len(), rows.len()), (17, 17));
    for (mark, got) in marks.iter().zip(rows) {
        assert!((101..110).filter(|number| *number <= mark[0]).all(|number| got[0].contains(&number)), "{mark:?}");
        assert!((1..9).filter(|number| *number <= mark[1]).all(|number| got[1].contains(&number)), "{mark:?}");
    }
    assert_eq!(marks.last().map(|mark| mark[1]), Some(8));
    assert!(told.iter().any(|told| said(told) == "job.updated a"));
}
