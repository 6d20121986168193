//! The bench works: every scenario finds its rows at a tiny size, and the figures become a page and plots. Nobody
//! judges the figures.

use std::process::{Command, Stdio};

use carillon_tests::fixture::directory;
use serde_json::Value;

/// Each scenario, with a word that one of its rows must have for each thing that it measures.
const SCENARIOS: [(&str, &[&str]); 14] = [
    ("ceilings", &["bare clients", "null round trips", "fdatasync", "`/bin/true`", "`bash -c true`"]),
    ("store", &["creates", "callers: 1", "callers: 3", "SQLite"]),
    ("shots", &["plugin process", "plugin in_process"]),
    ("interval", &["plugin process", "plugin in_process"]),
    ("shell", &["`/bin/true`", "`bash -c true`"]),
    ("at_once", &["lag p50", "lag p99", "lag p99.9", "due at once"]),
    ("steady", &["10 a second", "20 a second", "40 a second"]),
    ("stored", &["due scan", "look ahead", "start until ready", "resident memory", "first page", "nine tenths"]),
    ("api", &["reads/s", "durable creates/s", "batch creates/s", "pause latency"]),
    ("takeover", &["kill -9"]),
    ("nodes", &["nodes: 1", "nodes: 2", "lost"]),
    ("purge", &["purge of", "lag p99"]),
    (
        "pages",
        &[
            "page overview, with all",
            "page audit, statements",
            "page timeline, first look",
            "page jobs, searched",
            "above those of one",
            "memory for each",
        ],
    ),
    ("alerts", &["no routes", "1 route", "100 routes", "one run of 100 fails"]),
];

#[test]
fn every_row_is_found_and_none_failed() {
    let kept = directory();
    let into = format!("into={}", kept.path().display());
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    let output = bench.args(["quick", "database=mariadb", &into]).stdin(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("SKIPPED, NOT TESTED HERE") {
        eprint!("{said}");
        assert!(output.status.success(), "there must be a MariaDB");
        return;
    }
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    let file = std::fs::read_to_string(kept.path().join("bench-mariadb.json")).expect("the figures are kept");
    let figures: Value = serde_json::from_str(&file).expect("JSON");
    for (name, expected) in SCENARIOS {
        let scenario = &figures["scenarios"][name];
        assert!(scenario["failed"].is_null(), "{name}: {}", scenario["failed"]);
        let rows = scenario["rows"].as_array().expect("a scenario has rows");
        for word in expected {
            let is_it = |row: &&Value| row["what"].as_str().is_some_and(|what| what.contains(word));
            let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{name} has no row about {word:?}: {rows:?}"));
            assert!(row["value"].as_f64().is_some_and(f64::is_finite), "{row}");
            assert!(row["verdict"].is_null(), "a quick run judges nothing: {row}");
        }
    }
    assert_eq!(figures["settings"]["sync_binlog"], "1");
    assert_eq!(figures["settings"]["innodb_flush_log_at_trx_commit"], "1");
    let page = std::fs::read_to_string(kept.path().join("BENCHMARKS.md")).expect("the page is written");
    assert!(page.contains("## MariaDB") && page.contains("takeover after kill -9"), "{page}");
    for plot in ["lag", "nodes", "batches"] {
        let plot = std::fs::read_to_string(kept.path().join(format!("bench-mariadb-{plot}.svg"))).expect("a plot");
        assert!(plot.contains("<polyline"), "a plot shows a curve: {plot}");
    }
}
