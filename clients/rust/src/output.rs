//! The output of a run, as it comes.

use std::io::{self, Read};

use ureq::http::Response;
use ureq::{Body, BodyReader};

/// The output of a run. With `follow` it ends when the run does.
pub struct Output {
    reader: BodyReader<'static>,
    truncated: bool,
}

impl Output {
    pub(crate) fn of(response: Response<Body>) -> Self {
        let truncated = response.headers().get("carillon-output-truncated").is_some_and(|told| told == "true");
        // A bound of its own would cut a run that prints for days.
        Self { reader: response.into_body().into_with_config().limit(u64::MAX).reader(), truncated }
    }

    /// Whether the server kept only the beginning and the end.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}
