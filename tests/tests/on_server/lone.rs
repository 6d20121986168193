//! Starts of known rows: one statement that commits by itself, and what it must not start.

use std::sync::Arc;
use std::time::Duration;

use carillon_domain::firing::Phase;
use carillon_domain::job::{Job, Overlap};
use carillon_domain::node::call::BeatAnswer;
use carillon_domain::node::port::{Claimed, FinishAnswer, Finished, Next, SettleAnswer, StartAnswer};
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;
use carillon_doubles::author;
use carillon_store::mysql::Options;
use carillon_store::{ClaimRequest, Me, NodeStore, Store, StoreError};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{at, ending, job, key, refs};
use carillon_tests::databases::proxy::{COMMIT, LONE_START, Proxy, Trap};
use carillon_tests::databases::{Database, Server, Surroundings};
use mysql_async::prelude::Queryable;

use super::races::{holder, wait_for_waiters};
use super::{bench, open, options, server, wait_until};

/// Jobs that a store of its own has claimed, of which its every packet can be seen, and which are due now.
struct Due {
    bench: StoreFixture,
    database: Database,
    wire: Proxy,
    store: Arc<dyn Store>,
    claimed: Vec<Claimed>,
}

impl Due {
    async fn of(jobs: &[&str]) -> Self {
        let (bench, database) = bench().await;
        for name in jobs {
            bench.create(job(name)).await;
        }
        let wire = Proxy::to(server().port());
        let patient = Options { statement_timeout: Duration::from_secs(60), ..options(&bench.clock) };
        let store = open(&database.url_through(wire.port()), patient).await;
        let claimed = store.claim(&bench.claim_request(bench.me, at(30), 5)).await.unwrap();
        assert_eq!(claimed.len(), jobs.len());
        bench.go_to(10);
        Self { bench, database, wire, store, claimed }
    }

    async fn start_as(&self, me: Me) -> Result<Vec<StartAnswer>, StoreError> {
        self.store.start(me, &refs(&self.claimed)).await
    }

    async fn start(&self) -> Result<Vec<StartAnswer>, StoreError> {
        self.start_as(Me::new(self.bench.me)).await
    }

    /// The one answer to a start of the one job.
    async fn start_one(&self) -> StartAnswer {
        self.start().await.unwrap().remove(0)
    }

    async fn settle_one(&self) -> SettleAnswer {
        self.bench.store.settle(self.bench.me, &[self.claimed[0].at]).await.unwrap().remove(0)
    }
}

#[tokio::test]
async fn what_is_known_starts_without_a_transaction() {
    let due = Due::of(&["a", "b"]).await;
    due.wire.set(Trap::CutBefore, COMMIT);
    let answers = due.start().await.unwrap();
    assert_eq!(due.wire.sprung(), 0, "there was nothing to commit");
    for (answer, name) in answers.iter().zip(["a", "b"]) {
        let StartAnswer::Started { at: running, held, .. } = answer else { panic!("{answer:?}") };
        assert_eq!((held.started_at, held.fencing_token), (Some(at(10)), running.version));
        let row = due.bench.view(name).await.state;
        assert_eq!((row.version, row.phase), (running.version, Phase::Executing(*held)), "of {name}");
        assert_eq!(row.cursor, held.firing.due_at);
        due.bench.finish(*running, Status::Succeeded).await;
        assert_eq!(due.bench.records(name).await.len(), 1);
    }
}

#[tokio::test]
async fn those_that_were_due_at_different_times_start_together() {
    let due = Due::of(&["a"]).await;
    let other = Job::new(("default", "b"), "@every 13s", "{}");
    due.bench.clock.set(at(0));
    due.bench.create(other).await;
    let both =
        [due.claimed, due.store.claim(&due.bench.claim_request(due.bench.me, at(30), 5)).await.unwrap()].concat();
    due.bench.go_to(13);
    due.wire.set(Trap::CutBefore, COMMIT);
    let answers = due.store.start(Me::new(due.bench.me), &refs(&both)).await.unwrap();
    assert_eq!(due.wire.sprung(), 0, "there was nothing to commit");
    for ((answer, name), cursor) in answers.iter().zip(["a", "b"]).zip([at(10), at(13)]) {
        let StartAnswer::Started { at: running, held, .. } = answer else { panic!("{answer:?}") };
        let row = due.bench.view(name).await.state;
        assert_eq!(
            (row.version, row.phase, row.cursor),
            (running.version, Phase::Executing(*held), cursor),
            "of {name}"
        );
    }
}

