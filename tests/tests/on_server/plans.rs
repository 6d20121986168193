//! No statement reads a table from end to end: the server itself says how many rows each one looked at.

use std::time::Duration;

use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::port::StartAnswer;
use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::Me;
use carillon_store::feed::{FeedRequest, Journal, JournalAsk, Span};
use carillon_store::{AuditQuery, Finished, JobCursor, JobQuery, Output, PutIf, PutJob, RunQuery};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, ending, job, key, refs};
use carillon_tests::databases::{Database, Server};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::bench_on;

/// Jobs in the database.
const JOBS: usize = 10_000;
/// Rows that an operation is about.
const BATCH: usize = 20;
/// Rows that a statement may look at for such a batch: some for each of its rows in some indexes, far from all.
const FEW: u64 = 1_000;

/// A job with a long history.
const OLD: &str = "j05003";

/// Gives it 5,000 records.
async fn age(database: &Database) {
    let sql = format!(
        "INSERT INTO run (id, job_id, due_at, trigger_name, attempt, status, finished_at, due_count, first_due_at) \
         SELECT UNHEX(LEFT(SHA2(o.id, 256), 32)), j.id, o.id, 'schedule', 1, 'succeeded', 4000000000000, 1, o.id \
         FROM job o STRAIGHT_JOIN job j ON j.name = '{OLD}' WHERE o.id <= 5000"
    );
    database.run(&[&sql]).await;
}

/// Every other job may overlap, so that both tables have rows of all kinds.
async fn fill(bench: &StoreFixture) {
    let put = |n: usize| {
        let overlap = if n.is_multiple_of(2) { Overlap::Allow } else { Overlap::Skip };
        PutJob { job: Job { overlap, ..job(&format!("j{n:05}")) }, paused: None, when: PutIf::Any, author: author() }
    };
    for batch in 0..JOBS / 1000 {
        let puts: Vec<_> = (batch * 1000..batch * 1000 + 1000).map(put).collect();
        assert!(bench.store.put_jobs(&puts).await.unwrap().iter().all(Result::is_ok));
    }
}

async fn claim(bench: &StoreFixture, limit: usize) -> Vec<Finished> {
    let request = bench.claim_request(bench.me, bench.clock_in(30), limit);
    let claimed = bench.store.claim(&request).await.unwrap();
    assert_eq!(claimed.len(), limit);
    bench.clock.set(claimed.iter().map(|claimed| claimed.held.firing.start_at).max().unwrap());
    let mut ended = Vec::new();
    for answer in bench.store.start(Me::new(bench.me), &refs(&claimed)).await.unwrap() {
        if let StartAnswer::Started { at: running, .. } = answer {
            let request = Finished {
                at: running,
                ending: ending(Status::Succeeded, bench.clock_in(0)),
                next: None,
                output: Default::default(),
            };
            ended.push(Finished { output: Output { bytes: b"done".to_vec(), truncated: false }.into(), ..request });
        }
    }
    assert_eq!(ended.len(), limit);
    ended
}

/// The statistics that the optimizer uses.
#[derive(Debug, Clone, Copy)]
enum Statistics {
    /// As the server happened to make them.
    Automatic,
    /// The tables were counted a moment ago.
    Counted,
    /// A few pages are drawn by lot, and of a large table they may all look alike: as if no index told any rows apart.
    Misleading,
}

impl Statistics {
    const ALL: [Self; 3] = [Self::Automatic, Self::Counted, Self::Misleading];

    async fn set(self, root: &mut Conn, database: &Database) {
        let tables = ["job", "job_state", "concurrent_run", "run", "output", "session", "lock_row", "meta", "audit"];
        let tables = tables.map(|table| format!("{}.{table}", database.name)).join(", ");
        match self {
            Self::Automatic => {}
            Self::Counted => root.query_drop(format!("ANALYZE TABLE {tables}")).await.unwrap(),
            Self::Misleading => {
                let alike = format!(
                    "UPDATE mysql.innodb_index_stats SET stat_value = 1 WHERE database_name = '{}' \
                     AND index_name <> 'PRIMARY' AND stat_name LIKE 'n\\_diff\\_pfx%'",
                    database.name
                );
                root.query_drop(alike).await.unwrap();
                // They are read when a table is opened.
                root.query_drop(format!("FLUSH TABLES {tables}")).await.unwrap();
            }
        }
    }
}

