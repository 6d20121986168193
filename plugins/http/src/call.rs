//! One call, redirects and all, on a thread of its own.
//!
//! The thread owns all that it needs and borrows nothing of the run, which may be over before a name is resolved. It reports each step,
//! and ends when nobody listens any more or when the client's time is over.

use std::io::Read;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use ureq::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};

use crate::params::Params;
use crate::resolver::Checked;
use crate::target::Target;
use crate::{sentence, trust};

/// How much of a body is read, in bytes, so that a server that writes for ever is not listened to for ever.
pub(crate) const MAX_READ_BYTES: u64 = 16 << 20;
const PIECE_BYTES: usize = 16 << 10;

/// The steps of a call, in this order: hops, a head, pieces, an end. Nothing follows an end.
pub(crate) enum Seen {
    /// A redirect that is followed, with where it leads to.
    Hop(StatusCode, String),
    Head(Head),
    /// The next bytes of the body; an empty piece is the end of it.
    Piece(Vec<u8>),
    /// The body goes on, and is not read further.
    TooLong,
    /// A sentence.
    Failed(String),
}

/// The answer, without its body.
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) version: String,
    pub(crate) headers: HeaderMap,
}

/// A call that may be made.
pub(crate) struct Call {
    pub(crate) target: Target,
    pub(crate) method: Method,
    /// The headers of the job, meant for the server that it names and for no other.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// The headers for every server on the way.
    pub(crate) of_run: HeaderMap,
    pub(crate) follow_redirects: u32,
    pub(crate) timeout: Duration,
}

/// A client for one call, which [`Agent::shutdown`] ends from any thread. Reads `ca_file`.
pub(crate) fn agent(tls: bool, params: &Params) -> Result<Agent, String> {
    let config = Agent::config_builder()
        .timeout_global(Some(params.timeout))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        // A proxy would be asked for the name, and what it makes of it cannot be checked.
        .proxy(None)
        .accept_encoding("identity");
    let config = if tls { config.tls_config(trust::config(params.ca_file.as_deref())?) } else { config };
    Ok(Agent::with_parts(config.build(), DefaultConnector::default(), Checked { allow_private: params.allow_private }))
}

impl Call {
    /// Calls, and tells what is seen.
    pub(crate) fn perform(mut self, agent: &Agent, seen: &SyncSender<Seen>) {
        let told = match self.follow(agent, seen) {
            Ok(response) => read(response, &self.target, self.timeout, seen),
            Err(sentence) => Seen::Failed(sentence),
        };
        // The receiver may be gone.
        let _ = seen.send(told);
    }

    /// Up to the answer that leads nowhere else.
    fn follow(&mut self, agent: &Agent, seen: &SyncSender<Seen>) -> Result<Response<Body>, String> {
        let mut hops = 0;
        loop {
            let response = self.ask(agent)?;
            let location = response.headers().get(header::LOCATION);
            let (true, Some(location)) = (self.follow_redirects > 0 && redirects(response.status()), location) else {
                return Ok(response);
            };
            let location = location.to_str().map_err(|_| "the server redirected to what is not text".to_owned())?;
            if hops == self.follow_redirects {
                return Err(format!("the server redirected more than {hops} times"));
            }
            hops += 1;
            let status = response.status();
            let next = self.target.join(location).map_err(|fault| format!("a redirect cannot be followed: {fault}"))?;
            self.turn(status, next)?;
            if seen.send(Seen::Hop(status, self.target.to_string())).is_err() {
                return Err("nobody waits for the answer any more".to_owned());
            }
        }
    }

    fn ask(&self, agent: &Agent) -> Result<Response<Body>, String> {
        let mut request = Request::builder().method(&self.method).uri(self.target.uri());
        if let Some(headers) = request.headers_mut() {
            headers.extend(self.of_run.clone());
            // After the facts, so that the job may have its own Idempotency-Key and User-Agent.
            self.headers.iter().for_each(|(name, value)| drop(headers.insert(name, value.clone())));
        }
        let unfit = |error| format!("the request cannot be made: {error}");
        let answer = match &self.body {
            Some(body) => agent.run(request.body(body.as_slice()).map_err(unfit)?),
            None => agent.run(request.body(()).map_err(unfit)?),
        };
        answer.map_err(|error| sentence::of(&error, &self.target, self.timeout))
    }

