//! The explanation of a due time as clients read it.

use carillon_domain::explain::Explanation;
use carillon_store::RunView;
use serde_json::{Value, json};

use super::run::run_json;

/// The explanation of a due time.
#[derive(Debug, Clone, PartialEq)]
pub struct Why {
    /// The sentence, and how the due time stands.
    pub explanation: Explanation,
    /// The run that the sentence speaks of, if there is one in history or in flight.
    pub run: Option<RunView>,
}

/// The sentence, and the run that it speaks of.
pub fn why_json(why: &Why) -> Value {
    let explanation = &why.explanation;
    json!({
        "due_at": explanation.due_at.to_string(),
        "state": explanation.state.as_str(),
        "sentence": explanation.sentence,
        "run": why.run.as_ref().map(run_json),
        "next_due_at": explanation.next_due_at.map(|due| due.to_string()),
    })
}
