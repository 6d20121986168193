//! What is under way: calls of nodes to their store, each with a time limit, and requests of people.

use carillon_domain::node::Input;
use carillon_domain::node::call::{Call, CallId, Failure};
use carillon_domain::time::Timestamp;
use carillon_doubles::innodb::Client;
use carillon_store::perform;

/// What a task is about, so that a time limit can be told as its failure.
#[derive(Debug, Clone)]
pub(super) enum Request {
    Open,
    /// A person's.
    Control,
    /// A node's.
    Call(CallId),
}

/// What comes of it.
pub(super) enum Done {
    Opened(Option<Timestamp>),
    Input(Input),
    /// Whether the person got an answer that is one.
    Told(bool),
}

impl Request {
    /// How it ends when no answer came in time: it may still be applied.
    pub fn late(self) -> Done {
        match self {
            Request::Open => Done::Opened(None),
            Request::Control => Done::Told(false),
            Request::Call(id) => Done::Input(Input::Answered { id, answer: Err(Failure::Unknown) }),
        }
    }
}

/// Makes a call of a node.
pub(super) async fn make(store: Client, id: CallId, call: Call) -> Done {
    let answer = perform(&store, &call).await.map_err(Failure::from);
    Done::Input(Input::Answered { id, answer })
}