    /// Goes on to `next`, with the method that RFC 9110 and every browser make of it. What the job gave stays with the
    /// server that it was given for.
    fn turn(&mut self, status: StatusCode, next: Target) -> Result<(), String> {
        let to_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if to_get {
            (self.method, self.body) = (Method::GET, None);
            self.headers.remove(header::CONTENT_TYPE);
        }
        if self.target.is_tls() && !next.is_tls() {
            return Err(format!("the server redirected from https to http ({next}), which is not followed"));
        }
        if !self.target.same_origin(&next) {
            if self.body.is_some() {
                return Err(format!("the server redirected the body to {next}, which the job did not name"));
            }
            self.headers.clear();
        }
        self.target = next;
        Ok(())
    }
}

fn redirects(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Tells the head and the body; answers what comes last.
fn read(response: Response<Body>, target: &Target, timeout: Duration, seen: &SyncSender<Seen>) -> Seen {
    let (parts, body) = response.into_parts();
    let head = Head { status: parts.status, version: format!("{:?}", parts.version), headers: parts.headers };
    let mut listening = seen.send(Seen::Head(head)).is_ok();
    let mut reader = body.into_reader();
    let (mut piece, mut left) = (vec![0; PIECE_BYTES], MAX_READ_BYTES);
    while listening && left > 0 {
        match reader.read(&mut piece) {
            Ok(0) => return Seen::Piece(Vec::new()),
            Ok(length) => {
                left = left.saturating_sub(length as u64);
                listening = seen.send(Seen::Piece(piece[..length].to_vec())).is_ok();
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Seen::Failed(sentence::of(&error.into(), target, timeout)),
        }
    }
    Seen::TooLong
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::sync_channel;

    use ureq::config::Config;
    use ureq::http::Uri;
    use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
    use ureq::unversioned::transport::NextTimeout;

    use super::*;

    /// Takes the name `outside` for a server of the internet, which no test can call, and checks all others.
    #[derive(Debug)]
    struct OneIsOutside;

    impl Resolver for OneIsOutside {
        fn resolve(
            &self,
            uri: &Uri,
            config: &Config,
            timeout: NextTimeout,
        ) -> Result<ResolvedSocketAddrs, ureq::Error> {
            if uri.host() != Some("outside") {
                return Checked { allow_private: false }.resolve(uri, config, timeout);
            }
            let mut addresses = self.empty();
            addresses.push(([127, 0, 0, 1], uri.port_u16().unwrap()).into());
            Ok(addresses)
        }
    }

    #[test]
    fn a_redirect_to_a_private_address_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                lines.take_while(|line| !line.is_empty()).for_each(drop);
                let to = format!("HTTP/1.1 302 x\r\nLocation: http://localhost:{port}/metadata\r\n\r\n");
                let _ = stream.write_all(to.as_bytes());
            }
        });
        let params = serde_json::json!({"url": format!("http://outside:{port}/"), "follow_redirects": 2});
        let params: Params = serde_json::from_value(params).unwrap();
        let config = agent(false, &params).unwrap().config().clone();
        let agent = Agent::with_parts(config, DefaultConnector::default(), OneIsOutside);
        let call = Call {
            target: Target::parse(params.url.as_str()).unwrap(),
            method: Method::GET,
            headers: HeaderMap::new(),
            body: None,
            of_run: HeaderMap::new(),
            follow_redirects: params.follow_redirects,
            timeout: params.timeout,
        };
        let (tell, seen) = sync_channel(8);
        call.perform(&agent, &tell);
        assert!(matches!(seen.recv(), Ok(Seen::Hop(StatusCode::FOUND, _))));
        let Ok(Seen::Failed(sentence)) = seen.recv() else { panic!("the redirect was followed") };
        let expected = format!("localhost:{port} is not called: ");
        assert!(sentence.starts_with(&expected) && sentence.contains(" is a loopback address"), "{sentence}");
    }
}
