//! Writes jobs as a crontab that [`super::parse`] reads back into the same jobs, except for their names.
//!
//! Jobs with the fewest variables come first, so that few variables change between lines. A job that a crontab cannot
//! express becomes a comment with the reason.

use std::collections::BTreeMap;

use super::fit::{Fitted, MAILTO, fit};
use super::read::UNSET;
use super::{CrontabJob, DEFAULT_SHELL, MAIL_LABEL, variable};
use crate::name::on_one_line;

/// A job to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportJob {
    /// The job. Its command, standard input, shell and directory apply only with [`Executor::Shell`].
    pub job: CrontabJob,
    /// The executor.
    pub executor: Executor,
    /// Whether it is paused, which a crontab cannot express.
    pub paused: bool,
    /// Settings that a crontab cannot express, such as `timeout 1h`. The comment above the line names them.
    pub unsaid: Vec<String>,
}

/// The executor of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executor {
    /// A shell that runs the job's command.
    Shell,
    /// A program without a shell, and its arguments.
    Argv(Vec<String>),
    /// Another executor, by name.
    Other(String),
}

/// The two forms of crontabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As `crontab -e` edits it: all commands run as its owner.
    User,
    /// As `/etc/cron.d/*`: each line names its user.
    System,
}

impl Form {
    /// The form that fits `jobs`: a system crontab if they name their users, as most jobs from one do.
    pub fn fitting(jobs: &[ExportJob]) -> Self {
        let users = jobs.iter().filter(|export| export.job.user.is_some()).count();
        if 2 * users > jobs.len() { Self::System } else { Self::User }
    }
}

/// Writes a crontab of `jobs`. Each job is a line, or a comment with the reason why it cannot be one.
pub fn write(jobs: &[ExportJob], form: Form) -> String {
    let mut fitted: Vec<(&ExportJob, Fitted)> = Vec::new();
    let mut refused: Vec<(&ExportJob, String)> = Vec::new();
    for export in jobs {
        match fit(export, form) {
            Ok(words) => fitted.push((export, words)),
            Err(reason) => refused.push((export, reason)),
        }
    }
    fitted.sort_by(|(_, a), (_, b)| (a.variables.len(), &a.variables).cmp(&(b.variables.len(), &b.variables)));

    let mut out = String::from(match form {
        Form::User => {
            "# A crontab written by Carillon; `carillon import` reads it back, under names made from this file's name.\n"
        }
        Form::System => {
            "# A system crontab written by Carillon; `carillon import --system` reads it back, under names made from this \
             file's name.\n"
        }
    });
    if fitted.iter().any(|(_, words)| words.variables.get("CRON_TZ").is_some_and(|zone| !zone.is_empty())) {
        out.push_str(
            "# Carillon and cronie follow CRON_TZ=; Debian's cron takes all schedules in the machine's zone.\n",
        );
    }
    let mut holds = BTreeMap::from([("SHELL".into(), DEFAULT_SHELL.into()), ("CRON_TZ".into(), String::new())]);
    for (export, words) in &fitted {
        out.push('\n');
        switch(&mut out, &mut holds, &words.variables);
        out.push_str(&title(export, &[MAIL_LABEL]));
        out.push_str(&words.line);
        out.push('\n');
    }
    if !refused.is_empty() {
        out.push_str("\n# A crontab cannot express these jobs; `carillon export --format json` has all of them.\n");
    }
    for (export, reason) in &refused {
        out.push('\n');
        out.push_str(&title(export, &[]));
        out.push_str(&refusal(export, reason));
    }
    out
}

/// Changes the variables in force into the wanted ones.
fn switch(out: &mut String, holds: &mut BTreeMap<String, String>, wanted: &BTreeMap<String, String>) {
    // Cron knows how to stop its mail, so this variable is not unset as the others are.
    if !wanted.contains_key(MAILTO) && holds.remove(MAILTO).is_some() {
        out.push_str("MAILTO=\"\"\n");
    }
    let stale: Vec<String> = holds.keys().filter(|name| !wanted.contains_key(*name)).cloned().collect();
    if !stale.is_empty() {
        out.push_str(
            "# Carillon follows the next comment; cron cannot, and keeps what it names for the lines below.\n",
        );
    }
    for name in &stale {
        out.push_str(&format!("{UNSET}{name}\n"));
        holds.remove(name);
    }
    for (name, value) in wanted {
        if holds.get(name) == Some(value) {
            continue;
        }
        if let Some(line) = variable::print(name, value) {
            out.push_str(&line);
            out.push('\n');
            holds.insert(name.clone(), value.clone());
        }
    }
}

/// The comment above a job: its name, and the settings that the line below does not have. The line says the labels `said`.
fn title(export: &ExportJob, said: &[&str]) -> String {
    let labels = export.job.labels.iter().filter(|(key, _)| !said.contains(&key.as_str()));
    let labels = labels.map(|(key, value)| format!("label {key}={value}"));
    let unsaid: Vec<String> = export.unsaid.iter().cloned().chain(labels).collect();
    let name = on_one_line(&export.job.name);
    match unsaid.is_empty() {
        true => format!("# {name}\n"),
        false => format!("# {name} (not in the crontab: {})\n", on_one_line(&unsaid.join(", "))),
    }
}

/// The comment for a job without a line.
fn refusal(export: &ExportJob, reason: &str) -> String {
    let job = &export.job;
    let what = match &export.executor {
        Executor::Shell => format!("command: {}", on_one_line(&job.command)),
        Executor::Argv(argv) => format!("argv: {}", on_one_line(&format!("{argv:?}"))),
        Executor::Other(name) => format!("executor: {}", on_one_line(name)),
    };
    format!("#   not exported: {}\n#   schedule: {}\n#   {what}\n", on_one_line(reason), on_one_line(&job.schedule),)
}
