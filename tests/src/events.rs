//! Reading server-sent events from outside.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::Value;

use crate::raw_client::{connect, request};
use crate::server::Server;

/// One event. A block without an event's name is told too: it moves the reader's place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// Its type; empty for a block without one.
    pub name: String,
    /// The id that it carries; empty where it carries none.
    pub id: String,
    /// Its data.
    pub data: Value,
}

impl Event {
    /// Its key, by which repeats are told apart.
    pub fn key(&self) -> String {
        self.data["key"].as_str().unwrap_or_default().to_owned()
    }
}

/// A reader of events; a thread of its own takes them in.
pub struct EventReader {
    events: Receiver<Event>,
    /// The last id that came.
    pub last_id: String,
}

impl EventReader {
    /// Connects and waits until the reader has its place. `query` begins with `?` or is empty.
    pub fn connect(server: &Server, query: &str, last_id: Option<&str>) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let agent: ureq::Agent = config.into();
        let mut request = agent
            .get(format!("{}/v1/events{query}", server.url()))
            .header("Authorization", format!("Bearer {}", server.token()));
        if let Some(last_id) = last_id {
            request = request.header("Last-Event-ID", last_id);
        }
        let answer = request.call().expect("the server answers");
        assert_eq!(answer.status(), 200);
        let (send, events) = channel();
        std::thread::spawn(move || {
            let mut event = Event::default();
            for line in BufReader::new(answer.into_body().into_reader()).lines() {
                // The server was killed, perhaps in the middle of a line.
                let Ok(line) = line else { return };
                match line.split_once(": ").unwrap_or_default() {
                    ("event", name) => name.clone_into(&mut event.name),
                    ("id", id) => id.clone_into(&mut event.id),
                    ("data", data) => event.data = serde_json::from_str(data).expect("the data are JSON"),
                    _ if line.is_empty() => {
                        let whole = std::mem::take(&mut event);
                        if whole != Event::default() && send.send(whole).is_err() {
                            return;
                        }
                    }
                    _ => {}
                }
            }
        });
        Self { events, last_id: last_id.unwrap_or_default().to_owned() }
    }

    /// The next event; `None` at the end of the stream, and if nothing comes in time.
    pub fn next(&mut self, within: Duration) -> Option<Event> {
        loop {
            let event = self.events.recv_timeout(within).ok()?;
            if !event.id.is_empty() {
                event.id.clone_into(&mut self.last_id);
            }
            if !event.name.is_empty() {
                return Some(event);
            }
        }
    }
}

/// Many readers at once, as bare sockets that have their place: the head and the first block have come. `query` begins with `?` or is
/// empty.
///
/// # Panics
/// If a stream does not begin.
pub fn hold_readers(server: &Server, query: &str, count: usize) -> Vec<TcpStream> {
    // An ordinary user may have 1,024 files open unless he asks for more.
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit of open files");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("a limit may be raised to the hard one");
    let path = format!("/v1/events{query}");
    let asked = (0..count).map(|_| {
        let mut stream = connect(server);
        stream.write_all(&request(server, "GET", &path, &[], b"")).expect("a request can be sent");
        stream
    });
    let mut readers: Vec<TcpStream> = asked.collect();
    for stream in &mut readers {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.windows(5).any(|end| end == b"\nid: ") {
            stream.read_exact(&mut byte).expect("a stream begins");
            head.push(byte[0]);
        }
    }
    readers
}
