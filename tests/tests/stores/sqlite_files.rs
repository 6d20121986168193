//! Faults of a file, and the traces of a crash.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use carillon_doubles::author;
use carillon_store::sqlite::{Lease, OpenError, OpenOptions, SqliteStore};
use carillon_store::{ControlStore, JobQuery, ManualClock, Me, NodeStore, PutIf, PutJob, StoreError};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS, at, job, key};
use rusqlite::Connection;

fn options() -> OpenOptions {
    OpenOptions { partitions: PARTITIONS, ..OpenOptions::default() }
}

fn open(path: &Path) -> Result<(SqliteStore, ManualClock), OpenError> {
    let clock = ManualClock::at(BEGIN);
    Ok((SqliteStore::open(path, Arc::new(clock.clone()), options())?, clock))
}

fn sentence(path: &Path) -> String {
    open(path).map(|_| ()).unwrap_err().to_string()
}

#[tokio::test]
async fn what_is_stored_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    let (store, clock) = open(&path).unwrap();
    let bench = StoreFixture::new(Arc::new(store), clock).await;
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    let before = bench.view("a").await;
    let me = bench.me;
    drop(bench);
    assert!(!directory.path().join("carillon.db-wal").exists(), "a store that was closed is one file");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let clock = ManualClock::at(at(10));
    let other_partitions = OpenOptions { partitions: 64, ..options() };
    let store = SqliteStore::open(&path, Arc::new(clock), other_partitions).unwrap();
    assert_eq!(store.job(&key("a")).await.unwrap(), before);
    assert_eq!(store.list_held(me).await.unwrap(), [running]);
    // Holding the lease, whoever starts ends the former session and sweeps it at once.
    let former = store.sessions().await.unwrap().remove(0).beat;
    assert!(store.expire(None, former.id, former.seq).await.unwrap());
    assert_eq!(store.sweep(former.id, 100).await.unwrap(), 1);
    assert!(store.sessions().await.unwrap().is_empty());
    let new = carillon_store::NewSession {
        id: carillon_domain::id::SessionId::from_random(9),
        node: "n".into(),
        address: "a".into(),
        version: "v".into(),
    };
    assert_eq!(store.open_session(&new).await.unwrap().partitions, PARTITIONS, "the number is fixed when it is made");
}

#[test]
fn files_that_cannot_be_opened_say_why() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = sentence(&directory.path().join("no/such/carillon.db"));
    assert!(nowhere.contains("does not exist") && nowhere.contains("no/such"), "{nowhere}");

    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "Dear diary, today I was not a database. ".repeat(100)).unwrap();
    assert!(sentence(&text).contains("is not an SQLite database"), "{}", sentence(&text));

    let dir = directory.path().join("dir.db");
    std::fs::create_dir(&dir).unwrap();
    assert!(sentence(&dir).contains("cannot be written"), "{}", sentence(&dir));
}

#[test]
fn a_newer_schema_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    drop(open(&path).unwrap());
    let newer = "INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
                 VALUES (99, 'from_the_future', '2030-01-01T00:00:00Z', '1')";
    Connection::open(&path).unwrap().execute(newer, []).unwrap();
    let said = sentence(&path);
    assert!(said.contains("made by a newer Carillon") && said.contains("version 99"), "{said}");
}

#[tokio::test]
async fn a_firing_that_cannot_be_read_is_told_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    let (store, clock) = open(&path).unwrap();
    let bench = StoreFixture::new(Arc::new(store), clock).await;
    bench.create(job("a")).await;
    Connection::open(&path).unwrap().execute("UPDATE job_state SET armed = 'tomorrow'", []).unwrap();
    let said = bench.store.job(&key("a")).await.unwrap_err().to_string();
    let sentence =
        "a stored row cannot be read: \"tomorrow\" is not a firing; it may have been written by a newer Carillon";
    assert!(said.contains(sentence), "{said}");
}

#[test]
fn a_damaged_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    drop(open(&path).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..4000].fill(0xAB);
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(open(&path), Err(OpenError::Corrupted { .. })), "{}", sentence(&path));
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    drop(open(&path).unwrap());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        return; // root may write anything
    }
    assert!(matches!(open(&path), Err(OpenError::NotWritable { .. })));
}

#[test]
fn the_second_lease_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    let _first = Lease::acquire(&path, Duration::ZERO).unwrap();
    let said = Lease::acquire(&path, Duration::from_millis(60)).unwrap_err().to_string();
    assert!(said.contains("served by another Carillon") && said.contains(&std::process::id().to_string()), "{said}");
}

#[test]
fn ten_at_once_make_one_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..10).map(|_| scope.spawn(|| open(&path).map(|_| ()))).collect();
        for one in all {
            one.join().unwrap().unwrap();
        }
    });
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_what_it_has() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    let clock = ManualClock::at(BEGIN);
    let options = OpenOptions { max_pages: Some(200), ..options() };
    let store = SqliteStore::open(&path, Arc::new(clock.clone()), options).unwrap();
    let bench = StoreFixture::new(Arc::new(store), clock).await;
    let put = |n: usize| PutJob {
        job: carillon_domain::job::Job { params: "x".repeat(20_000), ..job(&format!("j{n}")) },
        paused: None,
        when: PutIf::Any,
        author: author(),
    };
    let mut stored = 0;
    let error = loop {
        match bench.store.put_jobs(&[put(stored)]).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Retryable(_)), "{error:?}");
    assert!(stored > 3);
    // Small writes that fit still do, and several at once do not take each other down.
    let (one, other) = tokio::join!(bench.store.heartbeat(Me::new(bench.me), 1, false), bench.store.put_jobs(&[]));
    assert!(one.is_ok() && other.is_ok());
    let listed = bench.store.jobs(&JobQuery { limit: 1000, ..JobQuery::default() }).await.unwrap().items.len();
    assert_eq!(listed, stored);
    drop(bench);
    assert_sound(&path);
}

fn assert_sound(path: &Path) {
    let conn = Connection::open(path).unwrap();
    let sound: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

/// Run by the next test in a process of its own: writes until it is killed, telling each job that is acknowledged.
#[tokio::test]
async fn child_that_writes_until_it_is_killed() {
    let Ok(path) = std::env::var("CARILLON_TEST_KILLED_DB") else { return };
    let (store, _clock) = open(Path::new(&path)).unwrap();
    for n in 0.. {
        let put = PutJob { job: job(&format!("j{n}")), paused: None, when: PutIf::Any, author: author() };
        store.put_jobs(&[put]).await.unwrap().remove(0).unwrap();
        println!("acknowledged {n}");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    use std::io::{BufRead, BufReader};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("carillon.db");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite_files::child_that_writes_until_it_is_killed", "--nocapture"])
        .env("CARILLON_TEST_KILLED_DB", &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let wait_for = |line: Option<std::io::Result<String>>| line.map(|line| line.unwrap_or_default());
    while let Some(line) = wait_for(lines.next()) {
        if line.contains("acknowledged 50") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let further = lines.map_while(Result::ok).filter(|line| line.contains("acknowledged")).count();
    let (store, _clock) = open(&path).unwrap();
    let listed = store.jobs(&JobQuery { limit: 100_000, ..JobQuery::default() }).await.unwrap().items.len();
    assert!(listed >= 51 + further, "{listed} jobs after {} acknowledgements", 51 + further);
    drop(store);
    assert_sound(&path);
}
