//! A probe of the servers themselves: clients that know nothing of Carillon raise versions by compare-and-swap. A version that two of them
//! won, or one that is gone, is an update that the servers lost, and what else is found may be their fault.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::caller::now;
use crate::chaos::{Field, Kind};
use crate::databases::blocking;

/// So many clients swap; on a cluster each at another member.
const CLIENTS: usize = 3;
/// So many rows.
const ROWS: usize = 3;
/// A client waits so long between two swaps.
const EVERY: Duration = Duration::from_millis(100);
/// A swap may take so long.
const WITHIN: Duration = Duration::from_secs(5);

/// A swap that a server has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Win {
    row: usize,
    /// The version that it made.
    version: u64,
    asked_us: i64,
    acknowledged_us: i64,
}

/// The swaps of all clients.
#[derive(Debug, Clone, Default)]
pub struct Swaps {
    /// All that were acknowledged.
    pub wins: Vec<Win>,
    /// The version of each row when all was over; none where no server could be asked.
    pub last: Vec<u64>,
}

/// The account of the clients. What is closed for writing is closed for it, as it is not for root.
const USER: &str = "swapper";

/// Makes the rows and the account.
pub fn prepare(field: &Field) {
    let rows: Vec<String> = (0..ROWS).map(|row| format!("({row}, 0)")).collect();
    let insert = format!("INSERT INTO swap VALUES {}", rows.join(", "));
    let create = "CREATE TABLE swap (id INT PRIMARY KEY, version BIGINT UNSIGNED NOT NULL)";
    blocking(async {
        field.probe.run(&[create, &insert]).await;
        let writer = field.writer().expect("a server takes writes");
        let mut root = field.servers.members()[writer].root().await;
        let user = format!("CREATE USER {USER}@'%'");
        let grant = format!("GRANT ALL ON {}.* TO {USER}@'%'", field.probe.name);
        // It asks whether the member takes writes.
        let of_group = format!("GRANT SELECT ON performance_schema.replication_group_members TO {USER}@'%'");
        for sql in [Some(user), Some(grant), (field.kind == Kind::Group).then_some(of_group)].iter().flatten() {
            root.query_drop(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    });
}

/// Swaps until it is over.
pub fn swap(field: &Field, over: &AtomicBool) -> Swaps {
    let wins = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(move || of_client(field, client, over))).collect();
        clients.into_iter().flat_map(|client| client.join().expect("a client ends")).collect()
    });
    let sql = format!("SELECT version FROM {}.swap ORDER BY id", field.probe.name);
    let last = field.writer().and_then(|writer| {
        let asking = async { field.servers.members()[writer].try_root().await.ok()?.query(sql).await.ok() };
        blocking(async { tokio::time::timeout(WITHIN, asking).await.ok().flatten() })
    });
    Swaps { wins, last: last.unwrap_or_default() }
}

fn of_client(field: &Field, client: usize, over: &AtomicBool) -> Vec<Win> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let number = client % field.servers.members().len();
    let (mut wins, mut conn, mut turn) = (Vec::new(), None, client);
    while !over.load(Ordering::Relaxed) {
        turn += 1;
        let (row, asked_us) = (turn % ROWS, now());
        let swapping = once(field, number, conn.take(), row, turn.is_multiple_of(2));
        let done = runtime.block_on(async { tokio::time::timeout(WITHIN, swapping).await.ok().flatten() });
        if let Some((kept, version)) = done {
            conn = Some(kept);
            wins.extend(version.map(|version| Win { row, version, asked_us, acknowledged_us: now() }));
        }
        std::thread::park_timeout(EVERY);
    }
    wins
}

