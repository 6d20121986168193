//! A database that lives and does not do what it is asked: no connections, no writes, none of those there were.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

use super::class::Class;
use super::dice::Dice;
use super::field::Field;
use super::outcome::{Begun, Struck};
use super::probe::{self, Write};
use crate::databases::{Server, blocking};

/// How long a probe waits for its refusal.
const WAIT: Duration = Duration::from_secs(5);
/// As many connections as the server takes otherwise.
const CONNECTIONS: u32 = 600;
/// MariaDB takes no lower limit than this.
const FEWEST: usize = 10;
/// Of an error: too many connections; read-only by option or by mode.
const TOO_MANY: u16 = 1040;
const READ_ONLY: [u16; 2] = [1290, 1836];
/// MySQL shows no list with a statement whose bytes are no text.
const UNREADABLE: u16 = 3854;
/// How long it may take to be well again.
const PATIENCE: Duration = Duration::from_secs(30);
/// The connections of the nodes.
const OF_NODES: &str = "SELECT id FROM information_schema.processlist WHERE user = 'carillon'";

/// The words of each server for nodes that wait while the tables are locked.
const WAITING: &str = "SELECT state FROM information_schema.processlist \
                       WHERE user = 'carillon' AND state LIKE 'Waiting for % lock'";

pub(super) fn strike(class: Class, field: &Field, dice: &mut Dice) -> Struck {
    let begun = Begun::on(None);
    let time = dice.ms(300, 3_000);
    let writer = field.writer().ok_or("no server takes writes")?;
    let server = &field.servers.members()[writer];
    let evidence = blocking(async {
        let root = server.try_root().await;
        let mut root = root.map_err(|error| format!("no connection as root: {error}"))?;
        let said = match class {
            Class::OutOfConnections => out_of_connections(field, server, &mut root, time).await,
            Class::ReadOnly => read_only(field, server, &mut root, time).await,
            Class::ReadLock => read_lock(&mut root, time).await,
            _ => connections_killed(&mut root, dice.coin()).await,
        };
        let undone = undo(&mut root).await;
        undone.and(said).map_err(|error| error.to_string())?
    })?;
    probe::works_again(field, server, PATIENCE)
        .map_err(|last| format!("{evidence}; a probe's write is {last:?} afterwards"))?;
    Ok(begun.seen(evidence))
}

/// However far it came.
async fn undo(root: &mut Conn) -> Result<(), Error> {
    root.query_drop("UNLOCK TABLES").await?;
    root.query_drop("SET GLOBAL read_only = 0").await?;
    root.query_drop(format!("SET GLOBAL max_connections = {CONNECTIONS}")).await
}

/// The observation, or why it does not count; an error of the orders themselves.
type Said = Result<Result<String, String>, Error>;

fn counts(as_wanted: bool, evidence: String) -> Result<String, String> {
    if as_wanted { Ok(evidence) } else { Err(evidence) }
}

async fn out_of_connections(field: &Field, server: &Server, root: &mut Conn, time: Duration) -> Said {
    let of_nodes: Vec<u64> = root.query(OF_NODES).await?;
    let limit = of_nodes.len().max(FEWEST);
    root.query_drop(format!("SET GLOBAL max_connections = {limit}")).await?;
    let mut mine = Vec::new();
    let mut last = fill(field, server, &mut mine).await;
    // The nodes have to come back through the crowd.
    for id in &of_nodes {
        let _gone = root.query_drop(format!("KILL CONNECTION {id}")).await;
        last = fill(field, server, &mut mine).await;
    }
    // A connection that was killed may give its place back only now.
    let until = Instant::now() + PATIENCE;
    let mut seen = probe::write(field, server, 1, WAIT);
    while seen != Write::Refused(TOO_MANY) && Instant::now() < until {
        last = fill(field, server, &mut mine).await;
        seen = probe::write(field, server, 1, WAIT);
    }
    tokio::time::sleep(time).await;
    drop(mine);
    let evidence = format!(
        "with {limit} connections allowed and {} of nodes ended, a probe's write is {seen:?} (the last before: {last})",
        of_nodes.len()
    );
    Ok(counts(seen == Write::Refused(TOO_MANY), evidence))
}

/// Takes what connections are left; what the server said to the one that it did not take.
async fn fill(field: &Field, server: &Server, mine: &mut Vec<Conn>) -> String {
    loop {
        match Conn::from_url(field.probe.at_member(server).url()).await {
            Ok(conn) => mine.push(conn),
            Err(error) => return error.to_string(),
        }
    }
}

async fn read_only(field: &Field, server: &Server, root: &mut Conn, time: Duration) -> Said {
    root.query_drop("SET GLOBAL read_only = 1").await?;
    let seen = probe::write(field, server, 1, WAIT);
    tokio::time::sleep(time).await;
    let is_refused = matches!(seen, Write::Refused(code) if READ_ONLY.contains(&code));
    Ok(counts(is_refused, format!("read-only for {time:?}: a probe's write is {seen:?}")))
}

async fn read_lock(root: &mut Conn, time: Duration) -> Said {
    root.query_drop("FLUSH TABLES WITH READ LOCK").await?;
    // The nodes write at least a sign of life now and then.
    let until = Instant::now() + PATIENCE;
    let mut seen: Option<String> = None;
    while seen.is_none() && Instant::now() < until {
        seen = match root.query_first(WAITING).await {
            Err(Error::Server(error)) if error.code == UNREADABLE => None,
            said => said?,
        };
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(time).await;
    root.query_drop("UNLOCK TABLES").await?;
    Ok(counts(
        seen.is_some(),
        format!("read lock until it was noticed and for {time:?} more: a node's statement was {seen:?}"),
    ))
}

async fn connections_killed(root: &mut Conn, all: bool) -> Said {
    let found: Vec<u64> = root.query(OF_NODES).await?;
    let chosen: Vec<u64> =
        found.iter().copied().enumerate().filter(|(n, _)| all || n % 2 == 0).map(|(_, id)| id).collect();
    let mut killed = Vec::new();
    for id in &chosen {
        if root.query_drop(format!("KILL CONNECTION {id}")).await.is_ok() {
            killed.push(*id);
        }
    }
    let mut left = killed.len();
    for _ in 0..500 {
        let now: Vec<u64> = root.query(OF_NODES).await?;
        left = killed.iter().filter(|id| now.contains(id)).count();
        if left == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let evidence = format!("{} of {} connections killed, {left} of them still there", killed.len(), found.len());
    Ok(counts(!killed.is_empty() && left == 0, evidence))
}
