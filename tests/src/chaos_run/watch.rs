//! A watch beside the nodes: when a server took writes, and whether the nodes said that commits were lost where none were.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use carillon_checker::fault::End;
use carillon_checker::time;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::caller::now;
use super::liveness::Writable;
use crate::chaos::Field;
use crate::databases::blocking;
use crate::server::binary;

/// A server is asked so often.
const EVERY: Duration = Duration::from_millis(200);
/// How long one question and one write may take.
const WITHIN: Duration = Duration::from_millis(1_000);
/// A loss that no fault explains is accepted after so long, as people would, so that the run goes on.
const ACCEPTED_AFTER: Duration = Duration::from_secs(10);

/// Watches until it is over: when each server took writes.
pub fn watch(field: &Field, over: &AtomicBool) -> Vec<Writable> {
    std::thread::scope(|scope| {
        let members = 0..field.servers.members().len();
        let watching: Vec<_> = members.map(|number| scope.spawn(move || writes(field, number, over))).collect();
        scope.spawn(|| accept_false_alarms(field, over));
        watching.into_iter().map(|one| one.join().expect("a server is watched")).collect()
    })
}

/// Writes to one server whenever it takes writes of its cluster.
fn writes(field: &Field, number: usize, over: &AtomicBool) -> Writable {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (mut seen, mut conn) = (Writable::default(), None);
    while !over.load(Ordering::Relaxed) {
        let begun_us = now();
        let written = runtime
            .block_on(async { tokio::time::timeout(WITHIN, write(field, number, conn.take())).await.ok().flatten() });
        match written {
            Some(_) => seen.note(begun_us, now()),
            None => seen.note_refusal(),
        }
        conn = written;
        std::thread::park_timeout(EVERY);
    }
    seen
}

/// The connection, if the server took a write.
async fn write(field: &Field, number: usize, conn: Option<Conn>) -> Option<Conn> {
    let member = &field.servers.members()[number];
    let mut conn = match conn {
        Some(conn) => conn,
        None => member.try_root().await.ok()?,
    };
    if field.servers.asks_for_writer(&mut conn).await != Some(true) {
        return None;
    }
    let sql = format!("INSERT INTO {}.probe (text) VALUES ('')", field.probe.name);
    conn.query_drop(sql).await.ok().map(|()| conn)
}

/// Accepts what nodes say is lost while no fault loses anything.
fn accept_false_alarms(field: &Field, over: &AtomicBool) {
    let mut since = None;
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout(Duration::from_secs(1));
        let is_open = field.is_shared() && windows(field).iter().any(|window| window.is_open);
        let begun = *since.get_or_insert_with(Instant::now);
        if !is_open || (begun.elapsed() >= ACCEPTED_AFTER && accept(field)) {
            since = None;
        }
    }
}

fn accept(field: &Field) -> bool {
    field.nodes.iter().filter_map(|node| node.member.server()).any(|node| {
        let mut command = Command::new(binary());
        command.args(["cluster", "accept"]).env("CARILLON_SERVER", node.url()).env("CARILLON_TOKEN", node.token());
        command.output().is_ok_and(|accepted| accepted.status.success())
    })
}

/// A loss of commits as the nodes have recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// When it was noticed.
    pub noticed_us: i64,
    /// When it was accepted.
    pub accepted_us: Option<i64>,
    /// The node that noticed it.
    pub node: String,
    /// Whether nobody has accepted it yet.
    pub is_open: bool,
}

/// All losses that the nodes have recorded.
pub fn windows(field: &Field) -> Vec<Window> {
    let Some(writer) = field.writer() else { return Vec::new() };
    let sql = format!(
        "SELECT noticed_at, accepted_at, COALESCE(node, ''), is_open IS NOT NULL FROM {}.loss_window ORDER BY id",
        field.database.name
    );
    let asking = async {
        let mut conn = field.servers.members()[writer].try_root().await.ok()?;
        conn.query::<(i64, Option<i64>, String, bool), _>(sql).await.ok()
    };
    let rows = blocking(async { tokio::time::timeout(Duration::from_secs(5), asking).await.ok().flatten() });
    let in_us = |ms: i64| ms * time::SECOND_US / 1_000;
    let window = |(noticed_ms, accepted_ms, node, is_open): (i64, Option<i64>, String, bool)| Window {
        noticed_us: in_us(noticed_ms),
        accepted_us: accepted_ms.map(in_us),
        node,
        is_open,
    };
    rows.unwrap_or_default().into_iter().map(window).collect()
}

/// The sentence for the end of a node that had no reason.
pub fn told(end: &End, reachable_us: i64) -> String {
    format!(
        "{} ended at {} ({}) though a server had taken writes for {} ms",
        end.node,
        time::show(end.at_us),
        end.how,
        reachable_us / 1_000
    )
}
