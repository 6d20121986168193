//! A pair of servers, one of which takes the writes: the other one takes over while a store is open.

use carillon_domain::node::call::BeatAnswer;
use carillon_store::{ControlStore, ManualClock, Me, StoreError};
use carillon_tests::conformance::StoreFixture;
use carillon_tests::conformance::fixture::{BEGIN, job};
use carillon_tests::databases::proxy::Proxy;
use carillon_tests::databases::{Brand, Database, Server};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::{open, options, refusal, wait_until};

/// A primary and its replica, which takes no writes.
struct Pair {
    first: Server,
    second: Server,
    database: Database,
}

impl Pair {
    async fn start() -> Self {
        let brand = crate::BRAND;
        let start = |id: &str| {
            let common = ["--log-bin=binlog", "--binlog-format=ROW", id];
            let global_ids = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];
            let options: Vec<&str> = match brand {
                Brand::MariaDb => common.to_vec(),
                Brand::MySql => common.into_iter().chain(global_ids).collect(),
            };
            Server::start(brand, &options)
        };
        let (first, second) = (start("--server-id=1"), start("--server-id=2"));
        let database = first.database().await;
        let port = first.port();
        let follow = match brand {
            Brand::MariaDb => format!(
                "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root', \
                 MASTER_USE_GTID = slave_pos; START SLAVE"
            ),
            Brand::MySql => format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', \
                 SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
            ),
        };
        let mut replica = second.root().await;
        replica.query_drop(follow).await.unwrap();
        replica.query_drop("SET GLOBAL read_only = 1").await.unwrap();
        Self { first, second, database }
    }

    /// The address with both hosts.
    fn url(&self) -> String {
        let both = format!("127.0.0.1:{},127.0.0.1:{}", self.first.port(), self.second.port());
        self.database.url().replace(&format!("127.0.0.1:{}", self.first.port()), &both)
    }

    /// A planned switch-over: the first takes no writes any more, the second has all of them and takes new ones.
    async fn switch_over(&self) {
        let (mut old, mut new) = (self.first.root().await, self.second.root().await);
        old.query_drop("SET GLOBAL read_only = 1").await.unwrap();
        let written = position(&mut old).await;
        wait_until("the replica has everything", async || has(&mut new, &written).await).await;
        let stop = match crate::BRAND {
            Brand::MariaDb => "STOP SLAVE",
            Brand::MySql => "STOP REPLICA",
        };
        new.query_drop(stop).await.unwrap();
        new.query_drop("SET GLOBAL read_only = 0").await.unwrap();
    }
}

/// The writes that a server has.
async fn position(conn: &mut Conn) -> String {
    let variable = match crate::BRAND {
        Brand::MariaDb => "gtid_current_pos",
        Brand::MySql => "gtid_executed",
    };
    conn.query_first(format!("SELECT @@GLOBAL.{variable}")).await.unwrap().unwrap()
}

