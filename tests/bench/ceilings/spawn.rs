//! How many processes a second the machine starts and ends, with nothing around them. Std starts a program without further
//! wishes by `posix_spawn`, which neither copies the parent nor its page tables.
//!
//! The spawners are processes of their own, as small as can be, since threads of one would wait for each other's memory.

use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The first word of the command line of a process that only spawns.
pub const SPAWNER: &str = "spawner";
/// How many spawners at a time are tried.
const SPAWNERS: [usize; 3] = [1, 2, 4];

/// A program that does nothing.
pub const PROGRAM: &[&str] = &["/bin/true"];
/// A shell that does nothing.
pub const SHELL: &[&str] = &["/bin/bash", "-c", "true"];

/// Spawns a second of a command, of the number of spawners that does best.
#[derive(Debug, Clone, Copy)]
pub struct Spawns {
    /// Its output dropped.
    pub bare: f64,
    /// Its output read through a pipe to its end.
    pub piped: f64,
}

impl Spawns {
    /// Measures for so long with each number of spawners.
    pub fn of(words: &[&str], time: Duration) -> Self {
        Self { bare: best(words, false, time), piped: best(words, true, time) }
    }
}

fn best(words: &[&str], piped: bool, time: Duration) -> f64 {
    SPAWNERS.iter().map(|spawners| together(words, piped, time, *spawners)).fold(0.0, f64::max)
}

fn together(words: &[&str], piped: bool, time: Duration, spawners: usize) -> f64 {
    let myself = std::env::current_exe().expect("the bench has a path");
    let how = if piped { "piped" } else { "bare" };
    let spawner = || {
        let mut command = Command::new(&myself);
        command.args([SPAWNER, how, &time.as_millis().to_string()]).args(words).stdout(Stdio::piped());
        command.spawn().expect("the bench starts")
    };
    let running: Vec<_> = (0..spawners).map(|_| spawner()).collect();
    let rate = |mut child: std::process::Child| -> f64 {
        let mut said = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("a spawner tells its rate");
        child.wait().expect("a child can be waited for");
        said.trim().parse().expect("a rate")
    };
    running.into_iter().map(rate).sum()
}

/// The life of a spawner: `piped|bare MS PROGRAM [WORD...]`; prints how many it spawned a second.
pub fn spawn_for_a_while(words: &[String]) -> ExitCode {
    let [how, ms, program, rest @ ..] = words else { return ExitCode::from(2) };
    let time = Duration::from_millis(ms.parse().unwrap_or(0));
    let (began, mut count) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        let mut command = Command::new(program);
        command.args(rest).stdin(Stdio::null());
        let ended = if how == "piped" {
            command.stdout(Stdio::piped()).output().map(|output| output.status)
        } else {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status()
        };
        assert!(ended.is_ok_and(|status| status.success()), "{program} does not run");
        count += 1;
    }
    println!("{}", f64::from(count) / began.elapsed().as_secs_f64());
    ExitCode::SUCCESS
}
