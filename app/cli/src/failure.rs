//! Why a command did not do what it was asked: a sentence for stderr and the exit code that goes with it.

use std::process::ExitCode;

/// The kind of a failure, as far as scripts care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// It failed: exit code 1.
    Failed,
    /// The arguments, or a definition in them, make no sense: exit code 2, as clap's own.
    Usage,
    /// There is no such job or run: exit code 3.
    NotFound,
    /// The name is taken, or somebody else was faster: exit code 4.
    Conflict,
}

/// A command failed. The sentence says what was wrong, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct CommandFailure {
    /// Which exit code.
    pub kind: FailureKind,
    /// For people; may have several lines.
    pub sentence: String,
}

impl CommandFailure {
    /// It failed.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self { kind: FailureKind::Failed, sentence: sentence.into() }
    }

    /// The arguments make no sense.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self { kind: FailureKind::Usage, sentence: sentence.into() }
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            FailureKind::Failed => 1,
            FailureKind::Usage => 2,
            FailureKind::NotFound => 3,
            FailureKind::Conflict => 4,
        })
    }
}
