//! The JSON of webhooks and commands. Its keys are a contract with programs; each is always there.

use serde_json::{Value, json};

use super::message::Message;
use super::plain::clean;

/// The most bytes of output.
const OUTPUT: usize = 10_000;

pub(super) fn body(message: &Message) -> Value {
    json!({
        "id": message.id,
        "when": message.when,
        // A test is told as an open one, so that it takes the way that alerts take at the receiver.
        "state": if message.state.as_str() == "recovered" { "recovered" } else { "open" },
        "namespace": message.namespace,
        "job": message.job,
        "run": message.run,
        "due_at": message.due_at,
        "sentence": message.sentence,
        "output_tail": message.output.as_deref().map(|output| last_bytes(&clean(output), OUTPUT).to_owned()),
        "url": message.link,
    })
}

/// The last `most` bytes of a text, less a character that is cut.
pub(super) fn last_bytes(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}
