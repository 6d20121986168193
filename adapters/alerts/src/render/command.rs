//! A command's environment. Its standard input is the JSON of a webhook.

use std::collections::BTreeMap;

use super::message::Message;
use super::plain::one_line;

/// The longest value, in characters. The kernel bounds all of them together.
const LONGEST: usize = 4_000;

/// `CARILLON_ALERT_` variables; one without a value is empty, so that a script under `set -u` may use each.
pub(super) fn environment(message: &Message) -> BTreeMap<String, String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        ("ID", message.id.clone()),
        ("ROUTE", message.route.clone()),
        ("WHEN", message.when.to_owned()),
        ("STATE", message.state.as_str().to_owned()),
        ("NAMESPACE", text(&message.namespace)),
        ("JOB", text(&message.job)),
        ("RUN", text(&message.run)),
        ("DUE_AT", text(&message.due_at)),
        ("TITLE", message.title.clone()),
        ("SENTENCE", message.sentence.clone()),
        ("URL", text(&message.link)),
    ]
    .into_iter()
    .map(|(name, value)| (format!("CARILLON_ALERT_{name}"), one_line(&value, LONGEST)))
    .collect()
}