/// A change behind the store's back, and its answer then: the same as after a question.
#[tokio::test]
async fn what_holds_no_longer_starts_nothing() {
    let open_window = "INSERT INTO loss_window (is_open, session, node, from_at, until_at, noticed_at) \
                       VALUES (1, 9, 'n', 1, 2, 3)";
    let accepted_since = "INSERT INTO loss_window (session, node, from_at, until_at, noticed_at, accepted_at) \
                          VALUES (9, 'n', 1, 9999999999999, 3, 4)";
    for (change, acked, expected) in [
        ("DO 0", 0, None),
        ("UPDATE session SET state = 'draining'", 0, None),
        ("UPDATE session SET state = 'ended'", 0, Some(StartAnswer::Gone)),
        ("DELETE FROM session", 0, Some(StartAnswer::Gone)),
        ("DO 0", 5, Some(StartAnswer::Suspended)),
        (open_window, 0, Some(StartAnswer::Suspended)),
        (accepted_since, 0, Some(StartAnswer::Suspended)),
        ("UPDATE job_state SET version = version + 1", 0, Some(StartAnswer::Moved)),
        ("UPDATE job_state SET held_session = 9", 0, Some(StartAnswer::Gone)),
    ] {
        let due = Due::of(&["a"]).await;
        due.database.run(&[change]).await;
        let answer = due.start_as(Me { session: due.bench.me, acked }).await.unwrap().remove(0);
        let started = matches!(answer, StartAnswer::Started { .. });
        assert_eq!((Some(&answer).filter(|_| !started), started), (expected.as_ref(), expected.is_none()), "{change}");
        let held = due.bench.view("a").await.state.phase;
        assert_eq!(matches!(held, Phase::Executing(_)), started, "{change}");
    }
}

#[tokio::test]
async fn a_run_beside_that_is_not_known_holds_it_back() {
    let due = Due::of(&["a"]).await;
    let beside = Job { overlap: Overlap::Allow, ..job("b") };
    due.bench.create(beside).await;
    let claimed = due.bench.claim_one().await;
    due.bench.clock.set(claimed.held.firing.start_at);
    due.bench.started(&claimed).await;
    // It is one of the other job's now, whose row does not tell of it.
    due.database.run(&["UPDATE concurrent_run SET job_id = (SELECT id FROM job WHERE name = 'a')"]).await;
    assert_eq!(due.start_one().await, StartAnswer::Gone);
    assert!(!matches!(due.bench.view("a").await.state.phase, Phase::Executing(_)));
}

/// A start of others goes on as one statement, and neither a claim nor a finish of them reads concurrent runs.
#[tokio::test]
async fn a_long_concurrent_run_costs_other_jobs_no_statement() {
    let due = Due::of(&["a"]).await;
    due.bench.create(Job { overlap: Overlap::Allow, ..job("long") }).await;
    due.bench.store.trigger(&key("long"), due.bench.draw(), &author()).await.unwrap();
    let request = due.bench.claim_request(due.bench.me, at(10), 1);
    let long = due.bench.store.claim(&request).await.unwrap().remove(0);
    due.bench.started(&long).await;
    due.wire.set(Trap::CutBefore, COMMIT);
    let StartAnswer::Started { at: running, .. } = due.start_one().await else { panic!("it is due") };
    assert_eq!(due.wire.sprung(), 0, "the start committed by itself");

    due.wire.set(Trap::CutBefore, "FROM concurrent_run a");
    let ended_at = due.bench.clock_in(0);
    let next = Next { run: due.bench.draw(), until: due.bench.clock_in(30), has_place: true };
    let finished =
        Finished { at: running, ending: ending(Status::Succeeded, ended_at), next: Some(next), output: Arc::default() };
    let me = Me::new(due.bench.me);
    let answers = due.store.finish(me, &[finished], &["shell".to_owned()]).await.unwrap();
    assert!(matches!(answers[..], [FinishAnswer::RecordedAndClaimed(_)]), "{answers:?}");
    due.bench.create(job("b")).await;
    let request = ClaimRequest { places: 1, ..due.bench.claim_request(due.bench.me, due.bench.clock_in(30), 1) };
    assert_eq!(due.store.claim(&request).await.unwrap().len(), 1);
    assert_eq!(due.wire.sprung(), 0, "concurrent runs of another job are not read");
}

