//! Rows that commit out of the order of their numbers.

use std::time::Duration;

use carillon_domain::alert::When;
use carillon_domain::id::{RunId, SessionId};
use carillon_domain::run::Status;
use carillon_store::feed::{Entry, FeedRequest, Fresh, JournalAsk, Tail};
use carillon_tests::conformance::fixture::job;
use carillon_tests::conformance::{StoreFixture, alerts};
use carillon_tests::databases::{Database, SlowWriter};

use super::bench;

/// A reader that follows history.
struct Reader<'a> {
    bench: &'a StoreFixture,
    tail: Tail,
    looks: u64,
}

impl Reader<'_> {
    /// The runs that the next look tells.
    async fn told(&mut self) -> Vec<RunId> {
        let request = FeedRequest { journals: [self.tail.ask(1_000), JournalAsk::newest()], present: false };
        let look = self.bench.store.look(&request).await.unwrap();
        assert!(look.commits_within >= Duration::from_secs(11), "a transaction may live longer than that");
        let [runs, _] = look.journals;
        let numbers: Vec<u64> = runs.rows.iter().map(|(number, _)| *number).collect();
        self.looks += 1;
        let begun = Duration::from_millis(self.looks);
        let Fresh::Rows(fresh) = self.tail.take(begun, &numbers, runs.newest, look.commits_within) else {
            panic!("it went back");
        };
        let rows = runs.rows.into_iter().zip(fresh);
        let of_run = |entry| match entry {
            Entry::Run(view) => view.id,
            other @ Entry::Audit(_) => panic!("not of the history: {other:?}"),
        };
        rows.filter(|(_, fresh)| *fresh).map(|((_, entry), _)| of_run(entry)).collect()
    }
}

async fn run_once(bench: &StoreFixture) -> RunId {
    let at = bench.run_next().await;
    bench.finish(at, Status::Succeeded).await;
    at.run
}

/// A run of a job that nobody else runs, in a transaction that has not committed yet.
async fn slow_writer(bench: &StoreFixture, database: &Database, name: &str, status: Status) -> (RunId, SlowWriter) {
    let run = RunId::drawn(SessionId::from_random(99), 1);
    let job = bench.view(name).await.state.id;
    (run, SlowWriter::write(database, job, run, (status, bench.clock_in(0))).await)
}

#[tokio::test]
async fn a_row_that_commits_after_one_with_a_higher_number_is_told() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    bench.create(job("b")).await;
    bench
        .store
        .pause(&carillon_tests::conformance::fixture::key("b"), None, None, &carillon_doubles::author())
        .await
        .unwrap();
    let mut reader = Reader { bench: &bench, tail: Tail::after(0), looks: 0 };
    let before = run_once(&bench).await;
    let (late, slow) = slow_writer(&bench, &database, "b", Status::Succeeded).await;
    let after = run_once(&bench).await;
    assert_eq!(reader.told().await, [before, after], "the slow writer has not committed");
    let low = reader.tail.low();
    assert!(low < reader.tail.high(), "the watermark waits for it");
    let later = run_once(&bench).await;
    assert_eq!(reader.told().await, [later]);
    slow.commit().await;
    assert_eq!(reader.told().await, [late]);
    assert_eq!(reader.told().await, []);
    assert!(reader.tail.low() > low);
    // A reader that resumes from the watermark of then misses nothing.
    let mut resumed = Reader { bench: &bench, tail: Tail::after(low), looks: 0 };
    assert_eq!(resumed.told().await, [late, after, later]);
}

#[tokio::test]
async fn a_failure_that_commits_after_one_with_a_higher_number_is_told_once() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    bench.create(job("b")).await;
    alerts::put(&bench, &alerts::route("ops", &[When::Failed])).await;
    let (late, slow) = slow_writer(&bench, &database, "b", Status::Failed).await;
    let other = bench.claim().await.into_iter().find(|claimed| claimed.job.name == "a").unwrap();
    bench.clock.set(other.held.firing.start_at);
    let running = bench.started(&other).await;
    bench.finish(running, Status::Failed).await;
    assert_eq!(alerts::step(&bench).await.notices, 1);
    assert_eq!(alerts::step(&bench).await.notices, 0, "the slow writer has not committed");
    slow.commit().await;
    assert_eq!(alerts::step(&bench).await.notices, 1);
    assert_eq!(alerts::step(&bench).await.notices, 0);
    let mut told: Vec<_> = alerts::notices(&bench).await.into_iter().filter_map(|notice| notice.run).collect();
    told.sort();
    let mut expected = vec![late, running.run];
    expected.sort();
    assert_eq!(told, expected);
}

#[tokio::test]
async fn a_row_that_is_rolled_back_is_waited_for_and_never_told() {
    let (bench, database) = bench().await;
    bench.create(job("a")).await;
    let (_, slow) = slow_writer(&bench, &database, "a", Status::Succeeded).await;
    let run = run_once(&bench).await;
    let mut reader = Reader { bench: &bench, tail: Tail::after(0), looks: 0 };
    assert_eq!(reader.told().await, [run]);
    slow.roll_back().await;
    assert_eq!(reader.told().await, []);
    assert_eq!(reader.tail.low(), 0, "nobody has told that it will not come");
}
