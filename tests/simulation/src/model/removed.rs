//! The findings of the explorations when a guard is removed. That is for a whole process, so each guard has a process of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use carillon_domain::guard::Guard;

/// The findings without a guard.
#[derive(Debug)]
pub struct Removed {
    /// Which guard.
    pub guard: Guard,
    /// The promise that was broken, as a sentence that begins with its number; `None` if none was.
    pub violation: Option<String>,
    /// The exploration that found it, or the last one, as it tells of itself.
    pub exploration: String,
    /// How long it took.
    pub took: Duration,
}

/// Runs `program`, the binary `model`, without the guard and with these further words on its command line.
///
/// # Panics
/// If it does not start, or breaks off.
pub fn run_without(program: &Path, guard: Guard, words: &[String]) -> Removed {
    let began = Instant::now();
    let without = format!("without={}", guard.name());
    let output = Command::new(program).arg(without).args(words).stdin(Stdio::null()).output().expect("it starts");
    let (said, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let violation = said.lines().last().and_then(|line| line.strip_prefix("VIOLATED ")).map(str::to_owned);
    let ended_well = output.status.code() == Some(i32::from(violation.is_some()));
    assert!(ended_well, "without {} it broke off ({:?}): {said}{log}", guard.name(), output.status.code());
    let tells_of_itself = |line: &&str| line.contains(" steps, ") && !line.starts_with(' ');
    let exploration = said.lines().rfind(tells_of_itself).unwrap_or_default().to_owned();
    Removed { guard, violation, exploration, took: began.elapsed() }
}
