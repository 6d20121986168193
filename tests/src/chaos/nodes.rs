//! Faults of the processes of a node: itself, its keeper, and what that runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::class::Class;
use super::dice::Dice;
use super::field::{Field, Target};
use super::outcome::{Begun, Struck, comes, last_for, must_come};
use crate::processes::{children, environment, keeper, state};
use crate::server::Server;

/// How long a process may take to go, to come back, or to be started at all.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long one question to a node may take.
const ASK: Duration = Duration::from_secs(5);

pub(super) fn strike(class: Class, field: &Field, target: &Target, dice: &mut Dice) -> Struck {
    let half_a_lease = u64::try_from(field.timing.self_kill_after.as_millis() / 2).unwrap_or(u64::MAX);
    let most_of_a_pause = u64::try_from(field.timing.pause.as_millis() * 4 / 5).unwrap_or(u64::MAX);
    match class {
        Class::NodeKilled => node_killed(target),
        Class::NodeFrozen => {
            let pid = running(target)?.pid();
            frozen(target, pid, "the node", dice.ms(100, half_a_lease.max(200) - 100))
        }
        Class::NodeFrozenPastLease => frozen_past_lease(field, target),
        Class::KeeperKilled => keeper_killed(target),
        Class::KeeperFrozen => frozen(target, keeper_of(target)?, "the keeper", dice.ms(50, most_of_a_pause.max(50))),
        Class::ChildKilled => child_killed(field, target, dice),
        Class::ChildFrozen => {
            let (pid, run) = child_of(target, dice)?;
            frozen(target, pid, &format!("the process of run {run}"), dice.ms(50, 2_000))
        }
        _ => Err(format!("{} is no fault of a node's processes", class.name())),
    }
}

/// The node as it runs now; one that is starting is waited for.
fn running(target: &Target) -> Result<Arc<Server>, String> {
    must_come(PATIENCE, "the node runs", || target.member.server().is_some())?;
    target.member.server().ok_or_else(|| "the node has just ended".to_owned())
}

fn keeper_of(target: &Target) -> Result<i32, String> {
    let node = running(target)?.pid();
    must_come(PATIENCE, "the node has a keeper", || keeper(node).is_some())?;
    keeper(node).ok_or_else(|| "the keeper has just ended".to_owned())
}

/// A process of a run, and the run's id.
fn child_of(target: &Target, dice: &mut Dice) -> Result<(i32, String), String> {
    let keeper = keeper_of(target)?;
    let mut found = Vec::new();
    must_come(PATIENCE, "the node runs something", || {
        let run = |pid: i32| Some((pid, environment(pid, "CARILLON_RUN_ID")?));
        found = children(keeper).into_iter().filter_map(run).collect();
        !found.is_empty()
    })?;
    Ok(dice.pick(&found).clone())
}

pub(super) fn send(pid: i32, signal: Signal) -> Result<(), String> {
    kill(Pid::from_raw(pid), signal).map_err(|error| format!("{signal} to process {pid}: {error}"))
}

fn is_gone(pid: i32) -> bool {
    matches!(state(pid), None | Some('Z' | 'X'))
}

/// Stopped until this is dropped.
struct Stopped(i32);

impl Stopped {
    /// Stops a process and waits until /proc shows it.
    fn new(pid: i32) -> Result<Self, String> {
        send(pid, Signal::SIGSTOP)?;
        let this = Self(pid);
        let mut last = None;
        comes(ASK, || {
            last = state(pid);
            last == Some('T') || is_gone(pid)
        });
        if last == Some('T') { Ok(this) } else { Err(format!("process {pid} was stopped and is seen as {last:?}")) }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _gone = send(self.0, Signal::SIGCONT);
    }
}

fn frozen(target: &Target, pid: i32, what: &str, time: Duration) -> Struck {
    let begun = Begun::on(Some(target.name()));
    let stopped = Stopped::new(pid)?;
    last_for(time);
    let still = state(pid);
    drop(stopped);
    Ok(begun.seen(format!("{what}, process {pid}, was in state T, {still:?} at the end of {time:?}")))
}

