//! The way to a server: its address, its token, the limits of time, and when a call is sent again.

use std::time::Duration;
use std::{env, fs, io, thread};

use serde::de::DeserializeOwned;
use ureq::http::{Request, Response};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

use crate::call::Call;
use crate::{Error, Events, Output};

/// Where `carillon serve` listens unless it is told otherwise.
const DEFAULT_SERVER: &str = "http://127.0.0.1:7650";
/// Where `carillon serve` writes the token that it makes.
const TOKEN_FILE: &str = "carillon.token";
/// The longest answer that is read as a whole, in bytes.
const MOST_ANSWER: u64 = 256 * 1024 * 1024;
/// The longest pause before a call is sent again, whatever the server asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How a client behaves. `Settings::default()` suits most.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a connection may take to come about.
    pub connect_within: Duration,
    /// How long an answer may take to begin.
    pub answer_within: Duration,
    /// How often a call is sent again that failed. Only one that may be repeated is: one that reads, one that was never sent, and one that
    /// the server says it did not apply.
    pub retries: u32,
    /// The pause before the first repetition; each further one is twice as long.
    pub pause: Duration,
    /// Certificates to trust and to show.
    pub tls: TlsConfig,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connect_within: Duration::from_secs(5),
            answer_within: Duration::from_secs(60),
            retries: 2,
            pause: Duration::from_millis(200),
            tls: TlsConfig::default(),
        }
    }
}

/// A server, and what to tell it. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    agent: Agent,
    base: String,
    authorization: Option<String>,
    retries: u32,
    pause: Duration,
}

impl Client {
    /// A client of the server at this address, such as `http://127.0.0.1:7650`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Settings`] if it is no address, or no token.
    pub fn new(server: &str, token: Option<&str>) -> Result<Self, Error> {
        Self::with(server, token, Settings::default())
    }

    /// As [`Client::new`], with other settings.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with(server: &str, token: Option<&str>, settings: Settings) -> Result<Self, Error> {
        let base = server.trim_end_matches('/');
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(Error::Settings(format!(
                "{server:?} is no address: write http://HOST:PORT or https://HOST:PORT"
            )));
        }
        let authorization = match token.map(str::trim) {
            Some(token) if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                return Err(Error::Settings("the token is not one word of printable ASCII".into()));
            }
            token => token.map(|token| format!("Bearer {token}")),
        };
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // The API has no redirects, and the token is for this server only.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("carillon-client/", env!("CARGO_PKG_VERSION"), " (Rust)"))
            .timeout_connect(Some(settings.connect_within))
            .timeout_send_body(Some(settings.answer_within))
            .timeout_recv_response(Some(settings.answer_within))
            .tls_config(settings.tls)
            .build()
            .new_agent();
        Ok(Self { agent, base: base.to_owned(), authorization, retries: settings.retries, pause: settings.pause })
    }

    /// A client as the command line makes it. The server is that of `CARILLON_SERVER`, or else the one of this machine. The token is that of
    /// `CARILLON_TOKEN`, or else of `carillon.token` in the working directory.
    ///
    /// # Errors
    /// As [`Client::new`], or the file cannot be read.
    pub fn from_environment() -> Result<Self, Error> {
        let named = |variable: &str| env::var(variable).ok().filter(|text| !text.trim().is_empty());
        let server = named("CARILLON_SERVER").unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let token = match named("CARILLON_TOKEN") {
            Some(token) => Some(token),
            None => match fs::read_to_string(TOKEN_FILE) {
                Ok(token) => Some(token),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(Error::Settings(format!("./{TOKEN_FILE} cannot be read: {error}"))),
            },
        };
        Self::new(&server, token.as_deref())
    }

    pub(crate) fn nothing(&self, call: &Call) -> Result<(), Error> {
        self.whole(call).map(|_| ())
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        serde_json::from_slice(&self.whole(call)?).map_err(|error| Error::Unreadable(error.to_string()))
    }

    pub(crate) fn text(&self, call: &Call) -> Result<String, Error> {
        String::from_utf8(self.whole(call)?).map_err(|error| Error::Unreadable(error.to_string()))
    }

    pub(crate) fn output(&self, call: &Call) -> Result<Output, Error> {
        self.repeating(call, || self.send(call)).map(Output::of)
    }

    pub(crate) fn events(&self, call: &Call) -> Result<Events, Error> {
        self.repeating(call, || self.send(call)).map(Events::of)
    }

    /// The whole body of a good answer.
    fn whole(&self, call: &Call) -> Result<Vec<u8>, Error> {
        self.repeating(call, || {
            let mut response = self.send(call)?;
            let body = response.body_mut().with_config().limit(MOST_ANSWER).read_to_vec();
            body.map_err(|error| Unanswered::of(self.away(call, &error)))
        })
    }

    /// Does it again where that is safe, until it is done or has failed often enough.
    fn repeating<T>(&self, call: &Call, once: impl Fn() -> Result<T, Unanswered>) -> Result<T, Error> {
        let mut pause = self.pause;
        for _ in 0..self.retries {
            match once() {
                Err(Unanswered { error, wait }) if is_worth_another_try(call, &error) => {
                    thread::sleep(wait.unwrap_or(pause).min(LONGEST_PAUSE));
                    pause *= 2;
                }
                done => return done.map_err(|unanswered| unanswered.error),
            }
        }
        once().map_err(|unanswered| unanswered.error)
    }

    /// Sends it once; anything but a good answer is an error.
    fn send(&self, call: &Call) -> Result<Response<Body>, Unanswered> {
        let url = format!("{}{}", self.base, call.target);
        let mut request = Request::builder().method(call.method).uri(&url);
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        if call.method != "GET" {
            request = request.header("Content-Type", "application/json");
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let body = call.body.clone().unwrap_or_default();
        let sent = match call.method {
            "GET" | "DELETE" => request.body(()).map_err(ureq::Error::Http).and_then(|request| self.agent.run(request)),
            _ => request.body(body).map_err(ureq::Error::Http).and_then(|request| self.agent.run(request)),
        };
        let mut response = sent.map_err(|error| Unanswered::of(self.away(call, &error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let wait = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MOST_ANSWER).read_to_vec().unwrap_or_default();
        Err(Unanswered { error: Error::of(&url, status, &body), wait: wait.map(Duration::from_secs) })
    }

    fn away(&self, call: &Call, error: &ureq::Error) -> Error {
        let never_sent = match error {
            ureq::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
            ureq::Error::HostNotFound | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
            _ => false,
        };
        Error::Away { url: format!("{}{}", self.base, call.target), reason: error.to_string(), sent: !never_sent }
    }
}

/// A call that failed, and how long the server asks to wait.
struct Unanswered {
    error: Error,
    wait: Option<Duration>,
}

impl Unanswered {
    fn of(error: Error) -> Self {
        Self { error, wait: None }
    }
}

/// Whether it may be sent again, and whether that may help.
fn is_worth_another_try(call: &Call, error: &Error) -> bool {
    match error {
        Error::Away { sent, .. } => !sent || call.may_be_repeated(),
        Error::Refused(problem) => match problem.status {
            429 => true,
            503 => {
                call.may_be_repeated() || problem.outcome.as_ref().is_some_and(|told| told.as_str() == "not_applied")
            }
            _ => false,
        },
        Error::Strange { status, .. } => call.may_be_repeated() && matches!(status, 502..=504),
        _ => false,
    }
}
