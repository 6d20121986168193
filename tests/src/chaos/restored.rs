//! An older state of the database is put back under nodes that go on, and people accept it when the nodes say so.
//!
//! A restore that no node outlives cannot be noticed, and a node that is started right after it may claim before another
//! notices. That is a limit of what Carillon promises and no fault that it gets over. So no node is started meanwhile, and
//! if none of those that were there before is left, the newer state comes back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mysql_async::prelude::Queryable;

use super::dice::Dice;
use super::field::{Field, Target};
use super::outcome::{Begun, Struck, last_for, must_come, now_us};
use super::wire::Flow;
use crate::databases::{blocking, copy_data};
use crate::server::binary;

/// How long nodes may take to give signs of life, to notice, to be ready again.
const PATIENCE: Duration = Duration::from_secs(60);
const ASK: Duration = Duration::from_secs(3);
/// The words of nodes that have noticed.
const WENT_BACK: &str = "the database went back in time";

pub(super) fn older_state(field: &Field, dice: &mut Dice) -> Struck {
    let copies = Copies::of(field);
    let begun = Begun::on(None);
    field.server().stop();
    let copied = copy_data(&field.server().data(), &copies.older);
    field.server().start_again();
    copied?;
    let from_us = now_us();
    go_on(field, dice)?;
    let swap = || {
        field.server().kill();
        let until_us = now_us();
        swap(&field.server().data(), &copies)?;
        field.server().start_again();
        Ok(until_us)
    };
    let back = || {
        field.server().kill();
        copies.newer_again(&field.server().data());
        field.server().start_again();
        Ok(())
    };
    let said = lost(field, dice, from_us, swap, back)?;
    Ok(begun.seen(said))
}

/// The whole cluster is made anew from a member that was dead for a while; the others then take its state.
pub(super) fn behind(field: &Field, dice: &mut Dice) -> Struck {
    let (servers, writer) = (&field.servers, field.writer().unwrap_or(0));
    let members = servers.members();
    let late = (writer + 1 + usize::from(dice.coin())) % members.len();
    let begun = Begun::on(None);
    members[late].kill();
    let from_us = now_us();
    if let Err(why) = go_on(field, dice) {
        servers.start_again(late)?;
        return Err(why);
    }
    let all = || 0..members.len();
    let swap = || {
        all().filter(|number| *number != late).for_each(|number| members[number].kill());
        let until_us = now_us();
        servers.bootstrap(late)?;
        Ok(until_us)
    };
    let back = || {
        members[late].kill();
        servers.bootstrap(writer)
    };
    let said = lost(field, dice, from_us, swap, back);
    let first = if said.is_ok() { late } else { writer };
    all().filter(|number| *number != first).try_for_each(|number| servers.join_anew(number, first))?;
    Ok(begun.seen(format!("made anew from member {late}, which was dead since then: {}", said?)))
}

/// Waits until every node has given some signs of life, and a while.
pub(super) fn go_on(field: &Field, dice: &mut Dice) -> Result<(), String> {
    let mut first = BTreeMap::new();
    must_come(PATIENCE, "the nodes give signs of life", || {
        let now = sequences(field).unwrap_or_default();
        now.iter().for_each(|(node, id, seq)| _ = first.entry((node.clone(), id.clone())).or_insert(*seq));
        // One was acknowledged to the node, another may be on its way.
        let goes_on = |(node, id, seq): &(String, String, u64)| *seq >= first[&(node.clone(), id.clone())] + 2;
        field.nodes.iter().all(|node| now.iter().any(|session| session.0 == node.name() && goes_on(session)))
    })?;
    last_for(dice.ms(0, 4_000));
    Ok(())
}

/// The newer state goes with `swap`, which tells when. Nodes notice and people accept it; if no node is left that could notice, the newer
/// state comes back.
pub(super) fn lost(
    field: &Field,
    dice: &mut Dice,
    from_us: u64,
    swap: impl FnOnce() -> Result<u64, String>,
    back: impl FnOnce() -> Result<(), String>,
) -> Result<String, String> {
    let starts: Vec<_> = field.nodes.iter().map(|node| node.member.hold_starts()).collect();
    pass(&field.nodes, Flow::CLOSED);
    let swapped = swap();
    pass(&field.nodes, Flow::OPEN);
    let noticed = swapped.and_then(|until_us| a_witness_notices(field).map(|()| until_us));
    let noticed = noticed.or_else(|why| back().and(Err(why)));
    pass(&field.nodes, Flow::OPEN);
    drop(starts);
    let until_us = noticed?;
    let said = accepted(field, dice.ms(0, 2_000))?;
    Ok(format!("what was committed from {from_us} until {until_us} (µs since 1970) is lost; {said}"))
}

