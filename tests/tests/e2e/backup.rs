//! `carillon backup` and `carillon restore`: under load, against crashes half-way, and by the rules of lost commits.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use carillon_domain::time::Timestamp;
use carillon_tests::accounting::account;
use carillon_tests::fixture::{directory, lines, wait_for_lines};
use carillon_tests::jobs::{NEVER, job};
use carillon_tests::server::{Server, binary};
use carillon_tests::waiting::wait_for;
use rusqlite::Connection;
use serde_json::{Value, json};

/// The jobs that fire each second.
const JOBS: [&str; 4] = ["a", "b", "c", "d"];

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    command
}

fn carillon(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().expect("the binary can be started")
}

fn done(dir: &Path, arguments: &[&str]) -> String {
    let output = carillon(dir, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "carillon {arguments:?}: {said}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(dir: &Path, arguments: &[&str]) -> String {
    let output = carillon(dir, arguments);
    assert!(!output.status.success(), "carillon {arguments:?} was not refused");
    String::from_utf8(output.stderr).expect("text")
}

/// Whether a file is a database whose pages and indexes hold together.
fn is_whole(file: &Path) -> bool {
    let sound = Connection::open(file).and_then(|conn| {
        conn.query_row("SELECT count(*) FROM job", [], |row| row.get::<_, i64>(0))?;
        conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
    });
    sound.is_ok_and(|finding| finding == "ok")
}

/// Jobs that tell each due time at which they start, in a file of their own.
fn create_jobs(server: &Server) {
    for name in JOBS {
        let told = server.dir().join(name);
        let command = format!("echo $CARILLON_DUE_AT >> {}", told.display());
        server.create(&job(name, "@every 1s", &command, json!({"misfire": {"policy": "catch_up"}})));
    }
}

fn wait_for_a_start_of_each(dir: &Path, more: usize) {
    for name in JOBS {
        let told = dir.join(name);
        wait_for_lines(&told, lines(&told).len() + more);
    }
}

/// No due time started twice, says the jobs' own word.
fn assert_none_started_twice(dir: &Path) {
    for name in JOBS {
        let mut started = lines(&dir.join(name));
        let count = started.len();
        started.sort();
        started.dedup();
        assert_eq!(started.len(), count, "job {name} started a due time twice");
    }
}

/// Makes a database large enough to be caught half-way.
fn fill(database: &Path) {
    let conn = Connection::open(database).expect("a database");
    conn.execute_batch("CREATE TABLE ballast (bytes BLOB)").expect("a table");
    for _ in 0..60 {
        conn.execute("INSERT INTO ballast VALUES (randomblob(1000000))", []).expect("a row");
    }
}

#[test]
fn a_backup_under_load_is_consistent_and_a_restore_starts_nothing_twice() {
    let dir = directory();
    let server = Server::start(dir.path(), &[]);
    create_jobs(&server);
    wait_for_a_start_of_each(dir.path(), 1);
    for copy in ["1.db", "2.db", "3.db"] {
        let answer: Value = serde_json::from_str(&done(dir.path(), &["backup", copy, "--json"])).expect("JSON");
        let file = dir.path().join(copy);
        let about = std::fs::metadata(&file).expect("the copy is there");
        assert_eq!((answer["bytes"].as_u64(), about.permissions().mode() & 0o777), (Some(about.len()), 0o600));
        assert!(is_whole(&file), "{copy}");
        wait_for_a_start_of_each(dir.path(), 1);
    }
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).expect("a directory").map(|entry| entry.expect("one").path()).collect();
    assert!(!left.iter().any(|path| path.to_string_lossy().contains("partial")), "{left:?}");
    assert!(refused(dir.path(), &["backup", "3.db"]).contains("--replace"));
    done(dir.path(), &["backup", "3.db", "--replace"]);
    assert!(refused(dir.path(), &["backup", "carillon.db", "--replace"]).contains("is the database itself"));

    // Runs after the backup that the restored database knows nothing of.
    wait_for_a_start_of_each(dir.path(), 2);
    let holder = format!("pid {}", server.pid());
    assert!(refused(dir.path(), &["restore", "3.db"]).contains(&holder), "a served database is left alone");
    server.kill();
    let started: usize = JOBS.iter().map(|name| lines(&dir.path().join(name)).len()).sum();
    // A keeper may live on for a moment.
    let restored = wait_for("the lease is free", || {
        let output = carillon(dir.path(), &["restore", "3.db", "--json"]);
        output.status.success().then_some(output.stdout)
    });
    let answer: Value = serde_json::from_slice(&restored).expect("JSON");
    let kept = PathBuf::from(answer["kept"].as_str().expect("the old database is kept"));
    assert!(is_whole(&kept), "{answer}");

    let server = Server::start_unready(dir.path());
    let cluster = server.get("/v1/cluster");
    assert!(cluster["lost_commits"][0]["accepted_at"].is_null(), "a window is open: {cluster}");
    server.wait_until("it says why nothing starts", || {
        let (status, _, said) = server.call_raw("GET", "/readyz", &[], None);
        status == 503 && said.contains("the database went back in time")
    });
    let beat = || server.get("/v1/cluster")["items"][0]["heartbeat_at"].as_str().and_then(Timestamp::parse_rfc3339);
    let first = beat().expect("a heartbeat");
    server.wait_until("due times pass", || beat().is_some_and(|last| last >= first + Duration::from_secs(2)));
    assert_eq!(JOBS.iter().map(|name| lines(&dir.path().join(name)).len()).sum::<usize>(), started);
    done(dir.path(), &["cluster", "accept", "--server", server.url()]);
    wait_for_a_start_of_each(dir.path(), 2);
    assert_none_started_twice(dir.path());
    let runs = server.settle(&JOBS);
    let account = account(&runs, 1_000);
    assert_eq!((&account.duplicates, &account.silent_misses), (&vec![], &vec![]), "{runs:#?}");
    assert!(account.runs.get("lost").copied().unwrap_or_default() >= 4, "each job lost at least one: {account:?}");
}

