//! A receiver of webhooks that hears everything and checks signatures as a receiver does.
//!
//! `CARILLON_HEARD=FILE` keeps what every receiver of a test run heard, a line of a table for each message.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::server::PATIENCE;

/// The key with which calls are signed.
pub const KEY: &str = "between-us";

/// A call as it came.
#[derive(Debug)]
pub struct Heard {
    /// The path with its query.
    pub path: String,
    /// Its headers, by lower-case name.
    pub headers: BTreeMap<String, String>,
    /// Its body, as text.
    pub body: String,
    /// Its body as it came.
    pub bytes: Vec<u8>,
}

impl Heard {
    /// Reads a call; `None` if the caller goes away in the middle.
    pub fn from(stream: &TcpStream) -> Option<Self> {
        let (mut reader, mut line) = (BufReader::new(stream), String::new());
        reader.read_line(&mut line).ok()?;
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let mut bytes = vec![0; headers.get("content-length").map_or(Some(0), |length| length.parse().ok())?];
        reader.read_exact(&mut bytes).ok()?;
        Some(Self { path, headers, body: String::from_utf8_lossy(&bytes).into_owned(), bytes })
    }

    /// The body, which must be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a webhook is JSON")
    }

    /// Adds a line to a table: which test caused the call, the kind and state of the message or the path of a monitor, and its sentence.
    fn keep(&self, file: &Path) {
        let message: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        let (when, sentence) = match message["when"].as_str() {
            Some(when) => (format!("{when} {}", text("state")), text("sentence")),
            None => (format!("ping {}", self.path), self.body.escape_debug().to_string()),
        };
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let line = format!("| {when} | {test} | {sentence} |\n");
        let table = std::fs::OpenOptions::new().append(true).create(true).open(file);
        // One write, so lines of several tests do not mix.
        table.and_then(|mut table| table.write_all(line.as_bytes())).expect("the table of what was heard");
    }

    /// Checks the signature as a receiver does: the HMAC of RFC 2104, written out.
    pub fn is_signed(&self) -> bool {
        let header = &self.headers["carillon-signature"];
        let (time, rest) = header.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")).expect("t=..,v1=..");
        let mut key = [0_u8; 64];
        key[..KEY.len()].copy_from_slice(KEY.as_bytes());
        let pad = |with: u8| key.map(|byte| byte ^ with);
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(format!("{time}.{}", self.body)).finalize();
        let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
        let expected: String = outer.iter().map(|byte| format!("{byte:02x}")).collect();
        time.parse::<u64>().is_ok() && rest == expected
    }
}

/// A server that takes everything.
#[derive(Debug)]
pub struct Ear {
    /// Its address, without a path.
    pub url: String,
    heard: Receiver<Heard>,
}

impl Ear {
    /// One on a free port.
    pub fn open() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    /// One on a port of one's choice.
    pub fn on(listener: TcpListener) -> Self {
        Self::answering(listener, 0)
    }

    /// One that hears its first call and never answers it.
    pub fn that_answers_later() -> Self {
        Self::answering(TcpListener::bind("127.0.0.1:0").expect("a free port"), 1)
    }

    fn answering(listener: TcpListener, unanswered: usize) -> Self {
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for (n, stream) in listener.incoming().flatten().enumerate() {
                let (tell, answers) = (tell.clone(), n >= unanswered);
                if !answers {
                    held.push(stream.try_clone());
                }
                std::thread::spawn(move || {
                    let call = Heard::from(&stream)?;
                    if answers {
                        let mut stream = stream;
                        stream
                            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
                            .ok()?;
                    }
                    tell.send(call).ok()
                });
            }
        });
        Self { url, heard }
    }

    /// The next call.
    #[track_caller]
    pub fn next(&self) -> Heard {
        self.next_within(PATIENCE)
    }

    /// The next call, which must come in time.
    #[track_caller]
    pub fn next_within(&self, patience: Duration) -> Heard {
        let heard = self.heard.recv_timeout(patience).expect("a call comes in time");
        if let Some(file) = std::env::var_os("CARILLON_HEARD") {
            heard.keep(Path::new(&file));
        }
        heard
    }

    /// Whether nothing more has come so far.
    pub fn is_silent(&self) -> bool {
        self.heard.try_recv().is_err()
    }
}
