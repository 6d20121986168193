//! A group of one member says everything about itself that a group of three says; one of three also fails over.

mod alone;
mod failover;

use std::sync::Arc;

use carillon_store::ManualClock;
use carillon_store::mysql::{MySqlStore, Options};
use carillon_tests::conformance::fixture::PARTITIONS;
use carillon_tests::databases::Database;
use mysql_async::prelude::Queryable;

/// The right to see the state of the group.
const GRANT: &str = "GRANT SELECT ON performance_schema.replication_group_members TO carillon@'%'";

fn options(clock: &ManualClock) -> Options {
    Options { partitions: PARTITIONS, clock: Some(Arc::new(clock.clone())), ..Options::default() }
}

async fn as_root(database: &Database, statements: &[&str]) {
    let mut conn = database.root().await;
    for statement in statements {
        conn.query_drop(*statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

async fn refusal(url: &str, options: Options) -> String {
    MySqlStore::open(url, options).await.map(|_| ()).unwrap_err().to_string()
}
