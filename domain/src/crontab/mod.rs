//! Crontabs: `carillon import` reads them into jobs line by line, and `carillon export` writes them from jobs.
//!
//! The behaviour is that of Debian's cron, `crontab(5)`, but nothing is dropped silently. [`parse`] reports the result
//! of every line, and [`write()`] leaves a comment with the reason for every job that a crontab cannot express. The
//! caller checks schedules, so that this module knows only the layout of a crontab.
//!
//! These differences from cron are intended:
//! - `MAILTO=` becomes a label, by which a route of alerts mails what the jobs write. Without it there is no mail. `@reboot` is skipped.
//! - CRLF line ends, a byte order mark, a missing last newline, an empty `NAME=` and cronie's leading `-` are accepted.
//! - `CRON_TZ=` sets the zone (as in cronie), and `@every` and `@at` are known.
//! - `# carillon: unset NAME` unsets a variable, for which cron has no syntax.

mod entry;
mod fit;
mod naming;
mod percent;
mod program;
mod read;
mod variable;
mod write;

use std::collections::BTreeMap;

pub use naming::stem;
pub use read::{Check, mail_addresses, parse};
pub use write::{Executor, ExportJob, Form, write};

/// The shell that runs commands unless `SHELL=` says otherwise.
pub const DEFAULT_SHELL: &str = "/bin/sh";

/// The label of a job under `MAILTO=`: its addresses, with commas between them.
pub const MAIL_LABEL: &str = "mailto";

/// The longest line that is read or written, in bytes.
pub const MAX_LINE: usize = 64 * 1024;

/// The settings for reading a crontab.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOptions<'a> {
    /// The file's name without directory; job names begin with it, see [`stem`].
    pub file: &'a str,
    /// Whether it is a system crontab, as `/etc/crontab` and `/etc/cron.d/*`: the user comes before the command.
    pub system: bool,
    /// Whether the user of a system crontab only becomes the label `user`, and does not run the command.
    pub ignore_user: bool,
    /// The zone of jobs above the first `CRON_TZ=`.
    pub timezone: Option<&'a str>,
}

/// One line of a crontab and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: u32,
    /// The result.
    pub what: LineKind,
    /// A remark for the user about a line that was accepted.
    pub note: Option<String>,
}

/// The result of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineKind {
    /// A job.
    Job(CrontabJob),
    /// A variable, which applies to the lines after it.
    Env {
        /// The variable.
        name: String,
        /// Its value, without the quotes.
        value: String,
    },
    /// A comment or a blank line.
    Comment,
    /// A valid line that Carillon leaves out.
    Skipped {
        /// The schedule.
        schedule: String,
        /// The command as the line has it.
        command: String,
        /// The reason, as a sentence.
        reason: String,
    },
    /// An invalid line.
    Error {
        /// The schedule, if the line has one.
        schedule: Option<String>,
        /// The reason, as a sentence.
        reason: String,
    },
}

/// A job as defined by a crontab line and the variables above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrontabJob {
    /// Derived from the file's name and the command, but not from the schedule: an edited schedule keeps the name.
    pub name: String,
    /// The five fields or the descriptor, with single blanks between words.
    pub schedule: String,
    /// From `CRON_TZ=`, otherwise from the options.
    pub timezone: Option<String>,
    /// The text for the shell: up to the first unescaped `%`, with `\%` and `\\` resolved.
    pub command: String,
    /// The text after the first unescaped `%`, with each later one as a newline. It ends with a newline; `None` if
    /// empty.
    pub stdin: Option<String>,
    /// The variables with `HOME`, but without those that cron itself reads (`SHELL`, `CRON_TZ`, `MAILTO`...).
    pub env: BTreeMap<String, String>,
    /// From `SHELL=`, otherwise [`DEFAULT_SHELL`].
    pub shell: String,
    /// From `HOME=`; `None` means the home of the user that runs the command.
    pub dir: Option<String>,
    /// The user that runs the command: the user column of a system crontab.
    pub user: Option<String>,
    /// The user column as `user`, if `ignore_user` is set, and [`MAIL_LABEL`].
    pub labels: BTreeMap<String, String>,
}

impl Line {
    /// One word for the result of the line, as `import --json` prints it.
    pub fn status(&self) -> &'static str {
        match self.what {
            LineKind::Job(_) => "job",
            LineKind::Env { .. } => "env",
            LineKind::Comment => "comment",
            LineKind::Skipped { .. } => "skipped",
            LineKind::Error { .. } => "error",
        }
    }

    /// The name of the job or of the variable.
    pub fn name(&self) -> Option<&str> {
        match &self.what {
            LineKind::Job(job) => Some(&job.name),
            LineKind::Env { name, .. } => Some(name),
            _ => None,
        }
    }

    /// The schedule, if the line has one.
    pub fn schedule(&self) -> Option<&str> {
        match &self.what {
            LineKind::Job(CrontabJob { schedule, .. }) | LineKind::Skipped { schedule, .. } => Some(schedule),
            LineKind::Error { schedule, .. } => schedule.as_deref(),
            _ => None,
        }
    }

    /// The reason why the line was refused or skipped, or the remark about an accepted line.
    pub fn reason(&self) -> Option<&str> {
        match &self.what {
            LineKind::Skipped { reason, .. } | LineKind::Error { reason, .. } => Some(reason),
            _ => self.note.as_deref(),
        }
    }
}
