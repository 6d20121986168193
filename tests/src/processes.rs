//! Processes as /proc shows them: who lives, whose child it is, how much memory it takes.

use std::fs;

use crate::waiting::wait_for;

/// A clock tick of `/proc/PID/stat`: `USER_HZ`, the same on every Linux that Rust runs on.
const TICKS_A_SECOND: f64 = 100.0;

/// Every process whose environment or command line holds `mark`; those that cannot be read are nobody's here.
pub fn marked(mark: &str) -> Vec<i32> {
    let holds = |pid: i32, file: &str| {
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(mark.len()).any(|part| part == mark.as_bytes())
    };
    let lives = |pid: &i32| state(*pid).is_some_and(|state| state != 'Z' && state != 'X');
    all().into_iter().filter(|pid| lives(pid) && (holds(*pid, "environ") || holds(*pid, "cmdline"))).collect()
}

/// The children of a process.
pub fn children(parent: i32) -> Vec<i32> {
    all().into_iter().filter(|pid| field(*pid, "PPid") == Some(parent.to_string())).collect()
}

/// The keeper of a server. A server may be ready before it: the keeper reads what was asked of it meanwhile.
#[track_caller]
pub fn keeper_of(server: i32) -> i32 {
    wait_for("the server has a keeper", || keeper(server))
}

/// The keeper of a server that may have gone.
pub fn keeper(server: i32) -> Option<i32> {
    children(server).into_iter().find(|pid| field(*pid, "Name").as_deref() == Some("carillon-keeper"))
}

/// The first value of a variable in a process's environment.
pub fn environment(pid: i32, name: &str) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut pairs = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    pairs.find_map(|pair| Some(pair.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

/// Resident memory in KiB; 0 when it is gone.
pub fn resident_kib(pid: i32) -> u64 {
    field(pid, "VmRSS").and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or(0)
}

/// CPU that a process has used, in seconds; 0 when it is gone.
pub fn cpu_seconds(pid: i32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program, in parentheses, may hold anything.
    let Some((_, rest)) = text.rsplit_once(") ") else { return 0.0 };
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / TICKS_A_SECOND
}

/// R, S, D, T, Z ...
pub fn state(pid: i32) -> Option<char> {
    field(pid, "State")?.chars().next()
}

/// Whether a process is gone, or waits only for its parent to look.
pub fn has_ended(pid: i32) -> bool {
    matches!(state(pid), None | Some('Z'))
}

fn field(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
