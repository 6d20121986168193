//! Writes jobs as a crontab that [`super::parse`] reads back into the same jobs, but for their names.
//!
//! Jobs with the fewest variables come first, so that few have to be switched or taken back between lines. A job that a
//! crontab cannot express is left as a comment with the reason.

use std::collections::BTreeMap;

use super::fit::{Fitted, fit};
use super::read::UNSET;
use super::{CrontabJob, DEFAULT_SHELL, variable};
use crate::name::on_one_line;

/// A job to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportJob {
    /// The job; its command, standard input, shell and directory count with [`Executor::Shell`] only.
    pub job: CrontabJob,
    /// What runs it.
    pub executor: Executor,
    /// Whether it is paused, which a crontab cannot say.
    pub paused: bool,
    /// Settings that a crontab has no words for, such as `timeout 1h`; they stand in the comment above the line.
    pub unsaid: Vec<String>,
}

/// What runs a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Executor {
    /// A shell with the job's command.
    Shell,
    /// A program without a shell: it and its arguments.
    Argv(Vec<String>),
    /// Another executor, by name.
    Other(String),
}

/// The two forms of crontabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As `crontab -e` has it: all commands run as its owner.
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

/// Writes a crontab of `jobs`. Every job is in it, as a line or as a comment with the reason why it cannot be one.
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
        out.push_str(&title(export));
        out.push_str(&words.line);
        out.push('\n');
    }
    if !refused.is_empty() {
        out.push_str("\n# What follows a crontab cannot say; `carillon export --format json` has it complete.\n");
    }
    for (export, reason) in &refused {
        out.push('\n');
        out.push_str(&title(export));
        out.push_str(&refusal(export, reason));
    }
    out
}

/// Turns the variables that hold into those that are wanted.
fn switch(out: &mut String, holds: &mut BTreeMap<String, String>, wanted: &BTreeMap<String, String>) {
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

/// The comment above a job: its name, and what the line below does not say.
fn title(export: &ExportJob) -> String {
    let labels = export.job.labels.iter().map(|(key, value)| format!("label {key}={value}"));
    let unsaid: Vec<String> = export.unsaid.iter().cloned().chain(labels).collect();
    let name = on_one_line(&export.job.name);
    match unsaid.is_empty() {
        true => format!("# {name}\n"),
        false => format!("# {name} (not in the crontab: {})\n", on_one_line(&unsaid.join(", "))),
    }
}

/// The comment that stands for a job without a line.
fn refusal(export: &ExportJob, reason: &str) -> String {
    let job = &export.job;
    let what = match &export.executor {
        Executor::Shell => format!("command: {}", on_one_line(&job.command)),
        Executor::Argv(argv) => format!("argv: {}", on_one_line(&format!("{argv:?}"))),
        Executor::Other(name) => format!("executor: {}", on_one_line(name)),
    };
    format!("#   not exported: {}\n#   schedule: {}\n#   {what}\n", on_one_line(reason), on_one_line(&job.schedule),)
}
