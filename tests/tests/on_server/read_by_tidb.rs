//! How far away TiDB is: which of the statements that the store sends TiDB's own parser reads. None is run there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use carillon_store::copy::{Place, copy};
use carillon_store::mysql::{Options, inspect};
use carillon_tests::conformance::fixture::job;
use carillon_tests::databases::Database;
use carillon_tests::{skipped, sql_in_sources, tidb_parser};

use super::conformance::{RECORDER, cases};
use super::{bench, server};

/// Statements of the sources that no test here makes the store send.
const OTHERS: [&str; 7] = [
    // A member of a cluster is asked to wait for the others.
    "SET SESSION wsrep_sync_wait = 15",
    "SET SESSION wsrep_sync_wait = 0",
    "SET SESSION wsrep_sync_wait = 1",
    "SET SESSION group_replication_consistency = 'BEFORE_ON_PRIMARY_FAILOVER'",
    "SET SESSION group_replication_consistency = 'BEFORE'",
    // A connection is in doubt.
    "KILL CONNECTION 7",
    // A record was written by a commit whose answer got lost.
    "SELECT id FROM run FORCE INDEX (run_id) WHERE id IN (x'01')",
];

/// Statements of the sources that only SQLite gets, beside those in its own folder.
const OF_SQLITE: [&str; 2] = ["INSERT OR IGNORE INTO t", "DELETE FROM t WHERE id IN (SELECT id FROM t)"];

/// The statements that need JSON_TABLE, which the parser does not read: each takes a batch of rows as one parameter.
const BATCHES: [&str; 12] = [
    "INSERT audit",
    "INSERT concurrent_run",
    "INSERT job",
    "INSERT job_state",
    "INSERT output",
    "INSERT run",
    "INSERT run_params",
    "SELECT concurrent_run",
    "SELECT job",
    "UPDATE concurrent_run",
    "UPDATE job",
    "UPDATE job_state",
];

/// The one other statement that the parser does not read, and the end that it does not know.
const SNAPSHOT: (&str, &str) = ("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", ", READ ONLY");

/// A statement that is not read by its name in the lists above, and the same without what is not read.
fn excused(sql: &str) -> Option<(String, String)> {
    let (known, unread) = SNAPSHOT;
    if sql == known {
        return Some((known.to_owned(), known.replace(unread, "")));
    }
    let without = without_json_table(sql)?;
    let words: Vec<&str> = without.split(' ').collect();
    let before_a_table = ["INTO", "FROM", "STRAIGHT_JOIN"];
    let named = |pair: &&[&str]| before_a_table.contains(&pair[0]) && !pair[1].starts_with('(');
    let table = words.windows(2).find(named)?[1];
    let name = format!("{} {table}", words[0]);
    Some((name, without))
}

/// A derived table stands in the place of each JSON_TABLE.
fn without_json_table(sql: &str) -> Option<String> {
    let (before, mut rest) = sql.split_once("JSON_TABLE(")?;
    let mut open = 1;
    while open > 0 {
        let at = rest.find(['(', ')'])?;
        open = if rest[at..].starts_with('(') { open + 1 } else { open - 1 };
        rest = &rest[at + 1..];
    }
    let whole = format!("{before}(SELECT 1){rest}");
    Some(without_json_table(&whole).unwrap_or(whole))
}

/// The statements of the suite, of a copy, and of a look at the database from outside.
async fn sent() -> Vec<String> {
    cases::all().await;
    let (bench, source) = bench().await;
    bench.create(job("a")).await;
    let through = |database: &Database| database.url_through(RECORDER.port());
    let target = server().database().await;
    copy(&Place::MySql(through(&source)), &Place::MySql(through(&target)), &mut |_| {}).await.unwrap();
    inspect(&through(&source), &Options::default()).await.unwrap();
    RECORDER.statements().into_iter().collect()
}

/// Counts the statements of each folder of the sources. All of them must be among those that were sent.
fn compare_with_the_sources(sent: &[String]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("adapters/store/src");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let (mut missing, mut listed) = (Vec::new(), BTreeSet::new());
    for statement in sql_in_sources::statements(&folder) {
        if statement.folder == "sqlite" || statement.folder.starts_with("sqlite/") {
            continue;
        }
        if !sent.iter().any(|sent| statement.is_in(sent)) {
            let found: Vec<&str> = OTHERS.into_iter().chain(OF_SQLITE).filter(|other| statement.is_in(other)).collect();
            if found.is_empty() {
                missing.push(format!("{}: {}", statement.place, statement.parts.join(" ... ")));
            }
            listed.extend(found);
        }
        *counts.entry(statement.folder).or_default() += 1;
    }
    assert!(missing.is_empty(), "the sources have statements that were not sent:\n{}", missing.join("\n"));
    assert_eq!(listed.len(), OTHERS.len() + OF_SQLITE.len(), "only these need a line above: {listed:?}");
    // Each folder with statements was looked at.
    let least = [("mysql", 40), ("mysql/client", 15), ("mysql/read", 45), ("mysql/write", 55), ("alerts/sql", 35)];
    for (folder, least) in least {
        assert!(counts.get(folder).is_some_and(|count| *count >= least), "{folder}: {counts:?}");
    }
}

/// The same for statements that differ in numbers alone.
fn shape(sql: &str) -> String {
    let mut shape = String::new();
    for char in sql.chars() {
        match char {
            '0'..='9' if shape.ends_with('0') => {}
            '0'..='9' if !shape.ends_with(|last: char| last.is_ascii_alphabetic() || last == '_') => shape.push('0'),
            other => shape.push(other),
        }
    }
    shape
}

#[tokio::test]
async fn tidb_reads_every_statement_but_the_batches_and_the_snapshot() {
    let sent = sent().await;
    compare_with_the_sources(&sent);
    let of_shapes: BTreeMap<String, &str> =
        sent.iter().map(String::as_str).chain(OTHERS).map(|sql| (shape(sql), sql)).collect();
    let statements: Vec<&str> = of_shapes.into_values().collect();
    let complaints = match tidb_parser::complaints(&statements) {
        Ok(complaints) => complaints,
        Err(why) => return skipped::tell(&format!("which statements TiDB's parser reads: {why}")),
    };
    let (mut names, mut rest) = (BTreeSet::new(), Vec::new());
    for (sql, complaint) in statements.iter().zip(&complaints) {
        let Some(complaint) = complaint else { continue };
        let Some((name, without)) = excused(sql) else { panic!("TiDB's parser does not read {sql}\n{complaint}") };
        names.insert(name);
        rest.push(without);
    }
    let known: BTreeSet<String> = BATCHES.into_iter().chain([SNAPSHOT.0]).map(str::to_owned).collect();
    assert_eq!(names, known, "the statements that TiDB's parser does not read");
    // Nothing else keeps it from reading them.
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    for (sql, complaint) in rest.iter().zip(tidb_parser::complaints(&rest).expect("the parser, as before")) {
        assert_eq!(complaint, None, "TiDB's parser does not read {sql}");
    }
}
