//! A store is copied into this server's database and back: whole, resumed where it was killed, and refused where something is in use.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::alert::When;
use carillon_domain::id::SessionId;
use carillon_domain::run::{Output, Status};
use carillon_doubles::author;
use carillon_store::copy::{Copied, Place, Progress, copy};
use carillon_store::mysql::{MySqlStore, Options};
use carillon_store::sqlite::{Lease, OpenOptions, SqliteStore};
use carillon_store::{
    AuditQuery, ControlStore, Finished, JobQuery, ManualClock, Me, NewSession, NodeStore, PutIf, PutJob, RunQuery,
    RunStage, Store,
};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::alerts::route;
use carillon_tests::conformance::fixture::{BEGIN, PARTITIONS, ending, job, key};
use carillon_tests::databases::Database;

use super::{open, options, refusal, server};

/// More than fit into one commit of a copy.
const MANY: usize = 1_200;

async fn copied(from: &Place, to: &Place) -> Result<Vec<Copied>, String> {
    copy(from, to, &mut |_| {}).await.map_err(|error| error.to_string())
}

async fn refused(from: &Place, to: &Place) -> String {
    copied(from, to).await.map(|_| ()).unwrap_err()
}

fn file(path: &Path) -> Place {
    Place::Sqlite(path.to_owned())
}

fn place(database: &Database) -> Place {
    Place::MySql(database.url())
}

fn embedded(path: &Path) -> (Arc<SqliteStore>, ManualClock) {
    let clock = ManualClock::at(BEGIN);
    let options = OpenOptions { partitions: PARTITIONS, ..OpenOptions::default() };
    (Arc::new(SqliteStore::open(path, Arc::new(clock.clone()), options).unwrap()), clock)
}

