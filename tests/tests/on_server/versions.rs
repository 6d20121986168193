//! An older binary and a newer one beside each other, one version of the schema apart.

use carillon_domain::run::Status;
use carillon_doubles::author;
use carillon_store::ManualClock;
use carillon_store::mysql::{MySqlStore, OpenError, Options};
use carillon_tests::conformance::fixture::{BEGIN, job, key};
use carillon_tests::databases::Database;
use mysql_async::prelude::Queryable;

use super::{bench, open, options, server};

async fn version(database: &Database) -> i64 {
    let newest = "SELECT MAX(version) FROM refinery_schema_history";
    database.connect().await.query_first(newest).await.unwrap().unwrap()
}

/// The version before the newest; numbers may have gaps.
async fn version_before(database: &Database) -> i64 {
    let before = "SELECT version FROM refinery_schema_history ORDER BY version DESC LIMIT 1, 1";
    database.connect().await.query_first(before).await.unwrap().unwrap()
}

/// The steps that a newer binary may take: steps that only add. Answers the version before.
async fn migrate_as_the_next_release_would(database: &Database) -> i64 {
    let known = version(database).await;
    let mut steps = vec!["CREATE TABLE novelty (id INT NOT NULL PRIMARY KEY)".to_owned()];
    for table in ["meta", "lock_row", "job", "job_state", "concurrent_run", "run", "output", "session"] {
        steps.push(format!("ALTER TABLE {table} ADD COLUMN novel BIGINT, ADD COLUMN told INT NOT NULL DEFAULT 7"));
    }
    steps.push(format!("INSERT INTO refinery_schema_history VALUES ({}, 'the_next_release', 'x', '1')", known + 1));
    database.run(&steps.iter().map(String::as_str).collect::<Vec<_>>()).await;
    known
}

async fn set_oldest_friend(database: &Database, value: &str) {
    database.run(&[&format!("UPDATE meta SET value = '{value}' WHERE name = 'oldest_friend'")]).await;
}

async fn refused(database: &Database, options: Options) -> bool {
    let opened = MySqlStore::open(&database.url(), options).await;
    opened.is_err_and(|error| matches!(error, OpenError::Newer { .. }))
}

#[tokio::test]
async fn an_older_binary_works_beside_a_newer_schema_unless_it_says_otherwise() {
    let (mut bench, database) = bench().await;
    bench.create(job("a")).await;
    let running = bench.run_next().await;
    let known = migrate_as_the_next_release_would(&database).await;
    // One that was there before goes on, one that comes now is let in.
    bench.finish(running, Status::Succeeded).await;
    bench.create(job("b")).await;
    bench.store = open(&database.url(), options(&bench.clock)).await;
    assert_eq!(version(&database).await, known + 1, "it leaves the newer schema alone");
    bench.create(job("c")).await;
    let claimed = bench.claim().await;
    assert_eq!(claimed.len(), 3);
    bench.go_to(20);
    for claimed in &claimed {
        let running = bench.started(claimed).await;
        bench.finish(running, Status::Succeeded).await;
    }
    assert_eq!(bench.records("a").await.len(), 2);
    bench.session(2).await;

    set_oldest_friend(&database, &known.to_string()).await;
    assert!(!refused(&database, options(&bench.clock)).await);
    for unfriendly in [&(known + 1).to_string(), "unreadable"] {
        set_oldest_friend(&database, unfriendly).await;
        assert!(refused(&database, options(&bench.clock)).await, "{unfriendly}");
    }
    database.run(&["DELETE FROM meta WHERE name = 'oldest_friend'"]).await;
    assert!(refused(&database, options(&bench.clock)).await, "nobody said that it is a friend");
}

#[tokio::test]
async fn a_schema_from_before_gets_what_it_lacks_even_where_that_was_interrupted() {
    let (mut bench, database) = bench().await;
    let newest = version(&database).await;
    let (lacking, unrecorded) = ("DROP TABLE spent_session", "DELETE FROM refinery_schema_history WHERE version >= 11");
    for (name, before) in [("a", vec![lacking, unrecorded]), ("b", vec![unrecorded])] {
        bench.create(job(name)).await;
        let running = bench.run_next().await;
        database.run(&before).await;
        bench.store = open(&database.url(), options(&bench.clock)).await;
        assert_eq!(version(&database).await, newest);
        bench.finish(running, Status::Succeeded).await;
        assert_eq!(bench.records(name).await.len(), 1, "{name}");
        bench.store.delete_job(&key(name), None, &author()).await.unwrap();
    }
}

#[tokio::test]
async fn old_and_new_that_open_at_the_same_moment_agree() {
    let (_bench, made) = bench().await;
    let (newest, before) = (version(&made).await, version_before(&made).await);
    for _ in 0..3 {
        let database = server().database().await;
        let clock = ManualClock::at(BEGIN);
        let starting: Vec<_> = (0..10)
            .map(|n: u32| {
                let knows_up_to = n.is_multiple_of(2).then_some(before);
                let (url, options) = (database.url(), Options { knows_up_to, ..options(&clock) });
                tokio::spawn(async move { (knows_up_to, MySqlStore::open(&url, options).await.map(|_| ())) })
            })
            .collect();
        for start in starting {
            match start.await.unwrap() {
                (_, Ok(())) | (Some(_), Err(OpenError::Newer { .. })) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(version(&database).await, newest);
        let older = Options { knows_up_to: Some(before), ..options(&clock) };
        set_oldest_friend(&database, &newest.to_string()).await;
        assert!(refused(&database, older.clone()).await);
        set_oldest_friend(&database, &before.to_string()).await;
        open(&database.url(), older).await;
    }
}
