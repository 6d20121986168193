//! HTTP as strangers speak it: bytes over a socket, whatever they mean.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::server::{PATIENCE, Server};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status; 0 when the connection ended without an answer.
    pub status: u16,
    /// Everything that came, head and body.
    pub text: String,
}

/// A connection to a server.
pub fn connect(server: &Server) -> TcpStream {
    let address = server.url().trim_start_matches("http://");
    let stream = TcpStream::connect(address).expect("the server accepts connections");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

/// Sends bytes and reads the answer until the server closes. A server that closes before it has read all is no fault.
pub fn exchange(server: &Server, bytes: &[u8]) -> Reply {
    let mut stream = connect(server);
    let _ = stream.write_all(bytes);
    read_reply(&mut stream)
}

/// Reads until the server closes or says no more.
pub fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut text = Vec::new();
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        text.extend_from_slice(&buffer[..length]);
        // The rest on a connection that is kept comes at once or never.
        stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout can be set");
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok()).unwrap_or(0);
    Reply { status, text }
}

/// A request with the server's own token, as bytes.
pub fn request(server: &Server, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    let preset = [("Host", "localhost"), ("Content-Type", "application/json")];
    let bearer = format!("Bearer {}", server.token());
    let length = body.len().to_string();
    let own = [("Authorization", bearer.as_str()), ("Content-Length", length.as_str())];
    let given = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let kept = preset.into_iter().chain(own).filter(|(name, _)| !given(name));
    // An empty value leaves a header out.
    for (name, value) in kept.chain(headers.iter().copied()).filter(|(_, value)| !value.is_empty()) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}
