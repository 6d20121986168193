//! A node to be frozen and killed: `node LEASE_MS CGROUPS LOCK SCRIPT...` runs each script, renews its lease as long as it
//! can, and prints its keeper's pid and how each run ended.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use carillon_keeper::{KeeperHandle, boottime_ms};
use tokio::task::JoinSet;

use crate::support::{options, script, start};

pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<String> = arguments.map(|argument| argument.into_string().unwrap()).collect();
    let [lease_ms, cgroups, lock, scripts @ ..] = &arguments[..] else { return ExitCode::from(2) };
    let lease_ms: u64 = lease_ms.parse().unwrap();
    let lock = (lock != "-").then(|| File::create(lock).unwrap());
    if let Some(lock) = &lock {
        lock.lock().unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut options = options(cgroups == "true");
        options.lock = lock.as_ref().map(|lock| lock.try_clone().unwrap().into());
        let keeper = KeeperHandle::start(options).unwrap();
        keeper.extend_deadline(boottime_ms() + lease_ms);
        println!("keeper {}", keeper.pid());
        let mut exits = JoinSet::new();
        for text in scripts {
            let mut child = start(&keeper, script(text));
            exits.spawn(async move { child.exit().await });
        }
        let mut renewal = tokio::time::interval(Duration::from_millis(lease_ms / 4));
        loop {
            tokio::select! {
                Some(exit) = exits.join_next() => {
                    let exit = exit.unwrap();
                    println!("{:?} {}", exit.how, exit.reason.unwrap_or_default());
                }
                _ = renewal.tick() => keeper.extend_deadline(boottime_ms() + lease_ms),
            }
        }
    })
}

/// A node process, and what it prints.
pub struct Node {
    pub process: Child,
    pub keeper: u32,
    lines: BufReader<std::process::ChildStdout>,
}

impl Node {
    pub fn start(lease_ms: u64, cgroups: bool, lock: &str, scripts: &[&str]) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["node", &lease_ms.to_string(), &cgroups.to_string(), lock]).args(scripts);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut node = Self { lines: BufReader::new(process.stdout.take().unwrap()), process, keeper: 0 };
        node.keeper = node.line().strip_prefix("keeper ").unwrap().parse().unwrap();
        node
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
