//! Crontabs: read into jobs line by line, and written from jobs (SPEC section 5: `import`, `export`).
//!
//! The behaviour is that of Debian's cron, `crontab(5)`, except that nothing is dropped silently: [`parse`] says of
//! every line what became of it, and [`write()`] leaves a comment with the reason for every job that a crontab cannot
//! express. Schedules are judged by the caller, so that this module knows only how a crontab is laid out.
//!
//! What differs from cron, on purpose: mail is not sent, `@reboot` is skipped, CRLF line ends, a byte order mark, a
//! missing last newline, an empty `NAME=` and cronie's leading `-` are accepted, `CRON_TZ=` sets the zone (as in
//! cronie), `@every` and `@at` are known, and `# carillon: unset NAME` takes a variable back (cron has no way to).

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
pub use read::{Check, parse};
pub use write::{Executor, ExportJob, Form, write};

/// The shell that runs commands unless `SHELL=` says otherwise.
pub const DEFAULT_SHELL: &str = "/bin/sh";

/// The longest line that is read or written, in bytes.
pub const MAX_LINE: usize = 64 * 1024;

/// How a crontab is to be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportOptions<'a> {
    /// The file's name without directory; job names begin with it, see [`stem`].
    pub file: &'a str,
    /// A system crontab, as `/etc/crontab` and `/etc/cron.d/*`: a user stands between the schedule and the command.
    pub system: bool,
    /// The user of a system crontab becomes the label `user` instead of the user that runs the command.
    pub ignore_user: bool,
    /// The zone of the jobs that stand before any `CRON_TZ=`.
    pub timezone: Option<&'a str>,
}

/// One line of a crontab and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: u32,
    /// What became of it.
    pub what: LineKind,
    /// What a user should know although the line was taken.
    pub note: Option<String>,
}

/// What became of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineKind {
    /// A job.
    Job(CrontabJob),
    /// A variable, which holds for the lines after it.
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
        /// Why, as a sentence.
        reason: String,
    },
    /// A line that makes no sense.
    Error {
        /// The schedule, where the line has one.
        schedule: Option<String>,
        /// Why, as a sentence.
        reason: String,
    },
}

/// A job as a crontab line and the variables above it define it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrontabJob {
    /// From the file's name and from what is run, never from when: an edited schedule keeps the name.
    pub name: String,
    /// The five fields or the descriptor, with single blanks between words.
    pub schedule: String,
    /// From `CRON_TZ=`, else from the options.
    pub timezone: Option<String>,
    /// What the shell is given: up to the first unescaped `%`, with `\%` and `\\` resolved.
    pub command: String,
    /// What follows the first unescaped `%`, with further ones as newlines; ends with a newline. `None` when empty.
    pub stdin: Option<String>,
    /// The variables, `HOME` among them; without those that cron itself reads (`SHELL`, `CRON_TZ`, `MAILTO`...).
    pub env: BTreeMap<String, String>,
    /// From `SHELL=`, else [`DEFAULT_SHELL`].
    pub shell: String,
    /// From `HOME=`; `None` stands for the home of the user that runs the command.
    pub dir: Option<String>,
    /// Whom the command runs as: the user column of a system crontab.
    pub user: Option<String>,
    /// The user column under `ignore_user`.
    pub labels: BTreeMap<String, String>,
}

impl Line {
    /// One word for what became of the line, as `import --json` prints it.
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

    /// The schedule, where the line has one.
    pub fn schedule(&self) -> Option<&str> {
        match &self.what {
            LineKind::Job(CrontabJob { schedule, .. }) | LineKind::Skipped { schedule, .. } => Some(schedule),
            LineKind::Error { schedule, .. } => schedule.as_deref(),
            _ => None,
        }
    }

    /// Why the line was not taken, or what a user should know although it was.
    pub fn reason(&self) -> Option<&str> {
        match &self.what {
            LineKind::Skipped { reason, .. } | LineKind::Error { reason, .. } => Some(reason),
            _ => self.note.as_deref(),
        }
    }
}
