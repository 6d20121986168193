//! A mail about an alert: plain text, and the same as HTML.

use std::fmt::Write as _;

use super::message::{Message, State};
use super::plain::tail;
use super::{Mail, MailBody};

/// The most lines and characters of output.
const TAIL_LINES: usize = 60;
const TAIL: usize = 8_000;

pub(super) fn mail(message: &Message, to: &[String]) -> Mail {
    let output = message.output.as_deref().and_then(|output| tail(output, TAIL_LINES, TAIL));
    Mail {
        to: to.to_vec(),
        sender: "Carillon".to_owned(),
        subject: format!("[Carillon] {} {}", message.mark(), message.title),
        id: message.id.clone(),
        thread: Some(message.thread.clone()),
        headers: vec![
            ("X-Carillon-Alert".to_owned(), format!("{} {}", message.when, message.state.as_str())),
            ("X-Carillon-Route".to_owned(), message.route.clone()),
        ],
        body: MailBody { text: text(message, output.as_deref()), html: Some(html(message, output.as_deref())) },
    }
}

fn text(message: &Message, output: Option<&str>) -> String {
    let mut text = format!("{}\n", message.sentence);
    if !message.then.is_empty() {
        let _infallible = write!(text, "\n{}\n", message.then);
    }
    if let Some(output) = output {
        text.push_str("\nThe end of its output:\n\n");
        for line in output.lines() {
            let _infallible = writeln!(text, "    {line}");
        }
    }
    if let Some(link) = &message.link {
        let _infallible = write!(text, "\n{}: {link}\n", message.link_words());
    }
    // The line is a mark that mail programs know: signatures begin there.
    let _infallible = write!(text, "\n-- \nSent by Carillon, route {}, alert {}\n", message.route, message.id);
    text
}

fn html(message: &Message, output: Option<&str>) -> String {
    let color = match message.state {
        State::Open => "#b3261e",
        State::Recovered => "#1b6e3c",
        State::Test => "#3b5b8c",
    };
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"></head>\n\
         <body style=\"font-family: sans-serif; line-height: 1.45\">\n\
         <h2 style=\"color: {color}; font-size: 1.2em\">{} {}</h2>\n<p>{}</p>\n",
        message.mark(),
        escaped(&message.title),
        escaped(&message.sentence)
    );
    if !message.then.is_empty() {
        let _infallible = writeln!(html, "<p>{}</p>", escaped(&message.then));
    }
    if let Some(output) = output {
        let _infallible = writeln!(
            html,
            "<p>The end of its output:</p>\n<pre style=\"background: #f3f3f3; padding: 8px; white-space: pre-wrap\">{}</pre>",
            escaped(output)
        );
    }
    if let Some(link) = &message.link {
        let _infallible = writeln!(html, "<p><a href=\"{}\">{}</a></p>", escaped(link), message.link_words());
    }
    let _infallible = writeln!(
        html,
        "<p style=\"color: #666; font-size: 0.85em\">Sent by Carillon, route {}, alert {}</p>\n</body></html>",
        escaped(&message.route),
        escaped(&message.id)
    );
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}