/// How the node's next process ended, once another has taken its place.
fn replaced(target: &Target, ends_before: usize) -> Result<String, String> {
    must_come(PATIENCE, "the node ends", || target.member.ends().len() > ends_before)?;
    must_come(PATIENCE, "another process takes its place", || target.member.server().is_some())?;
    Ok(target.member.ends()[ends_before].1.clone())
}

fn node_killed(target: &Target) -> Struck {
    let (pid, ends_before) = (running(target)?.pid(), target.member.ends().len());
    let begun = Begun::on(Some(target.name()));
    send(pid, Signal::SIGKILL)?;
    let how = replaced(target, ends_before)?;
    let evidence = format!("process {pid} ended ({how}), another took its place");
    if how.contains("SIGKILL") { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

fn keeper_killed(target: &Target) -> Struck {
    let (pid, ends_before) = (keeper_of(target)?, target.member.ends().len());
    let begun = Begun::on(Some(target.name()));
    send(pid, Signal::SIGKILL)?;
    let how = replaced(target, ends_before)?;
    let evidence = format!("keeper {pid} was killed, its node ended ({how}), another took its place");
    if how.contains("exit status: 70") { Ok(begun.seen(evidence)) } else { Err(evidence) }
}

/// Whether another node lists a live session of it; `None` where no other node answers.
fn has_session(field: &Field, target: &Target) -> Option<bool> {
    let others = field.nodes.iter().filter(|other| other.name() != target.name());
    let mut asked = others.filter_map(|other| other.member.server()?.try_get("/v1/cluster", ASK));
    let (_, said) = asked.find(|(status, _)| *status == 200)?;
    let cluster: Value = serde_json::from_str(&said).ok()?;
    let mut sessions = cluster["items"].as_array()?.iter();
    Some(sessions.any(|session| session["node"] == target.name() && session["state"] == "live"))
}

fn frozen_past_lease(field: &Field, target: &Target) -> Struck {
    let server = running(target)?;
    must_come(PATIENCE, "the node has a session", || has_session(field, target) == Some(true))?;
    let (pid, ends_before) = (server.pid(), target.member.ends().len());
    drop(server);
    let begun = Begun::on(Some(target.name()));
    let (stopped, since) = (Stopped::new(pid)?, Instant::now());
    let patience = field.timing.expire_after * 2 + PATIENCE;
    let ended = must_come(patience, "its session is ended by others", || has_session(field, target) == Some(false));
    let after = since.elapsed();
    drop(stopped);
    ended?;
    let how = replaced(target, ends_before)?;
    Ok(begun
        .seen(format!("process {pid} was in state T; its session was ended after {after:?}; then it ended ({how})")))
}

fn child_killed(field: &Field, target: &Target, dice: &mut Dice) -> Struck {
    let (pid, run) = child_of(target, dice)?;
    let begun = Begun::on(Some(target.name()));
    send(pid, Signal::SIGKILL)?;
    must_come(ASK, "the process of a run is gone", || is_gone(pid))?;
    let mut record = Value::Null;
    comes(PATIENCE, || {
        let nodes = field.nodes.iter().filter_map(|node| node.member.server());
        let mut asked = nodes.filter_map(|node| node.try_get(&format!("/v1/runs/{run}"), ASK));
        let said = asked.find(|(status, _)| *status == 200).map(|(_, said)| said);
        record = said.and_then(|said| serde_json::from_str(&said).ok()).unwrap_or_default();
        !matches!(record["status"].as_str(), None | Some("running" | "waiting"))
    });
    let evidence = format!(
        "process {pid} of run {run} was killed and is gone; recorded as {} with signal {}",
        record["status"], record["signal"]
    );
    // It may have been about to end by itself.
    if record["status"] == "succeeded" { Err(evidence) } else { Ok(begun.seen(evidence)) }
}
