//! Why a run failed.

use std::error::Error;
use std::fmt;

/// Why a run failed: a sentence for people, and an exit code for the history.
///
/// Every error becomes one by `?`, with its causes. It is no error itself, or that would not be possible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    message: String,
    exit_code: u8,
}

impl Failure {
    /// A failure with exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit_code: 1 }
    }

    /// The same with another exit code. 0 would be success, and becomes 1.
    pub fn with_exit_code(mut self, exit_code: u8) -> Self {
        self.exit_code = exit_code.max(1);
        self
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The exit code, never 0.
    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        Self::new(message)
    }
}
