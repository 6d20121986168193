//! How a run ends, and what is heard of it before: the same whatever ran it.

use std::fmt;
use std::sync::Arc;

use carillon_domain::run::Outcome;

/// Where what a run prints goes while it runs.
#[derive(Clone)]
pub struct Live(Option<Arc<Take>>);

type Take = dyn Fn(&[u8]) + Send + Sync;

impl Live {
    /// To a function, which is called with each part, in order, by whoever reads for all runs: it must not block.
    pub fn to(take: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(take)))
    }

    /// Nowhere.
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

/// How somebody wants a child of the keeper to stop.
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
    /// What happened.
    pub how: Outcome,
    /// Exit code of the process, where there was one.
    pub exit_code: Option<i32>,
    /// Signal that ended the process, where one did.
    pub signal: Option<i32>,
    /// A sentence for people where `how` alone does not tell all (why it could not start, why it was lost).
    pub reason: Option<String>,
    /// stdout and stderr in order: the first and last 32 KiB.
    pub output: Vec<u8>,
    /// Whether something between the first and the last part was left out.
    pub output_truncated: bool,
}

impl Exit {
    /// The exit of a run that never had a process, and why.
    pub fn without_process(how: Outcome, reason: impl Into<String>) -> Self {
        let (exit_code, signal, output, output_truncated) = (None, None, Vec::new(), false);
        Self { how, exit_code, signal, reason: Some(reason.into()), output, output_truncated }
    }
}
