//! What a shared database and the way to it can do to the MySQL store, with real servers, real locks and cut wires.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_adapters::store::mysql::{MySqlStore, OpenError, Options};
use carillon_adapters::store::{
    Beat, ControlStore, Finished, ManualClock, Me, NewSession, NodeStore, Output, PutIf, PutJob, StoreError,
};
use carillon_domain::id::SessionId;
use carillon_domain::job::Job;
use carillon_domain::node::port::{Claimed, FinishRequest, Seen, StartAnswer};
use carillon_domain::partition::partition_of;
use carillon_domain::run::Status;
use carillon_tests::conformance::Bench;
use carillon_tests::conformance::bench::{BEGIN, PARTITIONS, at, ending, job, key, refs};
use carillon_tests::databases::mariadb::{self, Database, MariaDb};
use carillon_tests::databases::proxy::{Proxy, Trap};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// A query packet that says COMMIT, and not the settings that speak of READ COMMITTED.
const COMMIT: &str = "\u{3}COMMIT";
/// What only a packet with rows to be written has in it: a batch whose first column is the row's number.
const ROWS: &str = "[[";

fn options(clock: &ManualClock) -> Options {
    Options { partitions: PARTITIONS, clock: Some(Arc::new(clock.clone())), ..Options::default() }
}

async fn open(url: &str, options: Options) -> Arc<MySqlStore> {
    Arc::new(MySqlStore::open(url, options).await.unwrap())
}

/// A store on the shared server with one live session.
async fn bench_on(database: &Database) -> Bench {
    let clock = ManualClock::at(BEGIN);
    let store = open(&database.url(), options(&clock)).await;
    Bench::new(store, clock).await
}

async fn bench() -> (Bench, Database) {
    let database = mariadb::shared().database().await;
    (bench_on(&database).await, database)
}

async fn refusal(url: &str, options: Options) -> String {
    MySqlStore::open(url, options).await.map(|_| ()).unwrap_err().to_string()
}

