//! An incoming webhook of Mattermost: one text in Markdown.
//!
//! Mattermost rings for `@channel` in running text, but not in a block of code. So output stands in a block whose fence it
//! cannot close, and an invisible blank follows each `@` of the sentences.

use serde_json::{Value, json};

use super::message::Message;
use super::plain::{shortened, tail};

/// Mattermost takes 16,383 characters; on small databases 4,000.
const TEXT: usize = 1_000;
const TAIL: usize = 2_000;
const TAIL_LINES: usize = 20;

pub(super) fn body(message: &Message) -> Value {
    let mut parts = vec![
        format!("#### {} {}", message.mark(), escaped(&message.title)),
        escaped(&shortened(&message.sentence, TEXT)),
    ];
    if !message.then.is_empty() {
        parts.push(escaped(&shortened(&message.then, TEXT)));
    }
    if let Some(tail) = message.output.as_deref().and_then(|output| tail(output, TAIL_LINES, TAIL)) {
        let fence = fence(&tail);
        parts.push(format!("{fence}\n{tail}\n{fence}"));
    }
    if let Some(link) = &message.link {
        let link = link.replace('(', "%28").replace(')', "%29");
        parts.push(format!("[{}]({link})", message.link_words()));
    }
    json!({"text": parts.join("\n\n")})
}

/// Backticks, one more than anywhere in `text`, and three at least.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Markdown that shows `text` to the letter and calls nobody.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '@' => out.push_str("@\u{200b}"),
            '\\' | '`' | '*' | '_' | '~' | '[' | ']' | '(' | ')' | '<' | '>' | '#' | '|' | '!' => out.extend(['\\', c]),
            // A line of its own could begin a list or a heading.
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
