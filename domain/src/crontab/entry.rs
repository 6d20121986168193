//! Lines that run a command: a schedule, a user (in system crontabs only), and the command.

use crate::name::quoted;

const BLANKS: [char; 2] = [' ', '\t'];
const FIELDS: [&str; 5] = ["the minute", "the hour", "the day of month", "the month", "the day of week"];

/// The parts of a line, not yet checked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// The five fields or the descriptor, with single blanks between words.
    pub(super) schedule: String,
    /// The user column of a system crontab.
    pub(super) user: Option<&'a str>,
    /// The rest of the line, never blank, with every `%` in it.
    pub(super) command: &'a str,
    /// Whether a `-` came before the minute, which tells cronie not to write to syslog.
    pub(super) quiet: bool,
}

/// Splits a line into its parts. The error is a sentence that names the missing ones.
///
/// A user's crontab always has five fields, because a sixth word could be a field as well as the command.
pub(super) fn split(line: &str, system: bool) -> Result<Entry<'_>, String> {
    let (quiet, text) = match line.strip_prefix('-') {
        Some(text) if text.starts_with(|c: char| c == '*' || c.is_ascii_digit()) => (true, text),
        _ => (false, line),
    };
    let schedule_parts = match text.starts_with('@') {
        true => descriptor_parts(text)?,
        false => &FIELDS,
    };
    let mut parts = schedule_parts.to_vec();
    if system {
        parts.push("the user");
    }
    parts.push("the command");

    let mut rest = text;
    let mut words = Vec::new();
    for at in 0..parts.len() - 1 {
        let (word, after) = next_word(rest);
        if after.is_empty() {
            let missing = if word.is_empty() { &parts[at..] } else { &parts[at + 1..] };
            return Err(format!("{} lacks {}", quoted(line), listed(missing)));
        }
        words.push(word);
        rest = after;
    }
    let schedule = words[..schedule_parts.len()].join(" ");
    Ok(Entry { schedule, user: words.get(schedule_parts.len()).copied(), command: rest, quiet })
}

/// The names of the words in the schedule of a descriptor.
fn descriptor_parts(text: &str) -> Result<&'static [&'static str], String> {
    match next_word(text).0 {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" | "@reboot" => {
            Ok(&["the descriptor"])
        }
        "@every" => Ok(&["the descriptor", "the interval (such as 90s)"]),
        "@at" => Ok(&["the descriptor", "the time (such as 2027-01-01T00:00:00Z)"]),
        other => Err(format!(
            "there is no {}; known are @yearly @annually @monthly @weekly @daily @midnight @hourly @every @at (and \
             @reboot, which is skipped)",
            quoted(other)
        )),
    }
}

/// The first word, and the rest without leading blanks.
fn next_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_at(text.find(BLANKS).unwrap_or(text.len()));
    (word, rest.trim_start_matches(BLANKS))
}

/// "a", "a and b", "a, b and c".
fn listed(parts: &[&str]) -> String {
    match parts {
        [init @ .., last] if !init.is_empty() => format!("{} and {last}", init.join(", ")),
        _ => parts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_schedule_and_a_command() {
        for (line, schedule, command) in [
            ("5 4 * * sun  echo hi ", "5 4 * * sun", "echo hi "),
            ("09,39 *\t*   * *\tx", "09,39 * * * *", "x"),
            ("* * * * * * x", "* * * * *", "* x"),
            ("@daily x y", "@daily", "x y"),
            ("@every  90s x y", "@every 90s", "x y"),
            ("@at 2027-01-01T00:00:00Z x", "@at 2027-01-01T00:00:00Z", "x"),
        ] {
            let entry = Entry { schedule: schedule.into(), user: None, command, quiet: false };
            assert_eq!(split(line, false), Ok(entry), "{line}");
        }
    }

    #[test]
    fn a_system_crontab_has_a_user_before_the_command() {
        for (line, schedule) in [("1 2 3 4 5 root x y", "1 2 3 4 5"), ("@daily  root  x y", "@daily")] {
            let entry = Entry { schedule: schedule.into(), user: Some("root"), command: "x y", quiet: false };
            assert_eq!(split(line, true), Ok(entry), "{line}");
        }
    }

    #[test]
    fn a_dash_before_the_minute_is_removed() {
        let entry = Entry { schedule: "*/5 * * * *".into(), user: None, command: "x", quiet: true };
        assert_eq!(split("-*/5 * * * * x", false), Ok(entry));
        let other = Entry { schedule: "-x 1 2 3 4".into(), user: None, command: "y", quiet: false };
        assert_eq!(split("-x 1 2 3 4 y", false), Ok(other), "before a minute only");
    }

    #[test]
    fn errors_name_the_missing_parts() {
        for (line, system, reason) in [
            ("5 4 *", false, "\"5 4 *\" lacks the month, the day of week and the command"),
            ("5 4 * * *", false, "\"5 4 * * *\" lacks the command"),
            ("5 4 * * * root", true, "\"5 4 * * * root\" lacks the command"),
            ("5 4 * * *", true, "\"5 4 * * *\" lacks the user and the command"),
            ("@daily", false, "\"@daily\" lacks the command"),
            ("@every 5m", false, "\"@every 5m\" lacks the command"),
            ("@every", true, "\"@every\" lacks the interval (such as 90s), the user and the command"),
        ] {
            assert_eq!(split(line, system), Err(reason.into()), "{line}");
        }
        assert!(split("@dayly x", false).unwrap_err().starts_with("there is no \"@dayly\"; known are @yearly "));
    }
}
