//! A mail as it goes over the wire.

use std::time::{Duration, SystemTime};

use carillon_domain::time::Timestamp;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue, Headers};
use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::{Address, Message};
use sha2::{Digest, Sha256};

use crate::render::{Mail, one_line};

/// The longest value of a header, in characters.
const HEADER: usize = 900;

/// A mail and the addresses to which it goes.
pub(super) struct Envelope {
    pub from: Address,
    pub to: Vec<Address>,
    /// RFC 5322, with its dots not yet stuffed.
    pub bytes: Vec<u8>,
}

/// Whether a text can be the sender.
///
/// # Errors
/// A sentence that names the key of the configuration.
pub(crate) fn check_sender(from: &str) -> Result<(), String> {
    sender(from).map(drop)
}

/// The mail as bytes. The same mail at the same time has the same bytes.
///
/// # Errors
/// A sentence about an address that is none.
pub(super) fn envelope(mail: &Mail, from: &str, at: Timestamp) -> Result<Envelope, String> {
    let from = sender(from)?.email;
    let to = receivers(&mail.to, from.domain())?;
    let id = |kind: &str, text: &str| format!("<{kind}-{}@{}>", digest(text), from.domain());
    let mut message = Message::builder()
        .from(Mailbox::new(Some(one_line(&mail.sender, HEADER)), from.clone()))
        .subject(one_line(&mail.subject, HEADER))
        .date(SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.as_ms()).unwrap_or(0)))
        .message_id(Some(id("alert", &mail.id)))
        .header(AutoSubmitted);
    for address in &to {
        message = message.to(Mailbox::new(None, address.clone()));
    }
    if let Some(thread) = &mail.thread {
        // The first mail of a thread is never sent: mails that refer to the same one stand together all the same.
        let thread = id("thread", thread);
        message = message.in_reply_to(thread.clone()).references(thread);
    }
    let plain = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(mail.body.text.clone());
    let built = match &mail.body.html {
        None => message.singlepart(plain),
        Some(html) => message.multipart(
            MultiPart::alternative()
                .boundary(format!("carillon-{}", digest(&mail.id)))
                .singlepart(plain)
                .singlepart(SinglePart::builder().header(ContentType::TEXT_HTML).body(html.clone())),
        ),
    };
    let mut built = built.map_err(|error| format!("the mail cannot be written: {error}"))?;
    for (name, value) in &mail.headers {
        insert(built.headers_mut(), name, value);
    }
    Ok(Envelope { from, to, bytes: built.formatted() })
}

fn sender(from: &str) -> Result<Mailbox, String> {
    from.parse().map_err(|_| {
        format!(
            "mail.from = {:?} is not a sender: write carillon@example.org, or Carillon <carillon@example.org>",
            one_line(from, 80)
        )
    })
}

/// A user without a domain is one at the sender's, as a mail server completes cron's.
fn receivers(to: &[String], domain: &str) -> Result<Vec<Address>, String> {
    to.iter()
        .map(|text| {
            let text = text.trim();
            let whole = if text.contains('@') { text.to_owned() } else { format!("{text}@{domain}") };
            whole.parse().map_err(|_| format!("{:?} is not a mail address; change it in the route", one_line(text, 80)))
        })
        .collect()
}

/// Adds a header. Line ends in it are blanks, so it stays one header.
fn insert(headers: &mut Headers, name: &str, value: &str) {
    if let Ok(name) = HeaderName::new_from_ascii(name.to_owned()) {
        headers.insert_raw(HeaderValue::new(name, one_line(value, HEADER)));
    }
}

/// 24 hexadecimal digits that stand for a text of any length, in which any character may be.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

/// RFC 3834: no vacation notice answers such a mail.
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::MailBody;

    const AT: Timestamp = Timestamp::from_secs(1_795_485_607);
    const FROM: &str = "Somebody <carillon@example.org>";

    fn mail(text: &str) -> Mail {
        Mail {
            to: vec!["ops@example.org".into(), "root".into()],
            sender: "Carillon".into(),
            subject: text.to_owned(),
            id: text.to_owned(),
            thread: Some(text.to_owned()),
            headers: vec![("X-Route".into(), text.to_owned()), (text.to_owned(), "value".into())],
            body: MailBody { text: text.to_owned(), html: Some(text.to_owned()) },
        }
    }

    #[test]
    fn a_mail_has_one_id_whenever_it_is_sent_and_the_sender_of_the_configuration() {
        let sent = |mail: &Mail, at| String::from_utf8(envelope(mail, FROM, at).unwrap().bytes).unwrap();
        let line =
            |text: &str, name: &str| text.lines().find(|line| line.starts_with(name)).map(str::to_owned).unwrap();
        let (first, second) = (sent(&mail("one"), AT), sent(&mail("one"), AT + Duration::from_secs(60)));
        assert_eq!(line(&first, "Message-ID"), line(&second, "Message-ID"));
        assert_ne!(line(&first, "Date"), line(&second, "Date"));
        assert_ne!(line(&first, "Message-ID"), line(&sent(&mail("two"), AT), "Message-ID"));
        assert_eq!(line(&first, "References: "), line(&first, "In-Reply-To: ").replace("In-Reply-To", "References"));
        assert_eq!(line(&first, "From: "), "From: Carillon <carillon@example.org>");
        assert_eq!(line(&first, "To: "), "To: ops@example.org, root@example.org");
        assert_eq!(line(&first, "Auto-Submitted: "), "Auto-Submitted: auto-generated");
    }

    #[test]
    fn no_text_adds_a_header() {
        for evil in
            ["a\r\nBcc: eve@example.org", "a\nBcc: eve@example.org\n\nbody", "a\rBcc: eve@example.org", "ä\r\nBcc: x"]
        {
            let envelope = envelope(&Mail { sender: evil.into(), ..mail(evil) }, FROM, AT).unwrap();
            let text = String::from_utf8(envelope.bytes).unwrap();
            let (headers, _) = text.split_once("\r\n\r\n").unwrap();
            let begins = |line: &str| line.to_ascii_lowercase().starts_with("bcc");
            assert!(!headers.split(['\r', '\n']).any(begins), "{headers}");
        }
    }
}
