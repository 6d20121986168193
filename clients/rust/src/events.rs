//! Server-sent events: they tell what happens in the cluster.

use std::io::{BufRead, BufReader};

use serde_json::Value;
use ureq::http::Response;
use ureq::{Body, BodyReader};

use crate::Error;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its mark: given as `last_event_id`, the next stream goes on behind it.
    pub id: Option<String>,
    /// Such as `run.ended`.
    pub kind: String,
    /// The facts that are told of it.
    pub data: Value,
}

/// Events as they come. A stream that breaks off ends with an error; read on from the last `id`.
pub struct Events {
    lines: BufReader<BodyReader<'static>>,
    /// The mark that events without one of their own have.
    id: Option<String>,
}

impl Events {
    pub(crate) fn of(response: Response<Body>) -> Self {
        let reader = response.into_body().into_with_config().limit(u64::MAX).reader();
        Self { lines: BufReader::new(reader), id: None }
    }

    /// The next event; `None` where the stream ends.
    fn read(&mut self) -> Result<Option<Event>, Error> {
        let (mut kind, mut data) = (String::new(), String::new());
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).map_err(|error| Error::Unreadable(error.to_string()))?;
            if read == 0 {
                return Ok(None);
            }
            let line = line.trim_end_matches(['\n', '\r']);
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                // A blank line ends an event; one without data is none.
                "" if line.is_empty() && !data.is_empty() => {
                    let data = serde_json::from_str(&data).map_err(|error| Error::Unreadable(error.to_string()))?;
                    return Ok(Some(Event { id: self.id.clone(), kind, data }));
                }
                "" if line.is_empty() => kind.clear(),
                "id" => self.id = Some(value.to_owned()),
                "event" => kind = value.to_owned(),
                "data" => {
                    if !data.is_empty() {
                        data.push('\n');
                    }
                    data.push_str(value);
                }
                // Comments keep the connection alive.
                _ => {}
            }
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