/// Jobs in many states, history with outputs, a run that executes, a person's params, a route, and the audit log of it all.
async fn fill(bench: &StoreFixture) {
    bench.create(job("a")).await;
    let store = &bench.store;
    store.put_route(&route("ops", &[When::Failed]), None, &author()).await.unwrap();
    let run = bench.draw();
    store.trigger_with(&key("a"), run, Some(r#"{"env":{"X":"1"}}"#.into()), &author()).await.unwrap();
    for status in [Status::Failed, Status::Succeeded] {
        let (at, now) = (bench.run_next().await, store.now().await.unwrap());
        let output = Output { bytes: format!("{status:?} \u{fffd}").into_bytes(), ..Output::default() };
        let finished = Finished { at, ending: ending(status, now), next: None, output: output.into() };
        store.finish(Me::new(bench.me), &[finished], &[]).await.unwrap();
    }
    bench.run_next().await;
    bench.create(job("gone")).await;
    bench.create(job("paused")).await;
    store.pause(&key("paused"), None, Some("it hurts: ü".into()), &author()).await.unwrap();
    store.delete_job(&key("gone"), None, &author()).await.unwrap();
    let many = |n: usize| PutJob { job: job(&format!("many-{n}")), paused: None, when: PutIf::Any, author: author() };
    for part in [0..MANY / 2, MANY / 2..MANY] {
        let puts: Vec<PutJob> = part.map(many).collect();
        assert!(bench.store.put_jobs(&puts).await.unwrap().iter().all(Result::is_ok));
    }
}

/// Everything that people see, in one value.
async fn seen(store: &dyn Store) -> String {
    let jobs = store.jobs(&JobQuery { limit: 10_000, ..JobQuery::default() }).await.unwrap().items;
    let runs = store.runs(&RunQuery { limit: 10_000, ..RunQuery::default() }).await.unwrap().items;
    let mut outputs = BTreeMap::new();
    for run in runs.iter().filter(|run| matches!(run.stage, RunStage::Recorded { .. })) {
        outputs.insert(run.id.to_string(), store.output(run.id).await.unwrap());
    }
    let audit = store.audit(&AuditQuery { limit: 10_000, ..AuditQuery::default() }).await.unwrap().items;
    let routes = store.routes().await.unwrap();
    assert!(jobs.len() > MANY && runs.len() >= 3 && !outputs.is_empty() && audit.len() > MANY && routes.len() == 1);
    format!("{jobs:?}\n{runs:?}\n{outputs:?}\n{audit:?}\n{routes:?}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_into_the_server_and_back_whole() {
    let (directory, database) = (tempfile::tempdir().unwrap(), server().database().await);
    let (source, back) = (directory.path().join("carillon.db"), directory.path().join("back.db"));
    let (store, clock) = embedded(&source);
    let bench = StoreFixture::new(store, clock).await;
    fill(&bench).await;
    let (before, me, held) = (seen(&*bench.store).await, bench.me, bench.store.list_held(bench.me).await.unwrap());
    assert_eq!(held.len(), 1);
    drop(bench);

    let mut told: Vec<Progress> = Vec::new();
    let there = copy(&file(&source), &place(&database), &mut |progress| told.push(progress)).await.unwrap();
    let jobs = |checks| told.iter().filter(move |one| one.table == "job" && one.checks == checks).map(|one| one.done);
    assert_eq!(jobs(false).collect::<Vec<_>>(), [0, 500, 1_000, 1_203]);
    assert_eq!(jobs(true).collect::<Vec<_>>(), [1_203]);
    let rows: BTreeMap<&str, u64> = there.iter().map(|one| (one.table, one.digest.rows)).collect();
    assert!(
        ["run", "output", "run_params", "alert_route", "audit", "session"].iter().all(|name| rows[name] > 0),
        "{rows:?}"
    );

    let clock = ManualClock::at(BEGIN);
    let store = open(&database.url(), options(&clock)).await;
    assert_eq!(seen(&*store).await, before);
    assert_eq!(store.list_held(me).await.unwrap(), held, "a node that died is swept there as here");
    drop(store);
    assert_eq!(copied(&place(&database), &file(&back)).await.unwrap(), there, "and back");
    let (store, clock) = embedded(&back);
    assert_eq!(seen(&*store).await, before);
    // Numbers of what was deleted are not given again, there and here.
    store.put_jobs(&[PutJob { job: job("new"), paused: None, when: PutIf::Any, author: author() }]).await.unwrap();
    let number = store.job(&key("new")).await.unwrap().state.id;
    assert_eq!(number.0, u64::try_from(MANY).unwrap() + 4, "{number:?}");
    drop((store, clock));
    let said = refused(&file(&back), &place(&database)).await;
    assert!(said.contains("is not empty (table job has rows)"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_killed_goes_on_where_it_was() {
    let (directory, database) = (tempfile::tempdir().unwrap(), server().database().await);
    let (source, other) = (directory.path().join("carillon.db"), directory.path().join("other.db"));
    let (store, clock) = embedded(&source);
    fill(&StoreFixture::new(store, clock).await).await;
    drop(embedded(&other));
    for (from, to) in [(file(&source), place(&database)), (place(&database), file(&directory.path().join("back.db")))] {
        let (killed_from, killed_to) = (from.clone(), to.clone());
        let killed = tokio::spawn(async move {
            let mut die =
                |progress: Progress| assert!(progress.table != "job_state" || progress.done == 0, "killed here");
            copy(&killed_from, &killed_to, &mut die).await
        });
        assert!(killed.await.unwrap_err().is_panic());
        let said = match &to {
            Place::MySql(url) => refusal(url, Options::default()).await,
            Place::Sqlite(path) => {
                let options = OpenOptions::default();
                SqliteStore::open(path, Arc::new(ManualClock::at(BEGIN)), options).map(|_| ()).unwrap_err().to_string()
            }
        };
        assert!(said.contains("run `carillon copy` again"), "{said}");
        let said = refused(&file(&other), &to).await;
        assert!(said.contains("holds a part of another source"), "{said}");
        let mut first = BTreeMap::new();
        copy(&from, &to, &mut |progress| _ = first.entry(progress.table).or_insert(progress.done)).await.unwrap();
        assert_eq!((first["job"], first["job_state"], first["audit"]), (1_203, 500, 0), "it went on");
    }
    open(&database.url(), options(&ManualClock::at(BEGIN))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_in_use_is_no_end_of_a_copy() {
    let (directory, database, empty) =
        (tempfile::tempdir().unwrap(), server().database().await, server().database().await);
    let path = directory.path().join("carillon.db");
    let said = refused(&file(&path), &place(&empty)).await;
    assert!(said.contains("there is no database"), "{said}");
    let said = refused(&place(&empty), &file(&path)).await;
    assert!(said.contains("there is no store at"), "{said}");
    assert!(!path.exists(), "nothing was made");
    drop(embedded(&path));
    let lease = Lease::acquire(&path, Duration::ZERO).unwrap();
    let said = refused(&file(&path), &place(&empty)).await;
    assert!(said.contains("is served by another Carillon"), "{said}");
    drop(lease);

    // By the clock of the server: its heartbeat is fresh.
    let live =
        MySqlStore::open(&database.url(), Options { partitions: PARTITIONS, ..Options::default() }).await.unwrap();
    let (id, node, address, version) = (SessionId::from_random(5), "n5".into(), "a".into(), "v".into());
    live.open_session(&NewSession { id, node, address, version }).await.unwrap();
    for (from, to, role) in [(place(&database), place(&empty), "source"), (file(&path), place(&database), "target")] {
        let said = refused(&from, &to).await;
        assert!(said.contains(&format!("the {role} ")) && said.contains("node n5 lives"), "{said}");
    }
    live.close_session(id).await.unwrap();
    let empty = server().database().await;
    let rows: u64 = copied(&file(&path), &place(&empty)).await.unwrap().iter().map(|one| one.digest.rows).sum();
    assert_eq!(rows, 0, "a store that was made, and no more");
}