/// Whether a replica has these writes of its primary. It has some of its own.
async fn has(conn: &mut Conn, written: &str) -> bool {
    match crate::BRAND {
        Brand::MariaDb => position(conn).await == written,
        Brand::MySql => {
            let sql = format!("SELECT GTID_SUBSET('{}', @@GLOBAL.gtid_executed)", written.replace('\n', ""));
            conn.query_first(sql).await.unwrap() == Some(true)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_follows_a_switch_over_with_its_next_call() {
    let pair = Pair::start().await;
    let clock = ManualClock::at(BEGIN);
    let store = open(&pair.url(), options(&clock)).await;
    let bench = StoreFixture::new(store, clock.clone()).await;
    bench.create(job("a")).await;
    let me = Me::new(bench.me);
    assert!(matches!(bench.store.heartbeat(me, 1, false).await, Ok(BeatAnswer::Alive { .. })));

    pair.switch_over().await;
    // The connections stand, and the server at the other end refuses: the first call learns that, and the next one goes elsewhere.
    let refused = bench.store.heartbeat(me, 2, false).await;
    assert!(matches!(refused, Err(StoreError::Retryable(_))), "{refused:?}");
    let followed = bench.store.heartbeat(me, 2, false).await;
    assert!(matches!(followed, Ok(BeatAnswer::Alive { .. })), "{followed:?}");
    let (server, sessions) = (bench.store.server().unwrap(), bench.store.sessions().await.unwrap());
    assert_eq!((server.changes, server.topology.as_str()), (1, "one server"));
    assert!(server.place.ends_with(&pair.second.port().to_string()), "{server:?}");
    assert!(server.why.contains("others do not: 127.0.0.1:") && server.why.contains("read_only is on"), "{server:?}");
    assert_eq!(sessions[0].server.as_ref(), Some(&server.identity), "the session tells it with its heartbeat");
    // No other pool still holds a connection to the first one.
    let claimed = bench.claim().await;
    assert_eq!(claimed.len(), 1);
    bench.go_to(10);
    bench.started(&claimed[0]).await;
    let mut second = pair.second.root().await;
    let sql = format!("SELECT COUNT(*) FROM {}.job_state WHERE held_run IS NOT NULL", pair.database.name);
    assert_eq!(second.query_first::<u64, _>(sql).await.unwrap(), Some(1), "the claim is at the second server");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_finds_the_writer_wherever_it_is_named_and_says_why_there_is_none() {
    let pair = Pair::start().await;
    let clock = ManualClock::at(BEGIN);
    open(&pair.url(), options(&clock)).await;
    pair.switch_over().await;
    let bench = StoreFixture::new(open(&pair.url(), options(&clock)).await, clock.clone()).await;
    bench.create(job("a")).await;

    pair.first.stop();
    assert_eq!(bench.claim().await.len(), 1, "the server that is used is another one");
    pair.second.root().await.query_drop("SET GLOBAL read_only = 1").await.unwrap();
    let said = refusal(&pair.url(), options(&clock)).await;
    assert!(said.contains("no server takes writes now") && said.contains("read_only is on"), "{said}");
    let first = format!("127.0.0.1:{}", pair.first.port());
    assert!(said.contains(&first) && !said.contains("secret"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_one_server_and_then_to_another_is_refused() {
    let pair = Pair::start().await;
    pair.second.root().await.query_drop("SET GLOBAL read_only = 0").await.unwrap();
    let balancer = Proxy::in_turn(vec![pair.first.port(), pair.second.port()]);
    let clock = ManualClock::at(BEGIN);
    let said = refusal(&pair.database.url_through(balancer.port()), options(&clock)).await;
    assert!(said.contains("each connection to it leads to another server"), "{said}");
    // A name that moves once, as that of a router does, is followed.
    let router = Proxy::in_turn([vec![pair.first.port(); 2], vec![pair.second.port(); 100]].concat());
    let store = open(&pair.database.url_through(router.port()), options(&clock)).await;
    let before = store.server().unwrap();
    let (mut first, mut second) = (pair.first.root().await, pair.second.root().await);
    let written = position(&mut first).await;
    wait_until("the second server has the schema", async || has(&mut second, &written).await).await;
    let moved = StoreFixture::new(store.clone(), clock.clone()).await.store.server().unwrap();
    assert_eq!((before.changes, moved.changes), (0, 1), "{before:?} {moved:?}");
    assert!(before.place == moved.place && before.identity != moved.identity, "{before:?} {moved:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_writes_for_a_while_is_used_again_at_once() {
    let server = Server::start(crate::BRAND, &[]);
    let clock = ManualClock::at(BEGIN);
    let store = open(&server.database().await.url(), options(&clock)).await;
    let bench = StoreFixture::new(store, clock.clone()).await;
    let me = Me::new(bench.me);
    let mut root = server.root().await;
    root.query_drop("SET GLOBAL read_only = 1").await.unwrap();
    for _ in 0..2 {
        let refused = bench.store.heartbeat(me, 1, false).await;
        assert!(matches!(&refused, Err(StoreError::Retryable(_))), "{refused:?}");
    }
    root.query_drop("SET GLOBAL read_only = 0").await.unwrap();
    let beaten = bench.store.heartbeat(me, 1, false).await;
    assert!(matches!(beaten, Ok(BeatAnswer::Alive { .. })), "{beaten:?}");
}
