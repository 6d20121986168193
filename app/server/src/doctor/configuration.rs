//! The configuration: its faults, who may read its file, the lease, and the users that jobs may run as.

use std::path::{Path, PathBuf};
use std::time::Duration;

use carillon_domain::duration;
use carillon_domain::lease::Timing;

use super::files::mode_of;
use super::finding::{Finding, Level};
use carillon_node::config::{Config, DEFAULT_FILE, StoreUrl};

/// The file of the configuration, as it stands.
#[derive(Debug, Default)]
struct File {
    path: PathBuf,
    /// The permissions; `None` if it is not there.
    mode: Option<u32>,
    holds_password: bool,
}

/// Looks at the file, and at all that can be told without anything else.
pub(super) fn look(file: Option<&Path>, config: &Config, faults: &[String]) -> Vec<Finding> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE)).to_owned();
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let file = File { mode: mode_of(&path), holds_password: holds_password(&text), path };
    let known = |name: &String| matches!(nix::unistd::User::from_name(name), Ok(Some(_)));
    let users: Vec<(&str, bool)> = config.shell.allow_users.iter().map(|name| (name.as_str(), known(name))).collect();
    let mut findings = judge(&file, faults);
    // Without a given one it is as long as one server's, or longer; which, the database tells.
    let timings = timing(&config.session.unwrap_or_default(), config.store.statement_timeout, faults);
    let is_known = config.session.is_some() || matches!(config.store.url, StoreUrl::Sqlite(_));
    findings.extend(timings.into_iter().filter(|finding| is_known || finding.level != Level::Ok));
    findings.extend(users_that_jobs_run_as(&users, nix::unistd::geteuid().is_root()));
    findings
}

fn judge(file: &File, faults: &[String]) -> Vec<Finding> {
    let path = file.path.display();
    let remedy = format!("Correct it in {path}, or where the sentence says that it comes from.");
    let of_fault = |fault: &String| {
        let part = if is_of(fault, "session") { "session timing" } else { "configuration" };
        Finding::error(part, fault.clone(), remedy.clone())
    };
    let mut findings: Vec<Finding> = faults.iter().map(of_fault).collect();
    match file.mode {
        None if faults.is_empty() => {
            findings.push(Finding::ok(
                "configuration",
                format!("there is no {path}: the defaults hold, and the environment"),
            ));
        }
        Some(mode) if file.holds_password && mode & 0o044 != 0 => findings.push(Finding::warning(
            "configuration",
            format!("{path} holds a password, and others may read it (its mode is {:04o})", mode & 0o777),
            format!("chmod 600 {path}, and let it belong to the server's user."),
        )),
        Some(_) if faults.is_empty() => findings.push(Finding::ok("configuration", format!("{path} can be used"))),
        _ => {}
    }
    findings
}

/// Whether a fault is one of a section.
pub(super) fn is_of(fault: &str, section: &str) -> bool {
    fault.strip_prefix(section).is_some_and(|rest| rest.starts_with(['.', ' ']))
}

/// Whether a line has an address with a password in it.
fn holds_password(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let mut logins = lines.filter_map(|line| line.split_once("://")?.1.split_once('@'));
    logins.any(|(login, _)| login.contains(':') && !login.contains(['/', '"', '\'']))
}

/// The fencing inequality itself is checked when the configuration is read.
fn timing(timing: &Timing, statement_timeout: Duration, faults: &[String]) -> Vec<Finding> {
    if faults.iter().any(|fault| is_of(fault, "session")) {
        return Vec::new();
    }
    let (kill, expire) = (duration::format(timing.self_kill_after), duration::format(timing.expire_after));
    if statement_timeout >= timing.self_kill_after {
        let limit = duration::format(statement_timeout);
        return vec![Finding::warning(
            "session timing",
            format!(
                "one statement may take {limit}, as long as the lease of {kill}: a node would end before it hears of it"
            ),
            "Set store.statement_timeout well below session.self_kill_after.",
        )];
    }
    let says = format!("a node without a heartbeat ends itself after {kill}, and others take over after {expire}");
    vec![Finding::ok("session timing", says)]
}