#[tokio::test]
async fn of_those_that_start_together_one_was_paused() {
    let due = Due::of(&["a", "b"]).await;
    due.bench.store.pause(&key("a"), None, None, &author()).await.unwrap();
    assert_eq!(due.start().await.unwrap(), [StartAnswer::Moved, StartAnswer::Moved]);
    let mut seen = due.store.settle(due.bench.me, &refs(&due.claimed)).await.unwrap();
    let named = |at: usize| due.claimed[at].job.name.as_str();
    let (paused, other) = if named(0) == "a" { (0, 1) } else { (1, 0) };
    assert_eq!(seen[paused], SettleAnswer::Gone);
    let SettleAnswer::Executing { at: running, withdrawn: false, .. } = seen.swap_remove(other) else {
        panic!("{seen:?}")
    };
    due.bench.finish(running, Status::Succeeded).await;
    assert_eq!((due.bench.records("a").await.len(), due.bench.records("b").await.len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_answer_it_is_unknown_and_settled() {
    let due = Due::of(&["a"]).await;
    due.wire.set(Trap::CutBefore, LONE_START);
    let lost = due.start().await;
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    assert!(matches!(due.settle_one().await, SettleAnswer::Prepared(_)), "it was not applied");

    let due = Due::of(&["a"]).await;
    due.wire.set(Trap::CutAfter, LONE_START);
    let lost = due.start().await;
    assert!(matches!(lost, Err(StoreError::Unknown(_))), "{lost:?}");
    let before = due.claimed[0].at.version;
    let version = async || due.bench.view("a").await.state.version;
    wait_until("the start is committed", async || version().await > before).await;
    let SettleAnswer::Executing { at: running, .. } = due.settle_one().await else { panic!("it was applied") };
    due.bench.finish(running, Status::Succeeded).await;
    assert_eq!((due.bench.records("a").await.len(), due.wire.sprung()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stray_one_lands_on_nothing_after_it_was_settled() {
    let due = Due::of(&["a"]).await;
    due.wire.set(Trap::Hold, LONE_START);
    let (store, me, at) = (due.store.clone(), due.bench.me, due.claimed[0].at);
    let stray = tokio::spawn(async move { store.start(Me::new(me), &[at]).await });
    tokio::task::block_in_place(|| due.wire.wait_until_sprung());
    let SettleAnswer::Prepared(settled) = due.settle_one().await else { panic!("it has not come yet") };
    due.wire.release();
    assert_eq!(stray.await.unwrap().unwrap(), [StartAnswer::Moved]);
    assert_eq!(due.bench.store.list_held(me).await.unwrap(), [settled.at], "the stray start was applied");
    due.bench.started(&settled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settling_and_one_that_wait_for_the_same_row_agree() {
    let due = Due::of(&["a"]).await;
    let mut holder = holder(&due.database, &due.claimed[0]).await;
    let (store, me, at) = (due.store.clone(), due.bench.me, due.claimed[0].at);
    let stray = tokio::spawn(async move { store.start(Me::new(me), &[at]).await });
    wait_for_waiters(&due.database, 1).await;
    // Heartbeats wait for no start that waits.
    let beat = due.bench.store.heartbeat(Me::new(me), 1, false).await.unwrap();
    assert!(matches!(beat, BeatAnswer::Alive { .. }), "{beat:?}");
    let other = due.bench.store.clone();
    let settling = tokio::spawn(async move { other.settle(me, &[at]).await });
    wait_for_waiters(&due.database, 2).await;
    holder.query_drop("COMMIT").await.unwrap();
    let started = stray.await.unwrap().unwrap().remove(0);
    let seen = settling.await.unwrap().unwrap().remove(0);
    match (&started, &seen) {
        (StartAnswer::Started { .. }, SettleAnswer::Executing { withdrawn: false, .. })
        | (StartAnswer::Moved, SettleAnswer::Prepared(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// Its statement looks at the session without a lock: neither waits for the other.
#[tokio::test]
async fn a_session_that_is_being_written_to_holds_no_start_up() {
    let due = Due::of(&["a"]).await;
    let mut beating = due.database.connect().await;
    beating.query_drop("START TRANSACTION").await.unwrap();
    beating.query_drop("UPDATE session SET seq = seq + 1").await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(10), due.start_one()).await.expect("it waits");
    assert!(matches!(answer, StartAnswer::Started { .. }), "{answer:?}");
    beating.query_drop("COMMIT").await.unwrap();
}

/// The store reckons with a time that the database shows no longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_was_put_back_starts_nothing_early() {
    let surroundings = Surroundings { clock: true, ..Surroundings::default() };
    let server = Server::start_in(crate::BRAND, surroundings, &[]);
    let clock = match server.clock() {
        Ok(clock) => clock,
        Err(why) => {
            return carillon_tests::skipped::tell(&format!("a start after the server's clock was put back: {why}"));
        }
    };
    let database = server.database().await;
    let by_itself = Options { clock: None, ..options(&carillon_store::ManualClock::at(Timestamp::EPOCH)) };
    let store = open(&database.url(), by_itself).await;
    let bench = StoreFixture::new(store.clone(), carillon_store::ManualClock::at(Timestamp::EPOCH)).await;
    bench.create(Job::new(("default", "a"), "@every 1s", "{}")).await;
    let until = Timestamp::from_ms(i64::MAX / 2);
    let request = ClaimRequest { until, ..bench.claim_request(bench.me, until, 5) };
    let claimed = store.claim(&request).await.unwrap().remove(0);
    let mut root = database.root().await;
    let shows = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000";
    let mut now = async || root.query_first::<i64, _>(shows).await.unwrap().unwrap();
    wait_until("it is due", async || now().await > claimed.held.firing.start_at.as_ms()).await;
    clock.put(-3_600_000);
    wait_until("it is an hour earlier", async || now().await < claimed.held.firing.start_at.as_ms()).await;
    let answer = store.start(Me::new(bench.me), &[claimed.at]).await.unwrap().remove(0);
    assert!(matches!(answer, StartAnswer::Early { .. }), "{answer:?}");
}
