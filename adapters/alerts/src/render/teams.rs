//! A webhook of Microsoft Teams' workflows: an Adaptive Card.
//!
//! A `TextRun` has no Markdown, and a mention needs an entity of its own, so nothing in a text can do anything.

use serde_json::{Value, json};

use super::message::{Message, State};
use super::plain::{shortened, tail};

/// A card may have 28 KB. A line of output may take 6 bytes a character as JSON.
const TEXT: usize = 1_000;
const TAIL: usize = 2_000;
const TAIL_LINES: usize = 20;

pub(super) fn body(message: &Message) -> Value {
    let color = match message.state {
        State::Open => "Attention",
        State::Recovered => "Good",
        State::Test => "Accent",
    };
    let title = json!({"type": "TextRun", "text": message.title, "size": "Large", "weight": "Bolder", "color": color});
    let mut body = vec![rich(title), text(&message.sentence)];
    if !message.then.is_empty() {
        body.push(text(&message.then));
    }
    if let Some(tail) = message.output.as_deref().and_then(|output| tail(output, TAIL_LINES, TAIL)) {
        // Clients differ in how they break a line of a text, so each line is a block.
        let lines: Vec<Value> = tail
            .lines()
            .map(|line| {
                let line = if line.is_empty() { " " } else { line };
                let mut block =
                    rich(json!({"type": "TextRun", "text": line, "fontType": "Monospace", "size": "Small"}));
                block["spacing"] = "None".into();
                block
            })
            .collect();
        body.push(json!({"type": "Container", "style": "emphasis", "items": lines}));
    }
    let mut card = json!({
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": body,
    });
    if let Some(link) = &message.link {
        card["actions"] = json!([{"type": "Action.OpenUrl", "title": message.link_words(), "url": link}]);
    }
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "contentUrl": null,
            "content": card,
        }],
    })
}

fn text(text: &str) -> Value {
    rich(json!({"type": "TextRun", "text": shortened(text, TEXT)}))
}

fn rich(run: Value) -> Value {
    json!({"type": "RichTextBlock", "inlines": [run]})
}
