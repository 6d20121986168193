//! How an attempt ended: for the delivery, and for the lane of the receiver.

use std::time::Duration;

use carillon_domain::alert::{Answer, RefusedReceiver};

use crate::lanes::Left;

/// The longest time for which a receiver is left alone because it asks for it: one hour.
pub(crate) const MAX_HOLD: Duration = Duration::from_secs(3_600);

/// The end of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// For the delivery. Its words are sentences for people: who answered, what was wrong, what to do. They never
    /// show a secret: of a URL they name scheme and host only.
    pub answer: Answer,
    /// For the lane.
    pub left: Left,
}

impl Outcome {
    /// The receiver has it.
    pub(crate) fn delivered(words: impl Into<String>) -> Self {
        Self { answer: Answer::Delivered { words: words.into() }, left: Left::Answered }
    }

    /// Some of the receivers of a mail have it.
    pub(crate) fn partly(words: impl Into<String>, refused: Vec<RefusedReceiver>) -> Self {
        Self { answer: Answer::Partly { words: words.into(), refused }, left: Left::Answered }
    }

    /// A refusal that a later try may overcome.
    pub(crate) fn for_now(words: impl Into<String>) -> Self {
        Self { answer: Answer::Refused { words: words.into(), permanent: false }, left: Left::Answered }
    }

    /// A refusal that stays until somebody changes something.
    pub(crate) fn for_good(words: impl Into<String>) -> Self {
        Self { answer: Answer::Refused { words: words.into(), permanent: true }, left: Left::Answered }
    }

    /// The receiver could not be reached, so it does not have it.
    pub(crate) fn unreached(words: impl Into<String>) -> Self {
        Self { left: Left::Hung, ..Self::for_now(words) }
    }

    /// The message left and no answer came, so the receiver may have it.
    pub(crate) fn unknown(words: impl Into<String>) -> Self {
        Self { answer: Answer::Unknown { words: words.into() }, left: Left::Hung }
    }

    /// The same, with the receiver's wish to be left alone for so long.
    pub(crate) fn hold(self, hold: Option<Duration>) -> Self {
        match hold {
            Some(hold) => Self { left: Left::Hold(hold.min(MAX_HOLD)), ..self },
            None => self,
        }
    }

    /// The sentence, whatever the outcome.
    pub fn words(&self) -> &str {
        match &self.answer {
            Answer::Delivered { words }
            | Answer::Partly { words, .. }
            | Answer::Refused { words, .. }
            | Answer::Unknown { words } => words,
        }
    }
}
