//! Decides whether a crontab can express a job, and makes its line.

use std::collections::BTreeMap;

use super::write::{Executor, ExportJob, Form};
use super::{MAIL_LABEL, MAX_LINE, percent, variable};
use crate::name::quoted;

const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const FIELDS: [&str; 5] = ["minute", "hour", "day of month", "month", "day of week"];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Variables that cron itself reads or sets. In a crontab they would not become part of the job's environment.
const CRON_VARIABLES: [&str; 7] =
    ["SHELL", "CRON_TZ", "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING", "LOGNAME"];

/// The variable whose addresses get what the lines below print.
pub(super) const MAILTO: &str = "MAILTO";

/// A job as a line of a crontab.
pub(super) struct Fitted {
    /// Every variable that must be set at the line, `SHELL` and `CRON_TZ` included. Without `MAILTO` nobody gets mail.
    pub(super) variables: BTreeMap<String, String>,
    /// The line itself.
    pub(super) line: String,
}

/// Makes the line of a job. The error is the reason why there is none, as a clause after the job's name.
pub(super) fn fit(export: &ExportJob, form: Form) -> Result<Fitted, String> {
    match &export.executor {
        Executor::Shell => {}
        Executor::Argv(_) => return Err("it runs a program without a shell, and cron runs shell lines only".into()),
        Executor::Other(name) => {
            return Err(format!("its executor is {}, and cron runs shell lines only", quoted(name)));
        }
    }
    if export.paused {
        return Err("it is paused".into());
    }
    let job = &export.job;
    let (zone, mut line) = schedule(&job.schedule)?;
    let zone = job.timezone.as_deref().or(zone);
    match (form, &job.user) {
        (Form::User, None) => {}
        (Form::User, Some(user)) => {
            return Err(format!("it runs as {}, and only a system crontab has a place for users", quoted(user)));
        }
        (Form::System, None) => return Err("it names no user, and a system crontab must".into()),
        (Form::System, Some(user))
            if user.is_empty() || user.contains(|c: char| c.is_whitespace() || c.is_control()) =>
        {
            return Err(format!("its user {} is not one word", quoted(user)));
        }
        (Form::System, Some(user)) => {
            line.push(' ');
            line.push_str(user);
        }
    }
    line.push(' ');
    line.push_str(&command(&job.command, job.stdin.as_deref())?);
    if line.len() > MAX_LINE {
        return Err(format!("its line would be {} bytes long, and at most {MAX_LINE} are allowed", line.len()));
    }
    if variable::parse(&line).is_some() {
        return Err("cron would read its line as an assignment, because of the = after the schedule".into());
    }
    Ok(Fitted { variables: variables(export, zone)?, line })
}

/// The zone in the schedule's prefix, and the schedule in cron's syntax.
fn schedule(text: &str) -> Result<(Option<&str>, String), String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let zone = words.first().and_then(|word| word.strip_prefix("CRON_TZ=").or_else(|| word.strip_prefix("TZ=")));
    if zone.is_some() {
        words.remove(0);
    }
    match words.as_slice() {
        [descriptor] if DESCRIPTORS.contains(descriptor) => {}
        [descriptor, ..] if descriptor.starts_with('@') => return Err(format!("cron has no {}", quoted(descriptor))),
        [_, _, _, _, _, _] => return Err("its schedule has seconds, and cron's clock ticks once a minute".into()),
        [_, _, _, _, _] => {
            for (at, field) in words.iter().enumerate() {
                if !cron_knows(at, field) {
                    return Err(format!("its {} is {}, which cron does not know", FIELDS[at], quoted(field)));
                }
            }
        }
        _ => return Err(format!("its schedule is {}, which cron does not know", quoted(text))),
    }
    Ok((zone, words.join(" ")))
}

