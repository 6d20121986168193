//! A client of the API that costs next to nothing: one connection that is kept, no parsing of what comes back.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use carillon_tests::server::Server;

/// The answer of a node.
struct Answer {
    status: u16,
    cookie: Option<String>,
    body: Vec<u8>,
}

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

    /// Connects to a node as a browser in which its admin has signed in.
    ///
    /// # Panics
    /// Where the node does not answer, or does not let the admin in.
    pub fn signed_in(node: &Server) -> Self {
        let mut caller = Self::of(node);
        let (address, body) = (node.url().trim_start_matches("http://"), format!("token={}", node.token()));
        let head = format!(
            "POST /sign-in HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}",
            body.len()
        );
        let Answer { status, cookie, .. } = caller.exchange(&head, &body);
        let cookie = cookie.unwrap_or_else(|| panic!("the form answers {status} without a cookie"));
        caller.headers = format!("Host: {address}\r\nCookie: {cookie}\r\nAccept: text/html\r\nContent-Length: ");
        caller
    }

    /// One call; the status and the body.
    ///
    /// # Panics
    /// Where the node goes away, or speaks anything but HTTP/1.1 with a length.
    pub fn call(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let head = format!("{method} {path} HTTP/1.1\r\n{}{}", self.headers, body.len());
        let answer = self.exchange(&head, body);
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    }

    /// A page as text.
    ///
    /// # Panics
    /// As [`Self::call`], and where there is no such page.
    pub fn page(&mut self, path: &str) -> String {
        let (status, page) = self.call("GET", path, "");
        assert_eq!(status, 200, "GET {path}: {page:.500}");
        page
    }

    /// How many bytes are sent for a page or a part of it, compressed.
    ///
    /// # Panics
    /// As [`Self::page`].
    pub fn bytes(&mut self, path: &str) -> usize {
        let head = format!("GET {path} HTTP/1.1\r\nAccept-Encoding: gzip\r\n{}0", self.headers);
        let answer = self.exchange(&head, "");
        assert_eq!(answer.status, 200, "GET {path}");
        answer.body.len()
    }

    /// Sends a head, which has no end yet, and a body.
    fn exchange(&mut self, head: &str, body: &str) -> Answer {
        let request = format!("{head}\r\n\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes()).expect("the node listens");
        let status = self.line().split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
        let (mut length, mut cookie) = (0, None);
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().expect("a length"),
                "transfer-encoding" => panic!("{head} is answered with{value} coding"),
                "set-cookie" => cookie = value.trim().split(';').next().map(str::to_owned),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("the whole body");
        Answer { status, cookie, body }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("the node answers");
        line.trim_end().to_owned()
    }
}
