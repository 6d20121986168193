//! A client of the API that costs next to nothing: one connection that is kept, no parsing of what comes back.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use carillon_tests::server::Server;

/// One connection to a node.
pub struct Caller {
    stream: BufReader<TcpStream>,
    headers: String,
}

impl Caller {
    /// Connects to a node, as its admin.
    ///
    /// # Panics
    /// Where the node does not answer.
    pub fn of(node: &Server) -> Self {
        let address = node.url().trim_start_matches("http://");
        let stream = TcpStream::connect(address).expect("the node listens");
        stream.set_nodelay(true).expect("a socket");
        let token = node.token();
        let headers = format!(
            "Host: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: "
        );
        Self { stream: BufReader::with_capacity(1 << 16, stream), headers }
    }

    /// One call; the status and the body.
    ///
    /// # Panics
    /// Where the node goes away, or speaks anything but HTTP/1.1 with a length.
    pub fn call(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let request = format!("{method} {path} HTTP/1.1\r\n{}{}\r\n\r\n{body}", self.headers, body.len());
        self.stream.get_mut().write_all(request.as_bytes()).expect("the node listens");
        let status = self.line().split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
        let mut length = 0;
        loop {
            let line = self.line().to_ascii_lowercase();
            match line.split_once(':') {
                None => break,
                Some(("content-length", value)) => length = value.trim().parse().expect("a length"),
                Some(("transfer-encoding", how)) => panic!("{path} is answered with{how} coding"),
                Some(_) => {}
            }
        }
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("the whole body");
        (status, String::from_utf8_lossy(&bytes).into_owned())
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the node answers");
        line.trim_end().to_owned()
    }
}
