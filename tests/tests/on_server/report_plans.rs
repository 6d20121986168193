//! No report reads more than a bounded part of a database, however many jobs and records there are: the server says how many rows
//! each statement looked at.

use std::collections::BTreeSet;

use carillon_domain::id::JobId;
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use carillon_store::{
    JobList, JobListQuery, JobQuery, JobSort, NamespaceScope, OverviewQuery, PutIf, PutJob, RolledUp, RunQuery,
};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, job};
use carillon_tests::databases::{Database, Server};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::{bench_on, wait_until};

/// Jobs in the database, and records of each; one job has many more.
const JOBS: usize = 12_000;
const RECORDS: usize = 10;
const OLD_RECORDS: usize = 20_000;
/// Jobs of a page, and records of each that it shows.
const PAGE: usize = 50;
const SHOWN: usize = 5;
/// Rows that a report may look at: some for each of its jobs.
const FEW: u64 = 1_500;
/// The same where rows are looked at that the answer leaves out: those that the report names as its bound, in each of the tables, and the
/// end of that part.
const BOUNDED: u64 = 28_000;

/// Marks statements that no report sends; the server may tell of them late.
const FILLING: &str = "/* filling */";

async fn fill(bench: &StoreFixture, database: &Database) {
    for batch in 0..JOBS / 1000 {
        let put = |n: usize| {
            let namespace = if n.is_multiple_of(3) { "other" } else { "default" }.to_owned();
            let job = carillon_domain::job::Job { namespace, ..job(&format!("j{n:05}")) };
            PutJob { job, paused: None, when: PutIf::Any, author: carillon_doubles::author() }
        };
        let puts: Vec<_> = (batch * 1000..batch * 1000 + 1000).map(put).collect();
        assert!(bench.store.put_jobs(&puts).await.unwrap().iter().all(Result::is_ok));
    }
    let records = |jobs: &str, of_each: usize| {
        format!(
            "INSERT INTO {FILLING} run (id, job_id, due_at, trigger_name, attempt, status, finished_at, lag_ms, due_count, first_due_at) \
             SELECT UNHEX(LEFT(SHA2(CONCAT(j.id, ' ', n.id), 256), 32)), j.id, {begin} + n.id * 1000, 'schedule', 1, 'failed', \
             {begin} + n.id * 1000, 5, 1, {begin} FROM job j STRAIGHT_JOIN (SELECT ROW_NUMBER() OVER () AS id FROM \
             (SELECT 1 FROM job LIMIT 200) a JOIN (SELECT 1 FROM job LIMIT 100) b LIMIT {of_each}) n WHERE {jobs}",
            begin = BEGIN.as_ms()
        )
    };
    let old = "j.name = 'j05003'";
    database.run(&[&records(&format!("NOT {old}"), RECORDS), &records(old, OLD_RECORDS)]).await;
    let troubled = format!("UPDATE {FILLING} job_state SET last_status = 2, troubled_since = {} + id", BEGIN.as_ms());
    database.run(&[&troubled]).await;
}

/// The statements since the last question that looked at more rows than they may. A server answers a statement before it logs it, and its
/// connection is at rest only after that. So this waits until all are, or a statement would be judged by the next limit.
async fn greedy(root: &mut Conn, database: &Database, limit: u64) -> Vec<String> {
    let name = &database.name;
    let busy =
        format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '{name}' AND COMMAND <> 'Sleep'");
    wait_until("every statement is logged", async || root.query_first(&busy).await.unwrap() == Some(0_u64)).await;
    let sql = format!(
        "SELECT DISTINCT CONCAT(rows_examined, ' rows: ', LEFT(CONVERT(sql_text USING utf8mb4), 800)) \
         FROM mysql.slow_log WHERE db = '{}' AND rows_examined > {limit} AND sql_text NOT LIKE '%{FILLING}%'",
        database.name
    );
    let greedy = root.query(sql).await.unwrap();
    root.query_drop("TRUNCATE mysql.slow_log").await.unwrap();
    greedy
}

