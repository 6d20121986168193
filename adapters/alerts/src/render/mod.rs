//! Notices become messages in the form of their receiver.
//!
//! Every form says the same: the sentence first, then what to do, the last lines of output, and a link to the page. Text
//! of jobs is untrusted: it can neither ring anybody's phone nor add a header nor run a script.

mod command;
mod cron;
mod mail;
mod mattermost;
mod message;
mod plain;
mod slack;
mod teams;
mod webhook;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use carillon_domain::alert::{Notice, Ping, PingCall, Target};

use self::message::Message;
pub(crate) use self::plain::{clean, one_line, shortened};

/// Facts that a notice does not carry, from where the node can read them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra {
    /// The end of the run's output, with its secrets masked already. A few kilobytes are enough; each receiver gets as much
    /// as it takes.
    pub output_tail: Option<String>,
    /// The address of the page about the run, the job or the cluster; http or https.
    pub link: Option<String>,
    /// The name of the node on which the run ran: cron's mail has it in its subject.
    pub host: Option<String>,
}

/// A message that can be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// An HTTP POST; see [`crate::Sender::post`].
    Post(Post),
    /// A mail; see [`crate::Sender::mail`].
    Mail(Mail),
    /// A command. It runs under the keeper, as jobs do, so this crate does not start it.
    Command(Command),
}

/// An HTTP POST.
#[derive(Clone, PartialEq, Eq)]
pub struct Post {
    /// The address. It is a secret: who knows it may post.
    pub url: String,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
    /// The key of the signature, if the call is to be signed.
    pub secret: Option<String>,
}

/// A mail, before it has a sender and a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The receivers. A name without `@` is a user at the sender's domain.
    pub to: Vec<String>,
    /// The sender's name; the address is the one of `[mail] from`.
    pub sender: String,
    /// The subject.
    pub subject: String,
    /// Repeats of one mail have the same id, so that mail programs may tell.
    pub id: String,
    /// Mails with the same thread stand together in mail programs.
    pub thread: Option<String>,
    /// More headers, as name and value.
    pub headers: Vec<(String, String)>,
    /// The text.
    pub body: MailBody,
}

/// The text of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailBody {
    /// As plain text.
    pub text: String,
    /// The same as HTML.
    pub html: Option<String>,
}

/// A command with its environment and standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The command line, for `/bin/sh -c`. No text of the notice is part of it.
    pub command: String,
    /// It is killed after so long.
    pub timeout: Duration,
    /// Variables beside the usual ones.
    pub environment: BTreeMap<String, String>,
    /// The JSON of a webhook.
    pub stdin: String,
}

/// The message of `notice` for `target`. `None` if there is nothing to send: cron sends no mail about a command without
/// output.
pub fn render(notice: &Notice, extra: &Extra, target: &Target) -> Option<Payload> {
    let message = Message::of(notice, extra);
    let post = |url: &str, body: serde_json::Value, secret: &Option<String>| {
        Payload::Post(Post {
            url: url.to_owned(),
            content_type: "application/json",
            body: body.to_string(),
            secret: secret.clone(),
        })
    };
    Some(match target {
        Target::Webhook { url, secret } => post(url, webhook::body(&message), secret),
        Target::Slack { url } => post(url, slack::body(&message), &None),
        Target::Mattermost { url } => post(url, mattermost::body(&message), &None),
        Target::Teams { url } => post(url, teams::body(&message), &None),
        Target::Mail { to } => Payload::Mail(match &notice.cron_mail {
            Some(cron) => cron::mail(&message, &cron.user, &cron.command, extra.host.as_deref(), to)?,
            None => mail::mail(&message, to),
        }),
        Target::Command { command, timeout } => Payload::Command(Command {
            command: command.clone(),
            timeout: *timeout,
            environment: command::environment(&message),
            stdin: webhook::body(&message).to_string(),
        }),
    })
}

/// The call of a heartbeat monitor at the end of a run: the output is its body.
pub fn render_ping(call: &PingCall, output_tail: Option<&str>) -> Post {
    let output = clean(output_tail.unwrap_or_default());
    Post {
        url: call.url.clone(),
        content_type: "text/plain; charset=utf-8",
        body: webhook::last_bytes(&output, Ping::MOST_OUTPUT).to_owned(),
        secret: None,
    }
}

/// The call of a heartbeat monitor at the start of a run. It has no body.
pub fn render_start(url: &str) -> Post {
    Post { url: url.to_owned(), content_type: "text/plain; charset=utf-8", body: String::new(), secret: None }
}

impl fmt::Debug for Post {
    /// Without what only the receiver may see.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post").field("body", &self.body).finish_non_exhaustive()
    }
}
