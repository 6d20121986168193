//! The exit of a run, and the receiver of its live output, for every executor.

use std::fmt;
use std::sync::Arc;

use carillon_domain::measured::Usage;
use carillon_domain::run::Outcome;

/// The reason of runs that the fence ended, or did not let begin.
pub const LEASE_OVER: &str = "the node did not renew its lease in time";

/// The receiver of a run's output while it runs.
#[derive(Clone)]
pub struct Live(Option<Arc<Take>>);

type Take = dyn Fn(&[u8]) + Send + Sync;

impl Live {
    /// Calls `take` with each part, in order. `take` must not block: one task reads the output of all runs.
    pub fn to(take: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(take)))
    }

    /// Drops the output.
    pub const fn unheard() -> Self {
        Self(None)
    }

    /// The run has printed this.
    pub fn printed(&self, bytes: &[u8]) {
        if let Some(take) = &self.0 {
            take(bytes);
        }
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Live(heard)" } else { "Live(unheard)" })
    }
}

/// The way in which a child of the keeper is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// End politely, then by force after `kill_grace`.
    Politely,
    /// End by force, at once.
    Now,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The outcome.
    pub how: Outcome,
    /// Exit code of the process, where there was one.
    pub exit_code: Option<i32>,
    /// Signal that ended the process, where one did.
    pub signal: Option<i32>,
    /// A sentence that explains `how`, for example why the run could not start.
    pub reason: Option<String>,
    /// stdout and stderr in order: the first and last 32 KiB.
    pub output: Vec<u8>,
    /// Whether bytes between the first and the last part were dropped.
    pub output_truncated: bool,
    /// The machine that it used, where that was measured.
    pub usage: Usage,
}

impl Exit {
    /// The exit of a run that never had a process.
    pub fn without_process(how: Outcome, reason: impl Into<String>) -> Self {
        let (exit_code, signal, output, output_truncated) = (None, None, Vec::new(), false);
        let (reason, usage) = (Some(reason.into()), Usage::default());
        Self { how, exit_code, signal, reason, output, output_truncated, usage }
    }
}