/// The statements that nodes send all the time, those when others come and go, and those of people about one job.
async fn work(bench: &StoreFixture) {
    let store = &bench.store;
    store.peek(&bench.peek_request(bench.me, &[0, 1], bench.clock_in(30))).await.unwrap();
    let ended = claim(bench, BATCH).await;
    store.heartbeat(Me::new(bench.me), bench.clock_in(0).as_ms() as u64, false).await.unwrap();
    let running: Vec<_> = ended.iter().map(|ended| ended.at).collect();
    store.run(running[0].run).await.unwrap();
    store.settle(bench.me, &running).await.unwrap();
    store.release(bench.me, &running[..1]).await.unwrap();
    store.finish(Me::new(bench.me), &ended, &[]).await.unwrap();
    store.run(running[1].run).await.unwrap();
    store.output(running[1].run).await.unwrap();

    let name = key("j05001");
    store.job(&name).await.unwrap();
    store
        .jobs(&JobQuery { limit: BATCH, after: Some(JobCursor::Name(name.clone())), ..JobQuery::default() })
        .await
        .unwrap();
    let prefix = JobQuery { namespace: Some("default".into()), prefix: Some("j0500".into()), ..JobQuery::default() };
    assert_eq!(store.jobs(&JobQuery { limit: BATCH, ..prefix }).await.unwrap().items.len(), 10);
    assert!(store.job(&key(OLD)).await.unwrap().last_run.is_some());
    for max_runs_per_job in [50, 10_000_000] {
        store.purge(bench.clock_in(0), max_runs_per_job, 3).await.unwrap();
    }
    store.runs(&RunQuery { job: Some(name.clone()), limit: BATCH, ..RunQuery::default() }).await.unwrap();
    store.runs(&RunQuery { limit: BATCH, ..RunQuery::default() }).await.unwrap();
    for namespaces in [None, Some(vec!["default".to_owned()])] {
        for job in [None, namespaces.as_ref().map(|_| name.name.clone())] {
            let query = AuditQuery { namespaces: namespaces.clone(), job, limit: BATCH, ..AuditQuery::default() };
            assert!(!store.audit(&query).await.unwrap().items.is_empty());
        }
    }
    store.purge_audit(BEGIN, BATCH).await.unwrap();
    let manual = bench.draw();
    store.trigger(&name, manual, &author()).await.unwrap();
    store.cancel(manual, &author()).await.unwrap();
    store.pause(&name, None, None, &author()).await.unwrap();
    store.resume(&name, &author()).await.unwrap();
    bench.put(Job { params: "{\"command\":\"true\"}".into(), ..job("j05001") }).await;
    let waiting = bench.draw();
    store.trigger(&key("j05002"), waiting, &author()).await.unwrap();
    store.run(waiting).await.unwrap();
    store.cancel(waiting, &author()).await.unwrap();
    store.ask_output(running[0].run).await.unwrap();
    store.peek(&bench.peek_request(bench.me, &[0, 1], bench.clock_in(30))).await.unwrap();
    store.sessions().await.unwrap();
    look(bench).await;
    assert!(store.list_held(bench.me).await.unwrap().len() > BATCH);
    let now = bench.clock_in(0).as_ms().unsigned_abs();
    let [dead, gone] = [bench.session(now).await, bench.session(now + 1).await];
    store.expire(None, dead, 0).await.unwrap();
    assert_eq!(store.sweep(dead, BATCH).await.unwrap(), 0);
    for _ in 0..10 {
        let claimed = store.claim(&bench.claim_request(gone, bench.clock_in(30), BATCH)).await.unwrap();
        store.release(gone, &refs(&claimed)).await.unwrap();
    }
    store.close_session(gone).await.unwrap();
}

/// A look of a feed with many gaps, near the end of a long history.
async fn look(bench: &StoreFixture) {
    let first = FeedRequest { journals: [const { JournalAsk::newest() }; Journal::ALL.len()], present: false };
    let newest = bench.store.look(&first).await.unwrap().journals.map(|found| found.newest);
    let gaps = || (1..20).map(|n| Span { first: n * 100, last: n * 100 + 2 }).collect();
    let journals = newest.map(|newest| JournalAsk { after: newest - 10, limit: BATCH, gaps: gaps() });
    let look = bench.store.look(&FeedRequest { journals, present: true }).await.unwrap();
    assert!(look.journals.iter().all(|found| found.rows.len() >= 10));
    assert!(!look.present.unwrap().running.is_empty());
}

