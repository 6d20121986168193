//! An incoming webhook of Slack.
//!
//! Slack reads `&`, `<` and `>` as its own marks, so `<!channel>` in a job's output would ring everybody's phone. They are
//! escaped where Slack reads marks. Titles, sentences and output stand in blocks that Slack shows to the letter.

use serde_json::{Value, json};

use super::message::Message;
use super::plain::{shortened, tail};

/// Slack's limits, with room left: 150 characters of a header, 3,000 of a text.
const HEADER: usize = 140;
const TEXT: usize = 2_500;
const TAIL_LINES: usize = 20;

pub(super) fn body(message: &Message) -> Value {
    let mut blocks = vec![
        json!({"type": "header", "text": literal(&format!("{} {}", message.mark(), message.title), HEADER)}),
        json!({"type": "section", "text": literal(&message.sentence, TEXT)}),
    ];
    if !message.then.is_empty() {
        blocks.push(json!({"type": "section", "text": literal(&message.then, TEXT)}));
    }
    if let Some(tail) = message.output.as_deref().and_then(|output| tail(output, TAIL_LINES, TEXT)) {
        blocks.push(json!({
            "type": "rich_text",
            "elements": [{"type": "rich_text_preformatted", "elements": [{"type": "text", "text": tail}]}],
        }));
    }
    if let Some(link) = &message.link {
        let link = format!("<{}|{}>", escaped(link).replace('|', "%7C"), message.link_words());
        blocks.push(json!({"type": "context", "elements": [{"type": "mrkdwn", "text": link}]}));
    }
    json!({
        "text": escaped(&shortened(&format!("{}: {}", message.title, message.sentence), TEXT)),
        "blocks": blocks,
        "unfurl_links": false,
        "unfurl_media": false,
    })
}

/// A text that Slack shows as it is.
fn literal(text: &str, most: usize) -> Value {
    json!({"type": "plain_text", "text": shortened(text, most), "emoji": false})
}

/// <https://docs.slack.dev/messaging/formatting-message-text>: these three and no others.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