fn users_that_jobs_run_as(users: &[(&str, bool)], is_root: bool) -> Vec<Finding> {
    let unknown = users.iter().filter(|(_, is_known)| !is_known);
    let mut findings: Vec<Finding> = unknown
        .map(|(name, _)| {
            let says = format!("shell.allow_users names {name:?}, and this machine has no such user");
            Finding::warning(
                "users",
                says,
                format!("Make the user with useradd {name}, or take it out of shell.allow_users."),
            )
        })
        .collect();
    if !users.is_empty() && !is_root {
        let says = "shell.allow_users is set, and only root may run jobs as other users";
        findings.push(Finding::warning("users", says, "Run the server as root, or empty shell.allow_users."));
    }
    if findings.is_empty() && !users.is_empty() {
        findings.push(Finding::ok("users", "all users of shell.allow_users are known"));
    }
    findings
}

/// The one finding where there is no configuration at all.
pub(super) fn unreadable(sentence: &str) -> Finding {
    let otherwise = "Correct the file, or name another with --config; nothing else was looked at.";
    Finding::of_sentence("configuration", Level::Error, sentence, otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(findings: &[Finding]) -> Vec<(&'static str, Level)> {
        findings.iter().map(|finding| (finding.part, finding.level)).collect()
    }

    #[test]
    fn each_fault_is_a_finding_of_its_own() {
        let faults = ["node.nme is not known".to_owned(), "session.pause is long".to_owned()];
        let none: [String; 0] = [];
        let file = |mode, holds_password| File { path: "c.toml".into(), mode, holds_password };
        for (file, faults, expected) in [
            (file(None, false), &none[..], vec![("configuration", Level::Ok)]),
            (file(Some(0o644), false), &none, vec![("configuration", Level::Ok)]),
            (file(Some(0o600), true), &none, vec![("configuration", Level::Ok)]),
            (file(Some(0o640), true), &none, vec![("configuration", Level::Warning)]),
            (file(Some(0o600), true), &faults, vec![("configuration", Level::Error), ("session timing", Level::Error)]),
        ] {
            assert_eq!(levels(&judge(&file, faults)), expected, "{file:?}");
        }
    }

    #[test]
    fn a_password_is_seen_in_an_address_only() {
        for (text, expected) in [
            ("url = \"mysql://u:secret@h/c\"", true),
            ("[mail]\nsmtp = \"smtp://u:p@mail.example.org\"", true),
            ("url = \"mysql://u@h/c\"", false),
            ("# url = \"mysql://u:secret@h/c\"", false),
            ("url = \"sqlite:///var/lib/a:b@c.db\"", false),
            ("", false),
        ] {
            assert_eq!(holds_password(text), expected, "{text}");
        }
    }

    #[test]
    fn a_statement_is_shorter_than_the_lease() {
        let (preset, secs) = (Timing::default(), Duration::from_secs);
        for (limit, faults, expected) in [
            (5, vec![], vec![("session timing", Level::Ok)]),
            (12, vec![], vec![("session timing", Level::Warning)]),
            (12, vec!["session.pause is long".to_owned()], vec![]),
        ] {
            assert_eq!(levels(&timing(&preset, secs(limit), &faults)), expected, "{limit}");
        }
    }

    #[test]
    fn users_must_exist_and_need_root() {
        for (users, is_root, expected) in [
            (&[][..], false, vec![]),
            (&[("a", true)], true, vec![("users", Level::Ok)]),
            (&[("a", true), ("b", false)], true, vec![("users", Level::Warning)]),
            (&[("a", true)], false, vec![("users", Level::Warning)]),
        ] {
            assert_eq!(levels(&users_that_jobs_run_as(users, is_root)), expected, "{users:?}");
        }
    }
}
