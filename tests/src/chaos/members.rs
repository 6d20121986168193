//! Faults of the members of a cluster, and of the cluster as a whole.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;

use super::class::Class;
use super::dice::Dice;
use super::field::{Field, is_at};
use super::outcome::{Begun, Struck, comes, last_for, must_come};
use crate::databases::{Cut, Servers, blocking};
use crate::processes::{has_ended, state};

/// How long it may take until nodes are elsewhere, and until a cluster takes writes again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a question may take.
const ASK: Duration = Duration::from_secs(3);

pub(super) fn strike(class: Class, field: &Field, dice: &mut Dice) -> Struck {
    match class {
        Class::MemberCutOff => cut_off(field, dice),
        Class::SwitchedOver => switched_over(field, dice),
        Class::MemberOutside => outside(field, dice),
        _ => crashed(field, dice),
    }
}

/// All members run and are with each other. What an earlier fault has left is mended; at last the cluster is made anew.
pub(super) fn made_whole(field: &Field) -> Result<(), String> {
    if !field.kind.has_several_servers() {
        return Ok(());
    }
    let servers = &field.servers;
    if let Servers::Replicated(pair) = servers {
        return pair.mend();
    }
    let mended = (0..servers.members().len()).try_for_each(|number| {
        let is_gone = has_ended(servers.members()[number].pid());
        if is_gone { servers.start_again(number) } else { servers.is_back(number) }
    });
    mended.or_else(|why| {
        kill_all(field, Duration::ZERO);
        made_anew(field).map(|_| ()).map_err(|again| format!("{why}; and made anew: {again}"))
    })
}

fn cut_off(field: &Field, dice: &mut Dice) -> Struck {
    let network = field.servers.network()?;
    let number = field.hit(dice);
    let cut = *dice.pick(&[Cut::Members, Cut::Members, Cut::Deaf, Cut::Everybody]);
    let (was, time, begun) = (field.role(number), dice.ms(1_000, 20_000), Begun::on(None));
    network.cut(number, cut)?;
    last_for(time);
    let stopped = network.stopped(number);
    network.heal(number)?;
    field.is_back(number)?;
    let evidence = format!("{was} was cut off ({cut:?}) for {time:?}: {stopped} packets were stopped");
    if stopped > 0 { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

/// Whether no node that lives writes through a member.
pub(super) fn is_left(field: &Field, number: usize) -> bool {
    let member = &field.servers.members()[number];
    let servers = field.servers_of_nodes();
    servers.is_some_and(|servers| !servers.is_empty() && !servers.iter().any(|server| is_at(server, member)))
}

fn switched_over(field: &Field, dice: &mut Dice) -> Struck {
    let number = field.writer().ok_or("no member takes writes")?;
    let member = &field.servers.members()[number];
    let next = (number + 1 + usize::from(dice.coin())) % field.servers.members().len();
    let (begun, since) = (Begun::on(None), Instant::now());
    let (on, off) = if dice.coin() {
        ("SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0")
    } else {
        ("SET GLOBAL wsrep_desync = ON", "SET GLOBAL wsrep_desync = OFF")
    };
    let how = match &field.servers {
        Servers::Group(group) => {
            blocking(group.make_primary(next))?;
            format!("member {next} was made the primary")
        }
        Servers::Replicated(pair) => {
            pair.switch_over()?;
            "the replica took over as planned".to_owned()
        }
        _ => {
            as_root(field, number, on)?;
            on.to_owned()
        }
    };
    let left = must_come(PATIENCE, "the nodes write through another member", || is_left(field, number));
    let after = since.elapsed();
    if matches!(field.servers, Servers::Galera(_)) {
        let mut last = Ok(());
        comes(PATIENCE, || {
            last = as_root(field, number, off);
            last.is_ok()
        });
        last?;
        field.servers.is_back(number)?;
    }
    left?;
    Ok(begun.seen(format!("{how} at {}:{}; all nodes were elsewhere after {after:?}", member.host(), member.port())))
}

pub(super) fn as_root(field: &Field, number: usize, sql: &str) -> Result<(), String> {
    let member = &field.servers.members()[number];
    let asking = async { member.try_root().await?.query_drop(sql).await };
    let asked = blocking(async { tokio::time::timeout(PATIENCE, asking).await });
    asked.map_err(|_| format!("{sql}: no answer"))?.map_err(|error| format!("{sql}: {error}"))
}

/// The signs of life of all nodes as a member has them.
fn beats(field: &Field, number: usize) -> Option<u64> {
    let sql = format!("SELECT CAST(COALESCE(SUM(seq), 0) AS UNSIGNED) FROM {}.session", field.database.name);
    let member = &field.servers.members()[number];
    let asking = async { member.try_root().await.ok()?.query_first::<u64, _>(sql).await.ok()? };
    blocking(async { tokio::time::timeout(ASK, asking).await.ok()? })
}

/// Whether a server takes a write; nothing of it stays.
fn would_take(field: &Field, number: usize) -> Result<(), String> {
    let url = field.probe.at_member(&field.servers.members()[number]).url();
    let writing = async {
        let mut conn = mysql_async::Conn::from_url(url).await?;
        conn.query_drop("START TRANSACTION").await?;
        conn.query_drop("INSERT INTO probe (text) VALUES ('outside')").await?;
        conn.query_drop("ROLLBACK").await
    };
    let written = blocking(async { tokio::time::timeout(ASK, writing).await });
    written.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())
}

fn outside(field: &Field, dice: &mut Dice) -> Struck {
    let number = field.hit(dice);
    let (was, time, begun) = (field.role(number), dice.ms(3_000, 10_000), Begun::on(None));
    let member = &field.servers.members()[number];
    if dice.coin() {
        member.kill()
    } else {
        member.stop()
    }
    field.servers.start_outside(number)?;
    let before = beats(field, number);
    let taken = would_take(field, number);
    last_for(time);
    let after = beats(field, number);
    member.kill();
    field.servers.start_again(number)?;
    if before != after {
        let complaint =
            format!("nodes wrote to {was} outside of its cluster: {before:?} became {after:?} signs of life");
        field.complain(complaint.clone());
        return Err(complaint);
    }
    let evidence = format!("{was} ran outside of its cluster for {time:?}; a probe's write there was {taken:?}");
    if taken.is_ok() { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

/// Kills all members, one right after the other.
fn kill_all(field: &Field, between: Duration) {
    for member in field.servers.members() {
        member.kill();
        last_for(between);
    }
}

/// Makes the cluster anew from the member that has everything; the processes of all have ended. Which it was.
fn made_anew(field: &Field) -> Result<usize, String> {
    let servers = &field.servers;
    let most = servers.most_advanced()?;
    servers.bootstrap(most)?;
    (0..servers.members().len()).filter(|other| *other != most).try_for_each(|other| servers.start_again(other))?;
    Ok(most)
}

fn crashed(field: &Field, dice: &mut Dice) -> Struck {
    let pids: Vec<i32> = field.servers.members().iter().map(crate::databases::Server::pid).collect();
    let (begun, since) = (Begun::on(None), Instant::now());
    kill_all(field, dice.ms(0, 300));
    let are_gone = pids.iter().all(|pid| state(*pid).is_none());
    last_for(dice.ms(0, 2_000));
    let from = made_anew(field)?;
    let number = (0..pids.len()).find(|number| blocking(field.servers.takes_writes(*number)));
    let evidence = format!(
        "processes {pids:?} were killed; made anew from member {from}; member {number:?} takes writes, {:?} after the blow",
        since.elapsed()
    );
    if are_gone && number.is_some() { Ok(begun.seen(evidence)) } else { Err(evidence) }
}