/// Copies of the data, beside it.
struct Copies {
    older: PathBuf,
    newer: PathBuf,
}

impl Copies {
    fn of(field: &Field) -> Self {
        // Not on the small disk.
        let this = Self {
            older: field.server().directory().join("older"),
            newer: field.server().data().with_file_name("newer"),
        };
        this.clear();
        this
    }

    fn clear(&self) {
        for copy in [&self.older, &self.newer] {
            let _none = fs::remove_dir_all(copy);
        }
    }

    fn newer_again(&self, data: &Path) {
        if self.newer.exists() {
            let _partly = fs::remove_dir_all(data);
            fs::rename(&self.newer, data).expect("the newer state comes back");
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Puts the older state where the newer one was.
fn swap(data: &Path, copies: &Copies) -> Result<(), String> {
    fs::rename(data, &copies.newer).map_err(|error| format!("{data:?}: {error}"))?;
    copy_data(&copies.older, data)
}

fn pass<'a>(nodes: impl IntoIterator<Item = &'a Target>, flow: Flow) {
    nodes.into_iter().for_each(|node| node.wires.let_pass(flow));
}

/// The live sessions: the node, the id, and how many signs of life there were.
fn sequences(field: &Field) -> Option<Vec<(String, String, u64)>> {
    let name = &field.database.name;
    let sql = format!("SELECT node, CAST(id AS CHAR), seq FROM {name}.session WHERE state = 'live'");
    blocking(async { field.member_to_ask().try_root().await.ok()?.query(sql).await.ok() })
}

fn is_window_open(field: &Field) -> bool {
    let sql = format!("SELECT COUNT(*) FROM {}.loss_window WHERE is_open IS NOT NULL", field.database.name);
    let open = blocking(async { field.member_to_ask().try_root().await.ok()?.query_first::<u64, _>(sql).await.ok()? });
    open.is_some_and(|count| count > 0)
}

/// Waits until a node has noticed that knows what is lost; an error when all such nodes have ended before.
fn a_witness_notices(field: &Field) -> Result<(), String> {
    must_come(PATIENCE, "a node notices the restore (the newer state was put back)", || {
        is_window_open(field) || is_nobody_left(field)
    })?;
    if is_nobody_left(field) && !is_window_open(field) {
        return Err("no node has outlived the restore: the newer state was put back".to_owned());
    }
    Ok(())
}

/// Whether no node runs. As long as none is started, each that runs was there before the restore.
fn is_nobody_left(field: &Field) -> bool {
    field.nodes.iter().all(|node| node.member.server().is_none())
}

/// Waits until a node says why it does nothing, accepts it as soon as that is not refused, whatever runs, and waits until all are ready.
fn accepted(field: &Field, after: Duration) -> Result<String, String> {
    let mut said = String::new();
    must_come(PATIENCE, "a node says that the database went back", || {
        let mut nodes = field.nodes.iter().filter_map(|node| Some((node.name(), node.member.server()?)));
        said = nodes.find_map(|(name, node)| says_why(name, &node)).unwrap_or_default();
        !said.is_empty()
    })?;
    last_for(after);
    must_come(PATIENCE, "`carillon cluster accept` succeeds", || {
        field.nodes.iter().filter_map(|node| node.member.server()).any(|node| {
            let mut command = Command::new(binary());
            command.args(["cluster", "accept"]).env("CARILLON_SERVER", node.url()).env("CARILLON_TOKEN", node.token());
            command.output().is_ok_and(|accepted| accepted.status.success())
        })
    })?;
    must_come(PATIENCE, "all nodes are ready again", || field.nodes.iter().all(|node| node.member.is_ready()))?;
    Ok(format!("{said}; accepted"))
}

fn says_why(name: &str, node: &crate::server::Server) -> Option<String> {
    let (_, said) = node.try_get("/readyz", ASK)?;
    said.contains(WENT_BACK).then(|| format!("{name} said {WENT_BACK:?}"))
}
