//! A server of a few lines, which says what a test wants and remembers what it was asked; and calls of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use carillon_http::Http;
use carillon_plugin::testing::Trial;
use serde_json::{Value, json};

/// Listens until the test process ends.
pub struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Each request, head and body, is given to `answer` with the connection, which is closed afterwards.
    pub fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, answer) = (Arc::clone(&asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (heard, answer) = (Arc::clone(&heard), Arc::clone(&answer));
                thread::spawn(move || {
                    let mut stream = stream;
                    let request = read_request(&mut stream);
                    heard.lock().unwrap().push(request.clone());
                    answer(&request, &mut stream);
                    let _ = stream.shutdown(Shutdown::Write);
                });
            }
        });
        Self { port, asked }
    }

    /// One that answers every request with these bytes.
    pub fn saying(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_, stream| drop(stream.write_all(&bytes)))
    }

    /// One that answers every request with this status and body.
    pub fn answering(status: &str, body: &str) -> Self {
        Self::saying(response(status, "", body))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// A response with further header lines, each ending in a line break.
pub fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// The head, with names in small letters, and as much of a body as it announces.
pub fn read_request(stream: &mut impl Read) -> String {
    let mut stream = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        let (name, rest) = line.split_at(line.find(':').filter(|_| !request.is_empty()).unwrap_or(0));
        request.push_str(&format!("{}{}", name.to_lowercase(), rest.replace("\r\n", "\n")));
        if name.eq_ignore_ascii_case("content-length") {
            length = rest[1..].trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    format!("{request}\n{}", String::from_utf8(body).unwrap())
}

/// Runs a job with these params on `trial`: `Ok`, or why it failed. The params must fit the schema.
pub fn run_on(trial: &Trial, params: Value) -> Result<(), String> {
    crate::schema::check(&params).unwrap_or_else(|faults| panic!("{params}: {faults:?}"));
    trial.run(&Http, &params.to_string()).map_err(|failure| failure.message().to_owned())
}

/// As [`run_on`], on a trial of its own and with leave to call this machine; with the run's output.
pub fn run(mut params: Value) -> (Result<(), String>, String) {
    params["allow_private"] = json!(true);
    let trial = Trial::new();
    let outcome = run_on(&trial, params);
    (outcome, trial.output())
}

/// The reason of a run that must fail.
pub fn reason(params: Value) -> String {
    run(params).0.expect_err("the run succeeded")
}
