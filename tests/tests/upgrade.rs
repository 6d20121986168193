//! docs/upgrade.md, followed with a binary of an earlier commit. It builds that binary, so it runs only where it is asked for.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use carillon_checker::judge;
use carillon_tests::cluster::{Cluster, STEADY, Witness};
use carillon_tests::databases::{self, Brand};
use carillon_tests::server::{Server, binary};
use carillon_tests::skipped;
use carillon_tests::waiting::wait_until;
use serde_json::{Value, json};

/// The older binary is built from this commit: the schema of MySQL was at version 24, that of SQLite at 7. The first tag takes its place.
const OLDER: &str = "dfd626b6c62af699b77f0901ac5a5529fd99f813";
/// Asks for the test.
const ASKED_BY: &str = "CARILLON_UPGRADE";
/// Names an older binary that is built already.
const BUILT: &str = "CARILLON_OLDER_BIN";
/// How many jobs come up each second.
const JOBS: usize = 30;
/// How many starts of each job a mix of binaries has to see.
const STARTS: usize = 3;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}

fn ran(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The older binary; `None` where it is not asked for, or the commit is not in this clone. Tests that begin together build it once.
fn older() -> Option<PathBuf> {
    static OLDER_BINARY: OnceLock<Option<PathBuf>> = OnceLock::new();
    OLDER_BINARY.get_or_init(build_older).clone()
}

fn build_older() -> Option<PathBuf> {
    if std::env::var_os(ASKED_BY).is_none() {
        skipped::tell(&format!("an upgrade from an older binary and back; {ASKED_BY}=1 builds one and runs it"));
        return None;
    }
    if let Some(built) = std::env::var_os(BUILT) {
        return Some(built.into());
    }
    let target = root().join("target/older");
    let (source, archive) = (target.join("source"), target.join("source.tar"));
    std::fs::create_dir_all(&source).expect("a directory for the older source");
    if !ran(Command::new("git").current_dir(root()).args(["archive", OLDER, "-o"]).arg(&archive)) {
        skipped::tell(&format!("an upgrade: commit {OLDER} is not in this clone"));
        return None;
    }
    assert!(ran(Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(&source)), "the archive is unpacked");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--package", "carillon", "--target-dir"]).arg(&target).current_dir(&source);
    assert!(ran(&mut cargo), "the older binary is built");
    Some(target.join("debug/carillon"))
}

/// Waits until each job has started a few times more.
fn stay(witness: &Witness) {
    let before = witness.lives().len();
    wait_until("jobs start", || witness.lives().len() >= before + STARTS * JOBS);
}

/// The last words of an older binary that does not start.
fn refusal(program: &Path, dir: &Path, store: &str) -> String {
    let mut command = Command::new(program);
    command.args(["serve", "--bind", "127.0.0.1:0", "--store", store]).current_dir(dir).stdin(Stdio::null());
    let output = command.output().expect("the older binary");
    assert!(!output.status.success(), "it started");
    String::from_utf8(output.stderr).expect("text")
}

/// The sentences that the page shows.
fn sentences() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/upgrade.md")).expect("the page");
    let blocks = carillon_tests::markdown::blocks(&page).into_iter();
    blocks.filter(|block| block.language == "text").map(|block| block.text.trim().to_owned()).collect()
}

/// How many nodes this one knows of.
fn nodes_of(node: &Server) -> usize {
    node.get("/v1/cluster")["items"].as_array().expect("sessions").len()
}

#[test]
fn a_cluster_goes_forth_and_back_under_load() {
    let Some(older) = older() else { return };
    let server = databases::Server::shared(Brand::MariaDb);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(server.database());
    let cluster = Cluster::new(&database.url(), STEADY);
    let witness = Witness::new(cluster.dir());
    let names = ["a", "b", "c"];
    let mut nodes: Vec<Server> = names.iter().map(|name| cluster.node_of(&older, name)).collect();
    let schema = || {
        use mysql_async::prelude::Queryable;
        let read = async {
            let mut conn = database.connect().await;
            conn.query_first::<i64, _>("SELECT MAX(version) FROM refinery_schema_history").await.expect("a version")
        };
        runtime.block_on(read).expect("a version")
    };
    let before = schema();
    let jobs: Vec<String> = (0..JOBS).map(|n| format!("job-{n}")).collect();
    let item = |name: &String| {
        json!({"name": name, "schedule": "@every 1s", "params": {"command": witness.command(1, 50, "0")},
               "misfire": {"policy": "skip", "grace": "10s"}})
    };
    let items: Vec<Value> = jobs.iter().map(item).collect();
    nodes[0].post("/v1/jobs:batch", &json!({ "items": items }));
    stay(&witness);

    let [works_beside, too_new] = &sentences()[..] else { panic!("the page shows two sentences") };
    let began = Instant::now();
    for (program, way) in [(binary(), "forth"), (older.clone(), "back")] {
        for name in names {
            assert!(nodes.remove(0).drain().success(), "node {name} ends in good order");
            nodes.push(cluster.node_of(&program, name));
            wait_until("all nodes work side by side", || nodes_of(&nodes[0]) == names.len());
            stay(&witness);
        }
        eprintln!("{way}: {:?}, schema {}, {} starts", began.elapsed(), schema(), witness.lives().len());
        assert!(schema() > before, "the new binary has made steps, and the old one takes none back");
    }
    for node in &nodes {
        assert!(node.log().contains(works_beside), "{}", node.log());
    }
    let records = nodes[0].settle(&jobs.iter().map(String::as_str).collect::<Vec<_>>());
    let verdict = judge(&witness.evidence(&records));
    eprintln!("{verdict}");
    assert!(verdict.is_clean(), "{verdict}");
    // A busy machine may be late for one; an upgrade loses none, and fails none.
    let is_usual = |fate: &String| fate == "succeeded" || fate.starts_with("skipped");
    assert!(verdict.fates.keys().all(is_usual), "{verdict}");
    for node in nodes {
        let log = node.log();
        assert!(!log.contains("panicked") && !log.contains("an invariant does not hold"), "{log}");
        assert!(node.drain().success());
    }

    // As a later release does it.
    let end = "REPLACE INTO meta (name, value) VALUES ('oldest_friend', '999')";
    runtime.block_on(database.run(&[end]));
    let said = refusal(&older, cluster.dir(), &database.url());
    assert!(said.contains(too_new), "{said}");
}

#[test]
fn a_lone_server_goes_forth_and_an_older_binary_refuses_the_newer_file() {
    let Some(older) = older() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let [_, too_new] = &sentences()[..] else { panic!("the page shows two sentences") };
    let server = Server::start_of(&older, dir.path());
    let started = dir.path().join("started");
    let command = format!("echo $CARILLON_DUE_AT >> {}", started.display());
    server.post("/v1/jobs", &json!({"name": "a", "schedule": "@every 1s", "params": {"command": command}}));
    carillon_tests::fixture::wait_for_lines(&started, 2);
    assert!(server.drain().success());
    let server = Server::start(dir.path(), &[]);
    let seen = carillon_tests::fixture::lines(&started).len();
    carillon_tests::fixture::wait_for_lines(&started, seen + 2);
    let runs = server.settle(&["a"]);
    let account = carillon_tests::accounting::account(&runs, 1_000);
    assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{runs:#?}");
    assert!(server.drain().success());
    let said = refusal(&older, dir.path(), "sqlite://carillon.db");
    assert!(said.contains(too_new), "{said}");
}