/// Starts a copy, and kills it once its draft has so many bytes; 1 if it was still at work.
fn kill_at(mut copy: Command, draft: &str, bytes: u64) -> usize {
    let draft = copy.get_current_dir().expect("it was given one").join(draft);
    // The rest of the copy before is as large already.
    let _gone_already = std::fs::remove_file(&draft);
    let mut child = copy.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary can be started");
    let mut has_ended = || child.try_wait().expect("a child").is_some();
    while std::fs::metadata(&draft).map_or(0, |about| about.len()) < bytes && !has_ended() {
        std::thread::yield_now();
    }
    let was_at_work = !has_ended();
    child.kill().expect("it is ours");
    child.wait().expect("it ended");
    usize::from(was_at_work)
}

#[test]
fn a_crash_half_way_leaves_no_half_file_under_a_name() {
    let dir = directory();
    assert!(Server::start(dir.path(), &[]).drain().success());
    fill(&dir.path().join("carillon.db"));
    let server = Server::start(dir.path(), &[]);
    let all = std::fs::metadata(dir.path().join("carillon.db")).expect("a database").len();
    assert!(all > 60_000_000, "{all} bytes are too few to be caught half-way");
    // Also when all is copied, and checked.
    let shares = [1, all / 2, all * 3 / 4, all];

    let copy = dir.path().join("copy.db");
    let mut caught = 0;
    for bytes in shares {
        caught += kill_at(command(dir.path(), &["backup", "copy.db", "--replace"]), "copy.db.partial", bytes);
        assert!(!copy.exists() || is_whole(&copy), "a half file has the name of a whole one");
    }
    assert!(caught > 0, "no backup was killed at work");
    done(dir.path(), &["backup", "copy.db", "--replace"]);
    assert!(is_whole(&copy) && !dir.path().join("copy.db.partial").exists());
    server.create(&job("later", NEVER, "true", json!({})));
    assert!(server.drain().success());

    let database = dir.path().join("carillon.db");
    let knows_later = || {
        let conn = Connection::open(&database).expect("a database");
        conn.query_row("SELECT count(*) FROM job WHERE name = 'later'", [], |row| row.get::<_, i64>(0))
            .expect("a count")
    };
    let mut caught = 0;
    for bytes in shares {
        let before = knows_later();
        caught += kill_at(command(dir.path(), &["restore", "copy.db"]), "carillon.db.restoring", bytes);
        assert!(is_whole(&database), "neither the old database nor the new one");
        let is_old = knows_later() == before;
        assert!(is_old || knows_later() == 0, "it is another one");
    }
    assert!(caught > 0, "no restore was killed at work");
    done(dir.path(), &["restore", "copy.db"]);
    assert_eq!((is_whole(&database), knows_later()), (true, 0));
    assert!(!dir.path().join("carillon.db.restoring").exists());
}

