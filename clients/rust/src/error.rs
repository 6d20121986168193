//! Why a call failed.

use serde_json::Value;

use crate::models::Problem;

/// Why a call failed, in a sentence.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The server refused it.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// Something else than the API of Carillon answered.
    #[error("{url} answered {status}, and not as Carillon does: is it the address of a server?")]
    Strange {
        /// Where it was sent.
        url: String,
        /// The status of the answer.
        status: u16,
    },
    /// No server answered, or its answer broke off. Whether it did anything is not known, unless `sent` is false.
    #[error("{url} does not answer: {reason}")]
    Away {
        /// Where it was sent.
        url: String,
        /// The words of the network.
        reason: String,
        /// Whether the server may have got it.
        sent: bool,
    },
    /// An answer could not be read.
    #[error("the answer of the server cannot be read: {0}; is it a newer server than this client is for?")]
    Unreadable(String),
    /// A body cannot be written as JSON.
    #[error("the body of a call cannot be written as JSON: {0}")]
    Unsent(String),
    /// The settings make no sense.
    #[error("{0}")]
    Settings(String),
}

impl Error {
    /// The status of a refusal.
    pub fn status(&self) -> Option<i64> {
        match self {
            Error::Refused(problem) => Some(problem.status),
            Error::Strange { status, .. } => Some((*status).into()),
            _ => None,
        }
    }

    /// Whether the call is known not to have been applied: refused, or never sent.
    pub fn was_not_applied(&self) -> bool {
        match self {
            Error::Refused(problem) => problem.outcome.as_ref().is_none_or(|outcome| outcome.as_str() == "not_applied"),
            Error::Away { sent, .. } => !sent,
            Error::Unsent(_) | Error::Settings(_) => true,
            Error::Strange { .. } | Error::Unreadable(_) => false,
        }
    }

    /// A refusal from its body.
    pub(crate) fn of(url: &str, status: u16, body: &[u8]) -> Self {
        let strange = || Error::Strange { url: url.to_owned(), status };
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return strange() };
        serde_json::from_value(body).map_or_else(|_| strange(), |problem| Error::Refused(Box::new(problem)))
    }
}
