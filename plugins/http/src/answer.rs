//! The part of the answer that a run shows, and whether it is a success.

use std::io::{self, Write};

use ureq::http::StatusCode;

use crate::call::{Head, MAX_READ_BYTES};
use crate::params::Params;
use crate::printable::Printable;

/// The headers that are shown; others are of no use to people, or hold cookies.
const SHOWN: [&str; 7] =
    ["content-type", "content-length", "content-encoding", "date", "location", "retry-after", "www-authenticate"];

/// An answer while it arrives.
pub(crate) struct HttpAnswer {
    status: StatusCode,
    shown: Printable,
    /// The part of the body that is shown, and searched.
    kept: Vec<u8>,
    read_bytes: usize,
}

impl HttpAnswer {
    /// Shows the head.
    pub(crate) fn begin(head: &Head, mut output: impl Write) -> io::Result<Self> {
        let mut text = format!("{} {}\n", head.version, named(head.status));
        for name in SHOWN {
            for value in head.headers.get_all(name) {
                let mut printable = Printable::default();
                text.push_str(&format!("{name}: {}{}\n", printable.push(value.as_bytes()), printable.finish()));
            }
        }
        text.push('\n');
        output.write_all(text.as_bytes())?;
        Ok(Self { status: head.status, shown: Printable::default(), kept: Vec::new(), read_bytes: 0 })
    }

    /// Shows what is kept of a piece of the body.
    pub(crate) fn push(&mut self, piece: &[u8], params: &Params, mut output: impl Write) -> io::Result<()> {
        self.read_bytes += piece.len();
        let kept = &piece[..piece.len().min(params.max_response - self.kept.len())];
        self.kept.extend_from_slice(kept);
        output.write_all(self.shown.push(kept).as_bytes())
    }

    /// Says how much of the body is missing above.
    pub(crate) fn end(&mut self, whole: bool, mut output: impl Write) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.shown).finish();
        let kept = self.kept.len();
        if !whole {
            let read = MAX_READ_BYTES >> 20;
            text.push_str(&format!("\n[the first {kept} bytes of a body that goes on after {read} MiB, unread]\n"));
        } else if kept < self.read_bytes {
            text.push_str(&format!("\n[the first {kept} of {} bytes]\n", self.read_bytes));
        }
        output.write_all(text.as_bytes())
    }

    /// Whether the status is one that the job expects.
    pub(crate) fn check_status(&self, params: &Params) -> Result<(), String> {
        let (status, expected) = (self.status, &params.expect_status);
        if expected.contain(status.as_u16()) {
            return Ok(());
        }
        let hint = if status.is_redirection() && params.follow_redirects == 0 {
            "; redirects are followed only where follow_redirects says so"
        } else {
            ""
        };
        Err(format!("the server answered {}, expected {expected}{hint}", named(status)))
    }

    /// Whether what is kept of the body holds what the job expects.
    pub(crate) fn check_body(&self, params: &Params) -> Result<(), String> {
        let Some(expected) = &params.expect_body else { return Ok(()) };
        if self.kept.windows(expected.len().max(1)).any(|part| part == expected.as_bytes()) {
            return Ok(());
        }
        let status = named(self.status);
        let place = match self.read_bytes - self.kept.len() {
            0 => "in its body".to_owned(),
            _ => format!("in the first {} bytes of its body (max_response)", self.kept.len()),
        };
        Err(format!("the server answered {status}, but {expected:?} does not stand {place}"))
    }
}

/// `503 Service Unavailable`.
pub(crate) fn named(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(name) => format!("{} {name}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}
