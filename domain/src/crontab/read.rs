//! Reads a crontab line by line. Variables apply to the lines after them.

use std::collections::BTreeMap;

use super::naming::Names;
use super::{CrontabJob, DEFAULT_SHELL, ImportOptions, Line, LineKind, MAIL_LABEL, MAX_LINE, entry, percent, variable};
use crate::name::{check_label_value, quoted};

/// The limit for all variables of one crontab together, in bytes. It exists because every job stores a copy of them.
const MAX_ENV: usize = 64 * 1024;

/// The start of a comment that unsets a variable. Cron has no syntax for that, and reads it as any comment.
pub(super) const UNSET: &str = "# carillon: unset ";

const NO_REBOOT: &str = "Carillon has no @reboot: a cluster does not boot; start it from the machine's own init system";
const MAILS: &str = "the jobs below get the label mailto, and an import makes a route that mails what they write";
const NO_MAILS: &str = "no mail about the jobs below";
const NO_MAILFROM: &str = "mail comes from `[mail] from` of the server";
const NO_CONTENT_TYPE: &str = "it only shapes cron's mail, and Carillon's is always UTF-8";
const NO_LOGNAME: &str = "cron does not let a crontab change this variable, and neither does Carillon";
const TZ_IS_ENV: &str = "the commands see TZ, the schedules do not follow it; CRON_TZ= is for the schedules";
const NO_QUIET: &str =
    "the - before the minute is ignored: it tells cron not to write to syslog, as Carillon never does";
const NO_NEWLINE: &str = "the file does not end with a newline, for which cron would refuse it";
const BOM: &str = "the byte order mark is ignored";
const HALVED: &str = "each \\\\ in the command became \\, as in Debian's cron; cronie leaves both";
const NEEDS_SYSTEM: &str =
    "the command begins with what looks like a user: if it is one, import the file with --system";

/// Checks a schedule in a zone. The error is a sentence, which becomes the reason of the line's error.
pub type Check<'a> = dyn Fn(&str, Option<&str>) -> Result<(), String> + 'a;

/// Reads a crontab into one [`Line`] for each of its lines. It accepts any bytes, and an invalid line becomes an error
/// of that line. `check` checks the schedules.
pub fn parse(text: &[u8], options: &ImportOptions<'_>, check: &Check<'_>) -> Vec<Line> {
    let (text, has_bom) = match text.strip_prefix(b"\xef\xbb\xbf") {
        Some(text) => (text, true),
        None => (text, false),
    };
    if text.is_empty() {
        return Vec::new();
    }
    let whole = text.strip_suffix(b"\n");
    let mut reader =
        Reader { options, check, names: Names::new(options.file), vars: Vars::new(options), notes: vec![] };
    let mut lines = Vec::new();
    for bytes in whole.unwrap_or(text).split(|byte| *byte == b'\n') {
        if has_bom && lines.is_empty() {
            reader.notes.push(BOM);
        }
        let what = reader.line(bytes);
        let number = u32::try_from(lines.len() + 1).unwrap_or(u32::MAX);
        lines.push(Line { number, what, note: joined(&mut reader.notes) });
    }
    if let (None, Some(last)) = (whole, lines.last_mut())
        && matches!(last.what, LineKind::Job(_) | LineKind::Env { .. })
    {
        last.note = joined(&mut last.note.as_deref().into_iter().chain([NO_NEWLINE]).collect());
    }
    lines
}

struct Reader<'a> {
    options: &'a ImportOptions<'a>,
    check: &'a Check<'a>,
    names: Names,
    vars: Vars,
    /// The remarks about the current line.
    notes: Vec<&'static str>,
}

/// The variables above a line.
struct Vars {
    timezone: Option<String>,
    shell: String,
    env: BTreeMap<String, String>,
    /// From `MAILTO=`, with commas between addresses; empty if nobody gets mail.
    mail_to: String,
}

impl Vars {
    fn new(options: &ImportOptions<'_>) -> Self {
        let timezone = options.timezone.map(str::to_owned);
        Self { timezone, shell: DEFAULT_SHELL.into(), env: BTreeMap::new(), mail_to: String::new() }
    }
}

