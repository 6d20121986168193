//! Tasks under way: calls of nodes to their store, each with a time limit, and requests of operators.

use carillon_domain::node::Input;
use carillon_domain::node::call::{Call, CallFailure, CallId};
use carillon_domain::time::Timestamp;
use carillon_doubles::innodb::Client;
use carillon_store::alerts::Claimed;
use carillon_store::perform;

/// The subject of a task, so that a time limit can be told as its failure.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Open,
    /// A person's.
    Control,
    /// A node's.
    Call(CallId),
    /// A node's look at facts and expectations.
    Look,
    /// A node's claim of messages.
    ClaimDeliveries,
    /// A node's answer to that attempt.
    Answer(u64),
}

/// The result of a task.
pub(super) enum Done {
    Opened(Option<Timestamp>),
    Input(Input),
    /// Whether the person got an answer that is one.
    Told(bool),
    /// A node has looked at facts and expectations.
    Looked,
    /// Messages that a node is to send.
    Claimed(Vec<Claimed>),
    /// Whether the answer to an attempt is kept, if that is known.
    AnswerWritten {
        attempt: u64,
        written: Option<bool>,
    },
}

impl Request {
    /// How it ends when no answer came in time: it may still be applied.
    pub fn late(self) -> Done {
        match self {
            Request::Open => Done::Opened(None),
            Request::Control => Done::Told(false),
            Request::Look => Done::Looked,
            Request::ClaimDeliveries => Done::Claimed(Vec::new()),
            Request::Answer(attempt) => Done::AnswerWritten { attempt, written: None },
            Request::Call(id) => Done::Input(Input::Answered { id, answer: Err(CallFailure::Unknown) }),
        }
    }
}

/// Makes a call of a node.
pub(super) async fn make(store: Client, id: CallId, call: Call) -> Done {
    let answer = perform(&store, &call).await.map_err(CallFailure::from);
    Done::Input(Input::Answered { id, answer })
}
