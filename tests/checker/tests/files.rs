//! The command judges what stands in a directory, and its exit code says how.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const DUE: [&str; 2] = ["2027-01-15T08:00:01Z", "2027-01-15T08:00:02Z"];
const AT: i64 = 1_800_000_000_000_000;

/// One job that was due twice; what it wrote, and what is recorded of it.
fn write(dir: &Path, runs: &Value) {
    let job = json!({"name": "a", "anchor_us": AT, "period_us": 1_000_000, "phases_us": [0], "from_us": AT + 1_000_000,
                     "until_us": AT + 2_000_000, "overlap": "skip", "max_attempts": 1, "rerun": false});
    let (mut said, mut at) = (String::new(), AT);
    for (n, due) in DUE.iter().enumerate() {
        at += 1_000_000;
        for (word, later) in [("start", 10_000), ("alive", 50_000), ("end:0", 90_000)] {
            said += &format!("run-{n} a {due} 1 {} {word} {}\n", n + 5, at + later);
        }
    }
    let files = [
        ("jobs.json", json!({"jobs": [job], "acts": []}).to_string()),
        ("witness", said),
        ("runs.json", runs.to_string()),
        ("faults.json", json!({"faults": [], "ends": []}).to_string()),
    ];
    for (name, text) in files {
        std::fs::write(dir.join(name), text).unwrap();
    }
}

fn record(n: usize) -> Value {
    json!({"id": format!("run-{n}"), "job": "a", "due_at": DUE[n], "attempt": 1, "trigger": "schedule",
           "status": "succeeded", "reason": null, "exit_code": 0, "started_at": DUE[n], "finished_at": DUE[n],
           "lag_ms": 0, "node": "n", "session": "s", "count": 1, "first_due_at": DUE[n]})
}

fn judged(dir: &Path) -> (Option<i32>, Value) {
    let done = Command::new(env!("CARGO_BIN_EXE_carillon-check")).arg("--json").arg(dir).output().unwrap();
    (done.status.code(), serde_json::from_slice(&done.stdout).unwrap_or(Value::Null))
}

#[test]
fn a_directory_is_judged_and_can_be_judged_again() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &json!([record(0), record(1)]));
    let (code, verdict) = judged(dir.path());
    assert_eq!((code, &verdict["clean"], &verdict["due"]), (Some(0), &json!(true), &json!(2)), "{verdict}");
    assert_eq!(verdict["lateness_ms"]["all, by the jobs' own clocks"]["max"], 10);

    write(dir.path(), &json!([record(0)]));
    let (code, verdict) = judged(dir.path());
    assert_eq!((code, &verdict["clean"]), (Some(1), &json!(false)));
    assert_eq!((&verdict["found"]["silent misses"], &verdict["found"]["contradictions"]), (&json!(1), &json!(1)));

    std::fs::write(dir.path().join("runs.json"), "[{}]").unwrap();
    assert_eq!(judged(dir.path()).0, Some(2), "what cannot be read is no clean run");
}