async fn wait_until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !reached().await {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited for nothing: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many connections of a database are in the middle of a guarded update: with its row held they wait for the lock.
/// (The server's own table of lock waits stands still while it is read often.)
async fn waiting(root: &mut Conn, database: &Database) -> usize {
    let sql = format!(
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{}' AND INFO LIKE 'UPDATE JSON_TABLE%'",
        database.name
    );
    root.query_first(sql).await.unwrap().unwrap()
}

async fn wait_for_waiters(database: &Database, count: usize) {
    let mut root = mariadb::shared().root().await;
    wait_until("transactions that wait", async || waiting(&mut root, database).await == count).await;
}

/// A connection that holds the lock of a job's row until it commits.
async fn holder(database: &Database, claimed: &Claimed) -> Conn {
    let carillon_domain::node::port::RowKey::Job(id) = claimed.at.row else { panic!("not a job's row") };
    let mut conn = database.connect().await;
    conn.query_drop("START TRANSACTION").await.unwrap();
    conn.query_drop(format!("SELECT id FROM job_state WHERE id = {id} FOR UPDATE")).await.unwrap();
    conn
}

#[tokio::test]
async fn ten_at_once_make_one_database() {
    let database = mariadb::shared().database().await;
    let clock = ManualClock::at(BEGIN);
    let starting: Vec<_> = (0..10)
        .map(|n| {
            let (url, options) = (database.url(), Options { partitions: PARTITIONS + n, ..options(&clock) });
            tokio::spawn(async move { MySqlStore::open(&url, options).await.map(|_| ()) })
        })
        .collect();
    for start in starting {
        start.await.unwrap().unwrap();
    }
    let mut conn = database.connect().await;
    let partitions: u16 = conn.query_first("SELECT value + 0 FROM meta").await.unwrap().unwrap();
    let locks: u16 = conn.query_first("SELECT COUNT(*) FROM lock_row").await.unwrap().unwrap();
    assert_eq!(locks, partitions + 1, "whoever came first made all of it");
}

#[tokio::test]
async fn a_missing_lock_row_is_named() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let own = partition_of("default", "a", PARTITIONS);
    database.run(&[&format!("DELETE FROM lock_row WHERE name = 'partition {own}'")]).await;
    let claim = bench.store.claim(&bench.claim_request(bench.me, at(30), 5)).await;
    let Err(StoreError::Permanent(said)) = claim else { panic!("{claim:?}") };
    assert!(said.contains(&format!("partition {own}")), "{said}");
    let said = refusal(&database.url(), options(&bench.clock)).await;
    assert!(said.contains(&format!("partition {own}")) && said.contains("lock_row"), "{said}");
    database.run(&[&format!("INSERT INTO lock_row VALUES ({}, 'partition {own}', 7)", own + 1)]).await;
    assert_eq!(bench.claim().await.len(), 1);
    database.run(&["DELETE FROM lock_row WHERE id = 0"]).await;
    let expired = bench.store.expire(bench.me, 0).await;
    assert!(matches!(&expired, Err(StoreError::Permanent(said)) if said.contains("the sessions")), "{expired:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_sessions_that_claim_at_once_never_get_the_same_row() {
    let (bench, database) = bench().await;
    let put = |n| PutJob { job: job(&format!("j{n}")), paused: None, when: PutIf::Any };
    let puts: Vec<_> = (0..1000).map(put).collect();
    assert!(bench.store.put_jobs(&puts).await.unwrap().iter().all(Result::is_ok));
    let mut racing = Vec::new();
    let bench = Arc::new(bench);
    for number in [2, 3, 4, 5] {
        // Two stores, as two processes would have, and two sessions on each.
        let store = open(&database.url(), options(&bench.clock)).await;
        for session in [bench.session(number).await, bench.session(number + 10).await] {
            let (store, bench) = (store.clone(), bench.clone());
            racing.push(tokio::spawn(async move {
                let mut mine = Vec::new();
                loop {
                    match store.claim(&bench.claim_request(session, at(30), 20)).await {
                        Ok(claimed) if claimed.is_empty() => return mine,
                        Ok(claimed) => mine.extend(claimed),
                        Err(StoreError::Retryable(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }));
        }
    }
    let (mut all, mut count) = (BTreeSet::new(), 0);
    for racer in racing {
        let mine = racer.await.unwrap();
        count += mine.len();
        all.extend(mine.iter().map(|claimed| claimed.at.row));
    }
    assert_eq!((count, all.len()), (1000, 1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stray_start_lands_on_nothing_after_it_was_settled() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let wire = Proxy::to(mariadb::shared().port());
    let patient = Options { statement_timeout: Duration::from_secs(60), ..options(&bench.clock) };
    let delayed = open(&database.url_through(wire.port()), patient).await;
    wire.set(Trap::Hold, ROWS);
    let (me, at) = (bench.me, claimed.at);
    let stray = tokio::spawn(async move { delayed.start(Me::new(me), &[at]).await });
    tokio::task::block_in_place(|| wire.wait_until_sprung());
    let seen = bench.store.settle(me, &[claimed.at]).await.unwrap().remove(0);
    let Seen::Prepared(settled) = seen else { panic!("{seen:?}") };
    wire.release();
    assert_eq!(stray.await.unwrap().unwrap(), [StartAnswer::Moved]);
    assert_eq!(bench.store.held(me).await.unwrap(), [settled.at], "the stray start was applied");
    bench.started(&settled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_and_a_stray_that_wait_for_the_same_row_agree() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let mut holder = holder(&database, &claimed).await;
    let (me, at) = (bench.me, claimed.at);
    let other = open(&database.url(), options(&bench.clock)).await;
    let stray = tokio::spawn(async move { other.start(Me::new(me), &[at]).await });
    wait_for_waiters(&database, 1).await;
    let store = bench.store.clone();
    let settling = tokio::spawn(async move { store.settle(me, &[at]).await });
    wait_for_waiters(&database, 2).await;
    holder.query_drop("COMMIT").await.unwrap();
    let started = stray.await.unwrap().unwrap().remove(0);
    let seen = settling.await.unwrap().unwrap().remove(0);
    let held = bench.store.held(me).await.unwrap().remove(0);
    // Whoever came into the queue first, both tell the same story, and it is the one of the row.
    match (started, seen) {
        (StartAnswer::Started { at: running, .. }, Seen::Executing { at, withdrawn: false, .. }) => {
            assert_eq!((running.run, at.version), (held.run, held.version));
        }
        (StartAnswer::Gone, Seen::Prepared(settled)) => assert_eq!(settled.at, held),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_too_long_is_rolled_back_and_leaves_no_waiter_behind() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.go_to(10);
    let mut holder = holder(&database, &claimed).await;
    let hasty = Options { statement_timeout: Duration::from_millis(300), ..options(&bench.clock) };
    let answer = open(&database.url(), hasty).await.start(Me::new(bench.me), &[claimed.at]).await;
    assert!(matches!(answer, Err(StoreError::Retryable(_))), "{answer:?}");
    wait_for_waiters(&database, 0).await;
    // A caller that goes away in the middle leaves none either.
    let (store, me) = (bench.store.clone(), bench.me);
    let at = claimed.at;
    let gone = tokio::spawn(async move { store.start(Me::new(me), &[at]).await });
    wait_for_waiters(&database, 1).await;
    gone.abort();
    wait_for_waiters(&database, 0).await;
    holder.query_drop("COMMIT").await.unwrap();
    assert_eq!(bench.store.held(me).await.unwrap(), [claimed.at]);
    bench.started(&claimed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_at_the_commit_leaves_it_unknown() {
    let database = mariadb::shared().database().await;
    let clock = ManualClock::at(BEGIN);
    let wire = Proxy::to(mariadb::shared().port());
    let store = open(&database.url_through(wire.port()), options(&clock)).await;
    let bench = Bench::new(store, clock).await;
    bench.create(job("a")).await;

    wire.set(Trap::CutBefore, COMMIT);
    let claim = bench.store.claim(&bench.claim_request(bench.me, at(30), 5)).await;
    assert!(matches!(claim, Err(StoreError::Unknown(_))), "{claim:?}");
    assert!(bench.store.held(bench.me).await.unwrap().is_empty());

    wire.set(Trap::CutAfter, COMMIT);
    let request = bench.claim_request(bench.me, at(30), 5);
    let claim = bench.store.claim(&request).await;
    assert!(matches!(claim, Err(StoreError::Unknown(_))), "{claim:?}");
    wait_until("the claim is committed", async || !bench.store.held(bench.me).await.unwrap().is_empty()).await;
    let held = bench.store.held(bench.me).await.unwrap();
    assert!(request.runs.contains(&held[0].run));
    let seen = bench.store.settle(bench.me, &held).await.unwrap().remove(0);
    let Seen::Prepared(settled) = seen else { panic!("{seen:?}") };
    bench.go_to(10);

    // Before the COMMIT was sent nothing can have been applied.
    wire.set(Trap::CutBefore, ROWS);
    let start = bench.store.start(Me::new(bench.me), &[settled.at]).await;
    assert!(matches!(start, Err(StoreError::Retryable(_))), "{start:?}");
    let running = bench.started(&settled).await;

    wire.set(Trap::CutAfter, COMMIT);
    let finished = Finished {
        request: FinishRequest { at: running, ending: ending(Status::Succeeded, at(11)) },
        output: Output { bytes: b"done".to_vec(), truncated: false },
    };
    let finish = bench.store.finish(bench.me, std::slice::from_ref(&finished)).await;
    assert!(matches!(finish, Err(StoreError::Unknown(_))), "{finish:?}");
    wait_until("the finish is committed", async || !bench.records("a").await.is_empty()).await;
    bench.store.finish(bench.me, &[finished]).await.unwrap();
    assert_eq!(bench.records("a").await.len(), 1);
    assert_eq!(wire.sprung(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_says_nothing_is_thrown_out() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let wire = Proxy::to(mariadb::shared().port());
    let silent = Options { holder_timeout: Duration::from_secs(1), ..options(&bench.clock) };
    let frozen = open(&database.url_through(wire.port()), silent).await;
    wire.set(Trap::Hold, COMMIT);
    let request = bench.claim_request(bench.me, at(30), 5);
    let claiming = tokio::spawn(async move { frozen.claim(&request).await });
    tokio::task::block_in_place(|| wire.wait_until_sprung());
    let begun = Instant::now();
    assert_eq!(bench.claim().await.len(), 1, "the locks and the row are free again");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    wire.release();
    let late = claiming.await.unwrap();
    assert!(matches!(late, Err(StoreError::Unknown(_))), "{late:?}");
}

#[tokio::test]
async fn heartbeats_wait_for_no_lock() {
    let (bench, database) = bench().await;
    let other = bench.session(2).await;
    let mut conn = database.connect().await;
    conn.query_drop("START TRANSACTION").await.unwrap();
    conn.query_drop("UPDATE lock_row SET epoch = epoch + 1").await.unwrap();
    conn.query_drop(format!("SELECT id FROM session WHERE id = {} FOR UPDATE", other.as_u64())).await.unwrap();
    let beat = bench.store.heartbeat(Me::new(bench.me), 1, false).await.unwrap();
    assert!(matches!(beat, Beat::Alive { ref sessions, .. } if sessions.len() == 2), "{beat:?}");
    conn.query_drop("COMMIT").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_away_is_used_again() {
    let server = MariaDb::start(&[]);
    let database = server.database().await;
    let bench = bench_on(&database).await;
    bench.create(job("a")).await;
    let claimed = bench.claim_one().await;
    bench.store.heartbeat(Me::new(bench.me), 1, false).await.unwrap();

    tokio::task::block_in_place(|| server.kill());
    let away = bench.store.start(Me::new(bench.me), &[claimed.at]).await;
    assert!(matches!(away, Err(StoreError::Retryable(_))), "{away:?}");
    assert!(bench.store.heartbeat(Me::new(bench.me), 2, false).await.is_err());
    tokio::task::block_in_place(|| server.start_again());
    assert!(matches!(bench.store.heartbeat(Me::new(bench.me), 2, false).await.unwrap(), Beat::Alive { .. }));
    assert_eq!(bench.store.held(bench.me).await.unwrap(), [claimed.at]);

    // Restarted while nobody looked: the first call finds its connection dead and takes another.
    tokio::task::block_in_place(|| (server.kill(), server.start_again()));
    bench.go_to(10);
    bench.started(&claimed).await;

    let hasty = Options { statement_timeout: Duration::from_secs(1), ..options(&bench.clock) };
    let hasty = open(&database.url(), hasty).await;
    hasty.heartbeat(Me::new(bench.me), 3, false).await.unwrap();
    server.freeze();
    let begun = Instant::now();
    assert!(hasty.heartbeat(Me::new(bench.me), 4, false).await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    server.thaw();
    assert!(matches!(hasty.heartbeat(Me::new(bench.me), 5, false).await.unwrap(), Beat::Alive { .. }));
}

#[tokio::test]
async fn servers_that_break_promises_are_refused() {
    let server = MariaDb::start(&["--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"]);
    let (database, mut root) = (server.database().await, server.root().await);
    let clock = ManualClock::at(BEGIN);
    let said = refusal(&database.url(), options(&clock)).await;
    assert!(said.contains("binlog_format is STATEMENT") && !said.contains("secret"), "{said}");
    root.query_drop("SET GLOBAL binlog_format = ROW").await.unwrap();
    let bench = bench_on(&database).await;
    bench.create(job("a")).await;

    root.query_drop("SET GLOBAL read_only = 1").await.unwrap();
    let said = refusal(&database.url(), options(&clock)).await;
    assert!(said.contains("read_only is on"), "{said}");
    let claim = bench.store.claim(&bench.claim_request(bench.me, at(30), 5)).await;
    assert!(matches!(claim, Err(StoreError::Retryable(_))), "{claim:?}");
    root.query_drop("SET GLOBAL read_only = 0").await.unwrap();
    assert_eq!(bench.claim().await.len(), 1);

    database.run(&["ALTER TABLE meta ENGINE = MyISAM"]).await;
    let said = refusal(&database.url(), options(&clock)).await;
    assert!(said.contains("meta is MyISAM"), "{said}");
    let nowhere = refusal(&database.url().replace(&database.name, "carillon_nowhere"), options(&clock)).await;
    assert!(nowhere.contains("carillon_nowhere"), "{nowhere}");
    let stranger = database.url().replace("carillon:secret", "carillon:wrong");
    let said = refusal(&stranger, options(&clock)).await;
    assert!(said.contains("Access denied") && !said.contains("wrong"), "{said}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (bench, database) = bench().await;
    database.run(&["INSERT INTO refinery_schema_history VALUES (99, 'from_the_future', 'x', '1')"]).await;
    let newer = MySqlStore::open(&database.url(), options(&bench.clock)).await.map(|_| ()).unwrap_err();
    assert!(matches!(newer, OpenError::Newer { found: 99, .. }), "{newer}");
}

/// The largest of everything, by the server's own clock.
#[tokio::test]
async fn large_definitions_and_outputs_fit_and_the_servers_clock_is_the_clock() {
    let database = mariadb::shared().database().await;
    let store = open(&database.url(), Options { clock: None, ..Options::default() }).await;
    let me = SessionId::from_random(1);
    let new = NewSession { id: me, node: "n".into(), address: "a".into(), version: "v".into() };
    let opened = store.open_session(&new).await.unwrap();
    let here = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    assert!((opened.now.as_ms() - here).abs() < 5_000, "{} against {here}", opened.now.as_ms());
    let odd = "\"\\\u{0}é😀\n";
    let params = format!("{{\"command\":\"{}{odd}\"}}", "x".repeat(256 * 1024));
    let put = |n: usize| PutJob {
        job: Job { params: params.clone(), schedule: "@every 1s".into(), ..job(&format!("j{n}")) },
        paused: None,
        when: PutIf::Any,
    };
    let puts: Vec<_> = (0..60).map(put).collect();
    assert!(store.put_jobs(&puts).await.unwrap().iter().all(Result::is_ok));
    assert_eq!(store.job(&key("j59")).await.unwrap().job.params, params);

    let runs = (1..=60).map(|n| carillon_domain::id::RunId::drawn(me, n)).collect();
    let until = store.now().await.unwrap() + Duration::from_secs(30);
    let request = carillon_adapters::store::ClaimRequest {
        me: Me::new(me),
        partitions: (0..opened.partitions).collect(),
        until,
        runs,
        executors: vec!["shell".into()],
    };
    let claimed = store.claim(&request).await.unwrap();
    assert_eq!(claimed.len(), 60);
    let last = claimed.iter().map(|claimed| claimed.held.firing.start_at).max().unwrap();
    wait_until("all are due", async || store.now().await.unwrap() >= last).await;
    let output = Output { bytes: (0..=255).cycle().take(65 * 1024).collect(), truncated: true };
    let mut ended = Vec::new();
    for answer in store.start(Me::new(me), &refs(&claimed)).await.unwrap() {
        let StartAnswer::Started { at, .. } = answer else { panic!("{answer:?}") };
        let request = FinishRequest { at, ending: ending(Status::Succeeded, store.now().await.unwrap()) };
        ended.push(Finished { request, output: output.clone() });
    }
    store.finish(me, &ended).await.unwrap();
    assert_eq!(store.output(ended[59].request.at.run).await.unwrap(), output);
    assert!(store.held(me).await.unwrap().is_empty());
}