#[test]
fn what_is_no_backup_is_refused_before_anything_is_touched() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    assert!(refused(dir.path(), &["backup", "copy.db"]).contains("there is no database"));
    assert!(Server::start(dir.path(), &[]).drain().success());
    done(dir.path(), &["backup", "copy.db"]);
    let before = std::fs::read(at("carillon.db")).expect("a database");

    std::fs::write(at("text.db"), "not a database at all, though it is long enough ".repeat(50)).expect("written");
    let newer = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
                 VALUES (99, 'from_the_future', '2030-01-01T00:00:00Z', '1')";
    std::fs::copy(at("copy.db"), at("newer.db")).expect("copied");
    Connection::open(at("newer.db")).expect("a database").execute(newer, []).expect("written");
    Connection::open(at("foreign.db")).expect("made").execute("CREATE TABLE t (a)", []).expect("written");
    let mut damaged = std::fs::read(at("copy.db")).expect("a copy");
    // Pages behind the schema: the file opens, and its tables do not hold together.
    let page = 4096;
    let from = damaged.len() - 6 * page;
    damaged[from..].fill(0xAB);
    std::fs::write(at("damaged.db"), damaged).expect("written");
    for (file, words) in [
        ("nowhere.db", "there is no file"),
        ("text.db", "is not an SQLite database"),
        ("newer.db", "made by a newer Carillon"),
        ("foreign.db", "is not a database of Carillon"),
        ("damaged.db", "is damaged"),
        ("carillon.db", "is the database itself"),
    ] {
        let said = refused(dir.path(), &["restore", file]);
        assert!(said.contains(words), "{file}: {said}");
        assert_eq!(std::fs::read(at("carillon.db")).expect("a database"), before, "{file} changed the database");
    }
    let said = refused(dir.path(), &["backup", "copy2.db", "--store", "mysql://u:p@127.0.0.1:1/c"]);
    assert!(said.contains("docs/backup.md"), "{said}");
}

#[test]
fn a_damaged_database_is_replaced_and_kept_with_its_log() {
    let dir = directory();
    let at = |name: &str| dir.path().join(name);
    assert!(Server::start(dir.path(), &[]).drain().success());
    done(dir.path(), &["backup", "copy.db"]);
    std::fs::write(at("carillon.db"), "it was a database once ".repeat(400)).expect("written");
    std::fs::write(at("carillon.db-wal"), "its log").expect("written");
    let answer: Value = serde_json::from_str(&done(dir.path(), &["restore", "copy.db", "--json"])).expect("JSON");
    let kept = answer["kept"].as_str().expect("the old database is kept").to_owned();
    assert_eq!(std::fs::read_to_string(format!("{kept}-wal")).expect("its log"), "its log");
    assert!(is_whole(&at("carillon.db")) && !is_whole(Path::new(&kept)));
}