impl Reader<'_> {
    fn line(&mut self, bytes: &[u8]) -> LineKind {
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        let bytes = &bytes[bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()..];
        if bytes.is_empty() || bytes.starts_with(b"#") {
            return self.comment(bytes);
        }
        let refused = |reason| LineKind::Error { schedule: None, reason };
        let text = match printable(bytes) {
            Ok(text) => text,
            Err(reason) => return refused(reason),
        };
        match variable::parse(text) {
            Some(Ok((name, value))) => self.variable(name, value).unwrap_or_else(refused),
            Some(Err(reason)) => refused(reason),
            None => match entry::split(text, self.options.system) {
                Ok(entry) => self.entry(entry),
                Err(reason) => refused(reason),
            },
        }
    }

    fn comment(&mut self, bytes: &[u8]) -> LineKind {
        let unset = std::str::from_utf8(bytes).ok().and_then(|text| text.strip_prefix(UNSET));
        match unset.and_then(|name| self.vars.env.remove_entry(name.trim_ascii_end())) {
            Some((name, _)) => {
                self.notes.push("not set for the lines below");
                LineKind::Env { name, value: String::new() }
            }
            None => LineKind::Comment,
        }
    }

    fn variable(&mut self, name: String, value: String) -> Result<LineKind, String> {
        match name.as_str() {
            "SHELL" => self.vars.shell = if value.is_empty() { DEFAULT_SHELL.into() } else { value.clone() },
            "CRON_TZ" => {
                let default = self.options.timezone.map(str::to_owned);
                // An invalid zone is kept too, so that the lines below fail and do not run in another zone.
                self.vars.timezone = if value.is_empty() { default } else { Some(value.clone()) };
                one_zone(&name, &value)?;
            }
            "MAILTO" => {
                let to = mail_addresses(&value).join(",");
                check_label_value(&to).map_err(|error| format!("MAILTO: {error}"))?;
                self.notes.push(if to.is_empty() { NO_MAILS } else { MAILS });
                self.vars.mail_to = to;
            }
            "MAILFROM" => self.notes.push(NO_MAILFROM),
            "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => self.notes.push(NO_CONTENT_TYPE),
            "LOGNAME" => self.notes.push(NO_LOGNAME),
            _ => {
                if name == "TZ" {
                    one_zone(&name, &value)?;
                    self.notes.push(TZ_IS_ENV);
                }
                let others = self.vars.env.iter().filter(|(known, _)| **known != name);
                let size: usize = others.map(|(name, value)| name.len() + value.len()).sum();
                if size + name.len() + value.len() > MAX_ENV {
                    return Err(format!("the variables of this crontab hold more than {MAX_ENV} bytes together"));
                }
                self.vars.env.insert(name.clone(), value.clone());
            }
        }
        Ok(LineKind::Env { name, value })
    }

    fn entry(&mut self, entry: entry::Entry<'_>) -> LineKind {
        let entry::Entry { schedule, user, command: text, quiet } = entry;
        if schedule == "@reboot" {
            return LineKind::Skipped { schedule, command: text.into(), reason: NO_REBOOT.into() };
        }
        let percent::Parts { command, stdin, halved } = percent::split(text);
        if let Err(reason) = self.check_entry(&schedule, user, &command) {
            return LineKind::Error { schedule: Some(schedule), reason };
        }
        if quiet {
            self.notes.push(NO_QUIET);
        }
        if !self.options.system && looks_like_user(&command) {
            self.notes.push(NEEDS_SYSTEM);
        }
        if halved {
            self.notes.push(HALVED);
        }
        let name = self.names.next(user, &command, stdin.as_deref());
        let (label, user) = if self.options.ignore_user { (user, None) } else { (None, user) };
        LineKind::Job(CrontabJob {
            name,
            schedule,
            timezone: self.vars.timezone.clone(),
            command,
            stdin,
            env: self.vars.env.clone(),
            shell: self.vars.shell.clone(),
            dir: self.vars.env.get("HOME").cloned(),
            user: user.map(str::to_owned),
            labels: [("user", label.unwrap_or_default()), (MAIL_LABEL, &self.vars.mail_to)]
                .into_iter()
                .filter(|(_, value)| !value.is_empty())
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        })
    }

    fn check_entry(&self, schedule: &str, user: Option<&str>, command: &str) -> Result<(), String> {
        if command.trim_ascii().is_empty() {
            return Err("there is no command before the %".into());
        }
        if let Some(user) = user {
            check_label_value(user).map_err(|_| format!("{} is not the name of a user", quoted(user)))?;
        }
        (self.check)(schedule, self.vars.timezone.as_deref())
    }
}

/// The addresses of a `MAILTO=`: commas or blanks stand between them.
pub fn mail_addresses(value: &str) -> Vec<String> {
    value.split([',', ' ', '\t']).filter(|address| !address.is_empty()).map(str::to_owned).collect()
}

/// Refuses a zone and a schedule on one line, which other schedulers accept.
fn one_zone(name: &str, value: &str) -> Result<(), String> {
    match value.contains([' ', '\t']) {
        true => Err(format!(
            "{} is not a time zone: in a crontab {name}= stands on a line of its own, above the schedule",
            quoted(value)
        )),
        false => Ok(()),
    }
}

/// The line as text, if it is short enough, UTF-8, and without control characters other than tabs.
fn printable(bytes: &[u8]) -> Result<&str, String> {
    if bytes.len() > MAX_LINE {
        return Err(format!("the line is {} bytes long: at most {MAX_LINE} are allowed", bytes.len()));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let byte = bytes.get(error.valid_up_to()).copied().unwrap_or_default();
        format!("the line is not UTF-8: the byte 0x{byte:02x} is invalid there")
    })?;
    match text.chars().find(|c| c.is_control() && *c != '\t') {
        Some(c) => Err(format!("the line holds the control character U+{:04X}", u32::from(c))),
        None => Ok(text),
    }
}

/// Whether a command looks like one of a system crontab, with its user before it. Its first word is a common user, or a
/// name before a word that can only begin a command.
fn looks_like_user(command: &str) -> bool {
    let mut words = command.split_ascii_whitespace();
    let (Some(first), Some(second)) = (words.next(), words.next()) else { return false };
    let is_name = first.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
    let takes_commands = ["command", "doas", "env", "exec", "nice", "sudo", "then", "time"].contains(&first);
    let begins = ["if", "[", "[[", "test", "command", "cd", "{", "("].contains(&second) || second.contains("=$(");
    ["root", "www-data", "nobody"].contains(&first) || is_name && !takes_commands && begins
}

fn joined(notes: &mut Vec<&str>) -> Option<String> {
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    notes.clear();
    note
}