/// One swap, by one statement or in a transaction. The connection, and the version if it was won; `None` where the server does not take part or
/// its answer is missing.
async fn once(
    field: &Field,
    number: usize,
    conn: Option<Conn>,
    row: usize,
    alone: bool,
) -> Option<(Conn, Option<u64>)> {
    let mut conn = match conn {
        Some(conn) => conn,
        None => {
            let member = &field.servers.members()[number];
            let url = format!("mysql://{USER}@{}:{}/?prefer_socket=false", member.host(), member.port());
            Conn::from_url(url).await.ok()?
        }
    };
    if field.servers.asks_for_writer(&mut conn).await != Some(true) {
        return None;
    }
    let table = format!("{}.swap", field.probe.name);
    if !alone {
        conn.query_drop("START TRANSACTION").await.ok()?;
    }
    let found: u64 = conn.query_first(format!("SELECT version FROM {table} WHERE id = {row}")).await.ok()??;
    let update = format!("UPDATE {table} SET version = version + 1 WHERE id = {row} AND version = {found}");
    conn.query_drop(update).await.ok()?;
    let is_won = conn.affected_rows() == 1;
    if !alone {
        conn.query_drop("COMMIT").await.ok()?;
    }
    Some((conn, is_won.then_some(found + 1)))
}

impl Swaps {
    /// The updates that the servers lost, each as a sentence. `lossy` says when faults lost commits on purpose.
    pub fn lost(&self, lossy: &[(i64, i64)]) -> Vec<String> {
        let is_spared =
            |win: &&Win| lossy.iter().any(|(from, until)| win.acknowledged_us >= *from && win.asked_us <= *until);
        // Between two such faults no version comes again.
        let stretch = |win: &Win| lossy.iter().filter(|(from, _)| *from < win.asked_us).count();
        let mut won: BTreeMap<(usize, usize), BTreeMap<u64, Win>> = BTreeMap::new();
        let mut lost = Vec::new();
        for win in self.wins.iter().filter(|win| !is_spared(win)) {
            let of_row = won.entry((stretch(win), win.row)).or_default();
            if let Some(other) = of_row.insert(win.version, *win) {
                lost.push(format!("version {} of row {} was won twice: {other:?}, {win:?}", win.version, win.row));
            }
        }
        for of_row in won.values() {
            let wins: Vec<&Win> = of_row.values().collect();
            let back = wins.windows(2).filter(|pair| pair[1].acknowledged_us < pair[0].asked_us);
            lost.extend(back.map(|pair| format!("a lower version was won after a higher one: {pair:?}")));
        }
        for (row, last) in self.last.iter().enumerate() {
            let highest = won.get(&(lossy.len(), row)).and_then(|of_row| of_row.keys().next_back());
            lost.extend(
                highest.filter(|highest| *highest > last).map(|highest| {
                    format!("version {highest} of row {row} was acknowledged, and the last one is {last}")
                }),
            );
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn win(row: usize, version: u64, at_us: i64) -> Win {
        Win { row, version, asked_us: at_us, acknowledged_us: at_us + 5 }
    }

    #[test]
    fn an_update_that_is_lost_is_won_again_or_gone() {
        let swaps = |wins: &[Win], last: &[u64]| Swaps { wins: wins.to_vec(), last: last.to_vec() };
        let good = [win(0, 1, 10), win(1, 1, 12), win(0, 2, 20), win(0, 4, 40)];
        assert_eq!(swaps(&good, &[4, 1]).lost(&[]), Vec::<String>::new());
        assert_eq!(swaps(&good, &[3, 1]).lost(&[]).len(), 1, "the last one is gone");
        assert_eq!(swaps(&[win(0, 2, 10), win(0, 2, 20)], &[2]).lost(&[]).len(), 1, "one is won twice");
        assert_eq!(swaps(&[win(0, 7, 10), win(0, 6, 20)], &[7]).lost(&[]).len(), 1, "one comes after a later one");
    }

    #[test]
    fn commits_that_a_fault_loses_are_not_the_servers_fault() {
        let again = [win(0, 5, 10), win(0, 6, 32), win(0, 5, 100)];
        assert_eq!(Swaps { wins: again.to_vec(), last: vec![5] }.lost(&[(30, 50)]), Vec::<String>::new());
        assert_eq!(Swaps { wins: again.to_vec(), last: vec![4] }.lost(&[(30, 50)]).len(), 1);
    }
}