/// Reports about jobs of the page, and lists without a filter.
async fn plain(bench: &StoreFixture) {
    let store = &bench.store;
    let all = NamespaceScope::All;
    let jobs: Vec<JobId> = (5_000..5_000 + PAGE as u64).map(JobId).collect();
    let recent = store.recent_runs(&jobs, SHOWN).await.unwrap();
    assert!(recent.len() == PAGE && recent.values().all(|records| records.len() == SHOWN));
    let day = BEGIN..BEGIN + std::time::Duration::from_secs(86_400);
    assert_eq!(store.runs_between(&jobs, day, SHOWN).await.unwrap().len(), PAGE);
    let until = Timestamp::MAX;
    let lists = [JobList::Troubled, JobList::Overdue { since: until }, JobList::Coming { until }];
    for list in lists {
        let lists = store.job_lists(&all, &[JobListQuery { list, limit: PAGE }]).await.unwrap();
        assert_eq!((lists[0].items.len(), lists[0].more), (PAGE, true), "{list:?}");
    }
    store.overview(&OverviewQuery { scope: all, running: PAGE, since: BEGIN }).await.unwrap();
    store.days_of_job(JobId(5_001), BEGIN).await.unwrap();
    // A job with a long history.
    let of_old = RunQuery { job_id: Some(JobId(5_004)), limit: PAGE, ..RunQuery::default() };
    let page = store.runs(&of_old).await.unwrap();
    let older = store.runs(&RunQuery { after: page.next, ..of_old }).await.unwrap();
    assert_eq!((page.items.len(), older.items.len()), (PAGE, PAGE));
    store.run(older.items[0].id).await.unwrap();
    let page = store.jobs(&JobQuery { sort: JobSort::Next, limit: PAGE, ..JobQuery::default() }).await.unwrap();
    assert!(page.items.len() == PAGE && page.next.is_some());
    let after = JobQuery { sort: JobSort::Next, limit: PAGE, after: page.next, ..JobQuery::default() };
    assert_eq!(store.jobs(&after).await.unwrap().items.len(), PAGE);
}

/// Reports that leave most rows out.
async fn filtered(bench: &StoreFixture) {
    let store = &bench.store;
    let only = |name: &str| NamespaceScope::Only(BTreeSet::from([name.to_owned()]));
    let until = Timestamp::MAX;
    for list in [JobList::Troubled, JobList::Overdue { since: until }, JobList::Coming { until }] {
        let lists = store.job_lists(&only("none"), &[JobListQuery { list, limit: PAGE }]).await.unwrap();
        assert_eq!((lists[0].items.len(), lists[0].more), (0, true), "not all rows were looked at: {list:?}");
        let lists = store.job_lists(&only("other"), &[JobListQuery { list, limit: PAGE }]).await.unwrap();
        assert_eq!(lists[0].items.len(), PAGE);
    }
    let all = || JobQuery { limit: PAGE, ..JobQuery::default() };
    for query in [
        JobQuery { contains: Some("05003".into()), ..all() },
        JobQuery { contains: Some("none".into()), ..all() },
        JobQuery { contains: Some("j".into()), paused: Some(true), ..all() },
        JobQuery { last_status: Some(Status::Lost), ..all() },
        JobQuery { last_status: Some(Status::Failed), namespace: Some("other".into()), ..all() },
        JobQuery { sort: JobSort::Next, paused: Some(true), ..all() },
    ] {
        store.jobs(&query).await.unwrap();
    }
    store.days_of_job(JobId(5_004), BEGIN).await.unwrap();
}

#[tokio::test]
async fn reports_look_at_a_bounded_number_of_rows() {
    let logging = ["--slow-query-log=1", "--long-query-time=0", "--log-output=TABLE"];
    let server = Server::start(crate::BRAND, &logging);
    let database = server.database().await;
    let bench = bench_on(&database).await;
    let mut root = server.root().await;
    fill(&bench, &database).await;
    root.query_drop("TRUNCATE mysql.slow_log").await.unwrap();
    plain(&bench).await;
    let seen: u64 = root.query_first("SELECT COUNT(*) FROM mysql.slow_log").await.unwrap().unwrap();
    assert!(seen > 10, "the server tells of {seen} statements");
    let few = greedy(&mut root, &database, FEW).await;
    assert!(few.is_empty(), "{}", few.join("\n"));
    filtered(&bench).await;
    let bounded = greedy(&mut root, &database, BOUNDED).await;
    assert!(bounded.is_empty(), "{}", bounded.join("\n"));

    // The first step looks at the newest number, the next ones count what is behind it.
    let mut steps: Vec<RolledUp> = Vec::new();
    for _ in 0..3 {
        bench.clock.set(bench.clock_in(2 * 60 * 60));
        steps.push(bench.store.roll_up(1_000).await.unwrap());
    }
    assert!(steps[1..].iter().all(|step| step.passed <= 2_000 && step.more), "{steps:?}");
    let counted = greedy(&mut root, &database, 2 * 1_000 * 2).await;
    assert!(counted.is_empty(), "{}", counted.join("\n"));
}
