//! The same SQL batches from a bare client.
//!
//! The store sends its batches once while the server logs every statement; then the tables are put back as they were, and
//! the logged texts are sent again on bare connections that do nothing but wait for the answers. So this ceiling follows
//! the store's SQL by itself.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::cycles::Cycles;
use crate::lab::{Lab, Scratch};

/// How many bare clients at a time are tried, each with jobs of its own.
const CLIENTS: [usize; 3] = [1, 2, 3];
const SETS: usize = 3;

/// The first statements of a session of the store.
const SESSION: [&str; 4] = [
    "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION autocommit = 0",
];

/// The database's ceiling for bare clients, with the number of clients that does best.
#[derive(Debug, Clone, Copy)]
pub struct Sql {
    /// Firings a second through the three batches of the store.
    pub firings: f64,
    /// Statements that the store sends for each firing, of batches of this size.
    pub statements: f64,
    /// `SELECT 1` a second.
    pub round_trips: f64,
}

impl Sql {
    /// Measures both.
    pub fn measure(lab: &Lab) -> Self {
        let (batches, size) = (lab.size.store_batches, lab.size.batch);
        let of_set = batches * size;
        let scratch = lab.database();
        let cycles = lab.block(Cycles::on_server(&scratch.url()));
        lab.block(cycles.add(of_set * SETS * 6 / 5));
        let tables = keep_tables(&scratch);
        let texts = lab.block(capture(&scratch, &cycles, batches, size));
        drop(cycles);
        let statements = texts.iter().map(Vec::len).sum::<usize>() as f64 / (of_set * SETS) as f64;
        let rate = |clients: usize| {
            put_back(&scratch, &tables);
            let took = lab.block(replay(&scratch, &texts[..clients]));
            let recorded: Vec<u64> = scratch.rows("SELECT COUNT(*) FROM run");
            assert_eq!(recorded, [(clients * of_set) as u64], "the bare clients did what the store had done");
            (clients * of_set) as f64 / took.as_secs_f64()
        };
        let firings = CLIENTS.iter().map(|clients| rate(*clients)).fold(0.0, f64::max);
        let round_trips = |clients: &usize| lab.block(round_trips(&scratch, *clients, lab.size.ceiling));
        let round_trips = CLIENTS.iter().map(round_trips).fold(0.0, f64::max);
        Self { firings, statements, round_trips }
    }
}

/// Copies every table; answers their names.
fn keep_tables(scratch: &Scratch<'_>) -> Vec<String> {
    let tables: Vec<String> = scratch.rows("SHOW TABLES");
    let copy = |table: &String| {
        [format!("CREATE TABLE kept_{table} LIKE {table}"), format!("INSERT INTO kept_{table} SELECT * FROM {table}")]
    };
    scratch.fill(&tables.iter().flat_map(copy).collect::<Vec<_>>());
    tables
}

fn put_back(scratch: &Scratch<'_>, tables: &[String]) {
    let back =
        |table: &String| [format!("TRUNCATE {table}"), format!("INSERT INTO {table} SELECT * FROM kept_{table}")];
    scratch.fill(&tables.iter().flat_map(back).collect::<Vec<_>>());
}

/// The statements of the store for each of the sets, as the server saw them.
async fn capture(scratch: &Scratch<'_>, cycles: &Cycles, batches: usize, size: usize) -> Vec<Vec<Vec<u8>>> {
    let mut root = scratch.root().await;
    let mut tell = async |sql: &str| root.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    tell("SET GLOBAL log_output = 'TABLE'").await;
    tell("TRUNCATE mysql.general_log").await;
    let mut sets = Vec::new();
    for set in 0..SETS {
        tell("SET GLOBAL general_log = ON").await;
        cycles.run(&Cycles::share(set, SETS), batches, size).await;
        tell("SET GLOBAL general_log = OFF").await;
        sets.push(logged(scratch).await);
        tell("TRUNCATE mysql.general_log").await;
    }
    tell("SET GLOBAL log_output = 'FILE'").await;
    sets
}

/// How the texts begin with which a connection of the store begins: the question that it asks the server, which MariaDB answers in
/// part only, and its settings.
const BEGINNINGS: [&[u8]; 4] = [b"SELECT VERSION()", b"SHOW GLOBAL ", b"SELECT MEMBER_ID", b"SET "];

/// The log in the order in which it was written, without what did not come from the store and without the beginnings of connections.
async fn logged(scratch: &Scratch<'_>) -> Vec<Vec<u8>> {
    let sql = "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') \
               AND user_host LIKE 'carillon%'";
    let texts: Vec<Vec<u8>> = scratch.root().await.query(sql).await.expect("the log can be read");
    let begins = |text: &Vec<u8>| BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
    texts.into_iter().filter(|text| !begins(text)).collect()
}

/// Sends each list of texts on a connection of its own, all at the same time; how long that took.
async fn replay(scratch: &Scratch<'_>, sets: &[Vec<Vec<u8>>]) -> Duration {
    let mut clients = Vec::new();
    for texts in sets {
        let (mut conn, texts) = (connection(scratch).await, texts.clone());
        clients.push(async move {
            for text in texts {
                conn.query_drop(text).await.expect("what the server did before");
            }
        });
    }
    together(clients).await
}

/// `SELECT 1` a second of so many clients.
async fn round_trips(scratch: &Scratch<'_>, clients: usize, time: Duration) -> f64 {
    let mut conns = Vec::new();
    for _ in 0..clients {
        conns.push(connection(scratch).await);
    }
    let calls = conns.into_iter().map(|mut conn| {
        tokio::spawn(async move {
            let (began, mut count) = (Instant::now(), 0_u32);
            while began.elapsed() < time {
                conn.query_drop("SELECT 1").await.expect("the server answers");
                count += 1;
            }
            f64::from(count) / began.elapsed().as_secs_f64()
        })
    });
    let mut rate = 0.0;
    for call in calls.collect::<Vec<_>>() {
        rate += call.await.expect("a client ends");
    }
    rate
}

async fn together(clients: Vec<impl Future<Output = ()> + Send + 'static>) -> Duration {
    let began = Instant::now();
    let running: Vec<_> = clients.into_iter().map(tokio::spawn).collect();
    for client in running {
        client.await.expect("a client ends");
    }
    began.elapsed()
}

async fn connection(scratch: &Scratch<'_>) -> Conn {
    let mut conn = scratch.root().await;
    for statement in SESSION {
        conn.query_drop(statement).await.expect("a session's settings");
    }
    conn
}
