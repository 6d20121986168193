//! `carillon copy` as an operator calls it: refused while the server runs, then whole, and the jobs go on from the copy.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use carillon_tests::fixture::{directory, lines, wait_for_lines};
use carillon_tests::jobs::job;
use carillon_tests::server::{Server, binary};
use serde_json::{Value, json};

fn copy(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("copy").args(arguments).current_dir(dir).stdin(Stdio::null());
    command.output().expect("the binary can be started")
}

#[test]
fn a_copy_is_refused_while_the_server_runs_and_its_jobs_go_on_from_the_copy() {
    let dir = directory();
    let told = dir.path().join("told");
    let url = |name: &str| format!("sqlite://{}", dir.path().join(name).display());
    let (from, to) = (url("carillon.db"), url("copy.db"));
    let both = ["--from", from.as_str(), "--to", to.as_str()];
    let server = Server::start(dir.path(), &[]);
    let command = format!("echo $CARILLON_DUE_AT >> {}", told.display());
    server.create(&job("ticks", "@every 1s", &command, json!({"misfire": {"policy": "catch_up"}})));
    wait_for_lines(&told, 2);
    let refused = copy(dir.path(), &both);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("is served by another Carillon"), "{said}");
    assert!(server.drain().success());

    let done = copy(dir.path(), &[&both[..], &["--json"]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let answer = String::from_utf8(done.stdout).expect("text");
    let tables: Vec<Value> = answer.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let rows = |name: &str| tables.iter().find(|table| table["table"] == name).map(|table| table["rows"].clone());
    assert_eq!(rows("job"), Some(json!(1)), "{answer}");
    assert!(rows("run").and_then(|rows| rows.as_u64()).is_some_and(|rows| rows >= 2), "{answer}");

    let before = lines(&told).len();
    std::fs::rename(dir.path().join("copy.db"), dir.path().join("carillon.db")).expect("the copy takes over");
    for ending in ["-wal", "-shm"] {
        std::fs::remove_file(dir.path().join(format!("carillon.db{ending}"))).ok();
    }
    let server = Server::start(dir.path(), &[]);
    wait_for_lines(&told, before + 2);
    assert!(server.drain().success());
    let mut started = lines(&told);
    let count = started.len();
    started.sort();
    started.dedup();
    assert_eq!(started.len(), count, "no due time started twice");
}
