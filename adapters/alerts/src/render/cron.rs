//! The mail that cron sends about a command's output, as its users know it.
//!
//! The subject, `Auto-Submitted` and the silence about a command without output are those of Debian's and Vixie's cron.

use super::message::Message;
use super::plain::{clean, one_line};
use super::{Mail, MailBody};

/// The longest subject, in characters: filters look for its beginning.
const SUBJECT: usize = 400;

/// `None` if the run wrote nothing: cron sends no mail then.
///
/// `host` is the name of the node on which the run ran.
pub(super) fn mail(message: &Message, user: &str, command: &str, host: Option<&str>, to: &[String]) -> Option<Mail> {
    let output = clean(message.output.as_deref().unwrap_or_default());
    if output.is_empty() {
        return None;
    }
    let host = host.unwrap_or("carillon");
    // cron takes the first line of a command: what follows a `%` is its input.
    let subject = one_line(&format!("Cron <{user}@{host}> {command}"), SUBJECT);
    Some(Mail {
        to: to.to_vec(),
        sender: "Cron Daemon".to_owned(),
        subject,
        id: message.id.clone(),
        thread: None,
        headers: vec![("X-Cron-Env".to_owned(), one_line(&format!("<LOGNAME={user}>"), SUBJECT))],
        body: MailBody { text: output, html: None },
    })
}