/// A page of jobs that no index knows is a bounded part of them, and the pages together are all.
async fn labelled(bench: &StoreFixture) {
    let labels = || [("team".to_owned(), "data".to_owned())].into();
    for name in ["j00003", "j04999", "j05000", "j09999"] {
        bench.put(Job { labels: labels(), ..job(name) }).await;
    }
    let (mut seen, mut pages, mut after) = (Vec::new(), 0, None);
    loop {
        let query = JobQuery { label: Some(("team".into(), None)), limit: BATCH, after, ..JobQuery::default() };
        let page = bench.store.jobs(&query).await.unwrap();
        seen.extend(page.items.into_iter().map(|view| view.job.name.clone()));
        (pages, after) = (pages + 1, page.next);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((seen, pages), (["j00003", "j04999", "j05000", "j09999"].map(str::to_owned).to_vec(), 3));
}

/// The statements that looked at more than a few rows.
async fn greedy(root: &mut Conn, database: &Database) -> Vec<String> {
    let sql = format!(
        "SELECT DISTINCT CONCAT(rows_examined, ' rows: ', LEFT(CONVERT(sql_text USING utf8mb4), 800)) \
         FROM mysql.slow_log WHERE db = '{}' AND rows_examined > {FEW}",
        database.name
    );
    root.query(sql).await.unwrap()
}

/// A peek looks for the cancelled runs of its node, and not at all that it holds.
async fn peek_beside_many_runs(bench: &StoreFixture, root: &mut Conn, database: &Database) {
    let mut held = Vec::new();
    for _ in 0..2 {
        held.extend(claim(bench, 1000).await);
    }
    let cancelled = held[1].at.run;
    bench.store.cancel(cancelled, &author()).await.unwrap();
    root.query_drop("TRUNCATE mysql.slow_log").await.unwrap();
    let peek = bench.store.peek(&bench.peek_request(bench.me, &[0, 1], bench.clock_in(30))).await.unwrap();
    assert!(peek.cancels.contains(&cancelled));
    let greedy = greedy(root, database).await;
    assert!(greedy.is_empty(), "{}", greedy.join("\n"));
}

/// How many statements the server was asked for one batch through all three transitions.
async fn statements_of_a_batch(bench: &StoreFixture, root: &mut Conn, database: &Database) -> Vec<String> {
    root.query_drop("TRUNCATE mysql.slow_log").await.unwrap();
    let ended = claim(bench, BATCH).await;
    bench.store.finish(Me::new(bench.me), &ended, &[]).await.unwrap();
    let sql =
        format!("SELECT LEFT(CONVERT(sql_text USING utf8mb4), 80) FROM mysql.slow_log WHERE db = '{}'", database.name);
    root.query(sql).await.unwrap()
}

#[tokio::test]
async fn ten_thousand_jobs_are_not_read_for_twenty() {
    let logging = ["--slow-query-log=1", "--long-query-time=0", "--log-output=TABLE"];
    let server = Server::start(crate::BRAND, &logging);
    let database = server.database().await;
    let bench = bench_on(&database).await;
    let mut root = server.root().await;
    fill(&bench).await;
    let of_audit = "SELECT COUNT(*) FROM mysql.slow_log WHERE sql_text LIKE 'INSERT INTO audit%'";
    let asked: u64 = root.query_first(of_audit).await.unwrap().unwrap();
    assert_eq!(asked, 4 * (JOBS / 1000) as u64, "a thousand entries are four statements");
    labelled(&bench).await;
    age(&database).await;
    // Some run still, most are history.
    for _ in 0..4 {
        let ended = claim(&bench, 1000).await;
        bench.store.finish(Me::new(bench.me), &ended[100..], &[]).await.unwrap();
    }
    // Released rows stay in the indexes, marked as deleted, for as long as anybody reads an older state; estimates count them.
    let mut reader = server.root().await;
    reader.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").await.unwrap();
    for statistics in Statistics::ALL {
        statistics.set(&mut root, &database).await;
        root.query_drop("TRUNCATE mysql.slow_log").await.unwrap();
        work(&bench).await;
        let seen: u64 = root.query_first("SELECT COUNT(*) FROM mysql.slow_log").await.unwrap().unwrap();
        assert!(seen > 50, "the server tells of {seen} statements");
        let greedy = greedy(&mut root, &database).await;
        assert!(greedy.is_empty(), "{statistics:?}\n{}", greedy.join("\n"));
        bench.clock.set(bench.clock_in(0) + Duration::from_secs(1));
    }
    peek_beside_many_runs(&bench, &mut root, &database).await;
    // Of jobs that run one at a time a batch takes few statements, whatever its size.
    let database = server.database().await;
    let bench = bench_on(&database).await;
    for n in 0..BATCH {
        bench.create(job(&format!("j{n}"))).await;
    }
    statements_of_a_batch(&bench, &mut root, &database).await;
    let asked = statements_of_a_batch(&bench, &mut root, &database).await;
    assert!((10..=15).contains(&asked.len()), "{}", asked.join("\n"));
}
