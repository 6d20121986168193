//! Members that apply late what another one has acknowledged, perhaps while one of them becomes the writer.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::dice::Dice;
use super::field::Field;
use super::members::{as_root, is_left};
use super::outcome::{Begun, Struck, must_come};
use crate::databases::{Group, Server, Servers, blocking};

/// How long an order, an applier, or the nodes may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// A member that has it all sooner was not behind.
const LATE: Duration = Duration::from_millis(500);

pub(super) fn behind(field: &Field, dice: &mut Dice) -> Struck {
    let writer = field.writer().ok_or("no member takes writes")?;
    let late = (writer + 1 + usize::from(dice.coin())) % field.servers.members().len();
    let (switches, begun) = (dice.coin(), Begun::on(None));
    let said = match &field.servers {
        Servers::One(_) | Servers::Replicated(_) => Err("a server of its own has nothing to be behind".to_owned()),
        Servers::Galera(_) => slow_transaction(field, writer, late, dice.between(2_500, 4_500), switches),
        Servers::Group(group) => {
            let time = dice.ms(1_000, 4_000);
            blocking(async {
                tokio::time::timeout(PATIENCE * 2, locked(field, group, (writer, late), time, switches)).await
            })
            .unwrap_or_else(|_| Err("the orders took too long".to_owned()))
        }
    };
    field.is_back(writer).and(field.is_back(late))?;
    let (lag, how) = said?;
    let then = if switches { "; then another member became the writer" } else { "" };
    let evidence = format!("{how}: member {late} had what member {writer} had acknowledged {lag:?} later{then}");
    if lag >= LATE { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

fn sentence(error: &mysql_async::Error) -> String {
    error.to_string()
}

async fn root(member: &Server) -> Result<Conn, String> {
    member.try_root().await.map_err(|error| sentence(&error))
}

/// A connection to a member of a group that is behind. Otherwise a member that becomes the primary lets no statement pass until it has
/// applied everything, and so not even the one that unlocks its tables.
async fn impatient(member: &Server) -> Result<Conn, String> {
    let mut conn = root(member).await?;
    let sql = "SET SESSION group_replication_consistency = 'EVENTUAL'";
    conn.query_drop(sql).await.map_err(|error| sentence(&error))?;
    Ok(conn)
}

/// Writes something at one member; its number.
async fn mark(field: &Field, writer: usize) -> Result<u64, String> {
    let mut conn = root(&field.servers.members()[writer]).await?;
    let sql = format!("INSERT INTO {}.probe (text) VALUES ('behind')", field.probe.name);
    conn.query_drop(sql).await.map_err(|error| sentence(&error))?;
    conn.last_insert_id().ok_or_else(|| "the mark has no number".to_owned())
}

/// Waits until a member has applied a mark.
async fn arrives(field: &Field, mut conn: Conn, late: usize, mark: u64) -> Result<Instant, String> {
    let sql = format!("SELECT COUNT(*) FROM {}.probe WHERE id = {mark}", field.probe.name);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if conn.query_first::<u64, _>(&*sql).await.map_err(|error| sentence(&error))? == Some(1) {
            return Ok(Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(format!("member {late} did not apply a mark within {PATIENCE:?}"))
}

/// Without a key an applier looks through the whole table for each row that the writer changed in one go. Everything behind that waits,
/// and the member still says that it is synced.
fn slow_transaction(
    field: &Field,
    writer: usize,
    late: usize,
    rows: u64,
    switches: bool,
) -> Result<(Duration, String), String> {
    let table = format!("{}.slow", field.probe.name);
    // Otherwise the writer waits for the others.
    limit_queues(field, 100_000)?;
    let written = blocking(async {
        let mut conn = root(&field.servers.members()[writer]).await?;
        let statements = [
            format!("CREATE OR REPLACE TABLE {table} (n INT)"),
            format!("INSERT INTO {table} SELECT seq FROM {}.seq_1_to_{rows}", field.probe.name),
            format!("UPDATE {table} SET n = n + {rows}"),
        ];
        for statement in statements {
            conn.query_drop(&*statement).await.map_err(|error| format!("{statement}: {error}"))?;
        }
        mark(field, writer).await
    });
    let since = Instant::now();
    let lag = written.and_then(|mark| {
        let left = if switches { leave(field, writer) } else { Ok(()) };
        let arrived = blocking(async { arrives(field, root(&field.servers.members()[late]).await?, late, mark).await });
        left.and(arrived).map(|at| at - since)
    });
    limit_queues(field, 16)?;
    Ok((lag?, format!("{rows} rows without a key were changed at once")))
}

fn limit_queues(field: &Field, limit: u32) -> Result<(), String> {
    let sql = format!("SET GLOBAL wsrep_provider_options = 'gcs.fc_limit={limit}'");
    (0..field.servers.members().len()).try_for_each(|number| as_root(field, number, &sql))
}

/// The writer takes no writes until the nodes are elsewhere.
fn leave(field: &Field, writer: usize) -> Result<(), String> {
    as_root(field, writer, "SET GLOBAL read_only = 1")?;
    let left = must_come(PATIENCE, "the nodes write through another member", || is_left(field, writer));
    as_root(field, writer, "SET GLOBAL read_only = 0").and(left)
}

/// A secondary whose tables are locked applies nothing, and is still online in its group.
async fn locked(
    field: &Field,
    group: &Group,
    (writer, late): (usize, usize),
    time: Duration,
    switches: bool,
) -> Result<(Duration, String), String> {
    for member in group.members() {
        let sql = "SET GLOBAL group_replication_flow_control_mode = 'DISABLED'";
        root(member).await?.query_drop(sql).await.map_err(|error| sentence(&error))?;
    }
    let (mut lock, looking) = (impatient(&group.members()[late]).await?, impatient(&group.members()[late]).await?);
    lock.query_drop("FLUSH TABLES WITH READ LOCK").await.map_err(|error| sentence(&error))?;
    let (mark, since) = (mark(field, writer).await?, Instant::now());
    let unlocked = async {
        tokio::time::sleep(time).await;
        lock.query_drop("UNLOCK TABLES").await.map_err(|error| sentence(&error))
    };
    let switched = async { if switches { group.make_primary(late).await } else { Ok(()) } };
    let (unlocked, switched, arrived) = tokio::join!(unlocked, switched, arrives(field, looking, late, mark));
    unlocked?;
    switched?;
    Ok((arrived? - since, format!("its tables were locked for {time:?}")))
}