/// Whether cron knows a field: numbers, `*`, ranges, steps, lists, and names of months and weekdays. It does not know
/// `H`, `L`, `W`, `#` and `?`.
fn cron_knows(at: usize, field: &str) -> bool {
    let names: &[&str] = match at {
        3 => &MONTHS,
        4 => &WEEKDAYS,
        _ => &[],
    };
    field.split([',', '-', '/']).all(|part| {
        part == "*"
            || !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
            || names.contains(&part.to_ascii_lowercase().as_str())
    })
}

fn command(command: &str, stdin: Option<&str>) -> Result<String, String> {
    let command = command.trim_start_matches([' ', '\t']);
    if command.is_empty() {
        return Err("it has no command".into());
    }
    if command.contains('\n') {
        return Err("its command has several lines, and a crontab has one for it".into());
    }
    let bad = |c: &char| c.is_control() && *c != '\t';
    if command.chars().any(|c| bad(&c)) || stdin.is_some_and(|s| s.chars().any(|c| bad(&c) && c != '\n')) {
        return Err("its command or standard input holds control characters".into());
    }
    Ok(percent::join(command, stdin)?)
}

fn variables(export: &ExportJob, zone: Option<&str>) -> Result<BTreeMap<String, String>, String> {
    let job = &export.job;
    if job.dir.as_ref() != job.env.get("HOME") {
        let dir = job.dir.as_deref().map_or("the home of its user".into(), quoted);
        return Err(format!("it starts in {dir}, and cron starts in HOME, which is another in its environment"));
    }
    if let Some(name) = job.env.keys().find(|name| CRON_VARIABLES.contains(&name.as_str())) {
        return Err(format!("its environment has {}, which cron takes for itself", quoted(name)));
    }
    if zone.is_some_and(|zone| zone.is_empty() || zone.contains([' ', '\t'])) {
        return Err("its time zone is not one word".into());
    }
    if job.env.get("TZ").is_some_and(|zone| zone.contains([' ', '\t'])) {
        return Err("its environment has a TZ that is not one word".into());
    }
    if job.shell.is_empty() {
        return Err("it names no shell".into());
    }
    let mut variables = job.env.clone();
    variables.insert("SHELL".into(), job.shell.clone());
    variables.insert("CRON_TZ".into(), zone.unwrap_or_default().into());
    if let Some(to) = job.labels.get(MAIL_LABEL) {
        variables.insert(MAILTO.into(), to.clone());
    }
    match variables.iter().find(|(name, value)| variable::print(name, value).is_none()) {
        Some((name, _)) => Err(format!("its variable {} cannot be written in a crontab", quoted(name))),
        None => Ok(variables),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cron_knows_is_a_crontab_schedule() {
        for (text, expected) in [
            ("*/5  0-23/2 1,15 jan-MAR mon", Ok((None, "*/5 0-23/2 1,15 jan-MAR mon".to_owned()))),
            ("@daily", Ok((None, "@daily".to_owned()))),
            ("CRON_TZ=Europe/Berlin 0 3 * * *", Ok((Some("Europe/Berlin"), "0 3 * * *".to_owned()))),
            ("@every 90s", Err("cron has no \"@every\"")),
            ("0 0 3 * * *", Err("its schedule has seconds, and cron's clock ticks once a minute")),
            ("H 3 * * *", Err("its minute is \"H\", which cron does not know")),
            ("0 3 L * *", Err("its day of month is \"L\", which cron does not know")),
            ("0 3 15W * *", Err("its day of month is \"15W\", which cron does not know")),
            ("0 3 * * FRI#3", Err("its day of week is \"FRI#3\", which cron does not know")),
            ("0 3 ? * 1", Err("its day of month is \"?\", which cron does not know")),
            ("@nightly", Err("cron has no \"@nightly\"")),
            ("nightly", Err("its schedule is \"nightly\", which cron does not know")),
            ("0 3", Err("its schedule is \"0 3\", which cron does not know")),
        ] {
            assert_eq!(schedule(text), expected.map_err(str::to_owned), "{text}");
        }
    }
}
