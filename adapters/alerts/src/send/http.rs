//! A POST over HTTP/1.1, on a connection of its own.
//!
//! The name is looked up once, each of its addresses is checked, and the connection goes to a checked one. A second
//! look-up could answer another address than the one that was checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use carillon_domain::time::Timestamp;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Url};

use super::Resolve;
use super::address::Policy;
use super::signature::{SIGNATURE_HEADER, signature};
use super::words::{Reply, answer, origin};
use crate::render::Post;
use crate::{AlertsConfig, Outcome};

/// The most bytes of an answer's body that are read.
const MOST_READ: usize = 4_096;
/// The most addresses of a name that are tried. All are checked.
const MOST_TRIED: usize = 8;

pub(super) struct HttpClient {
    policy: Policy,
    resolve: Resolve,
    tls: TlsConnector,
    connect_timeout: Duration,
    timeout: Duration,
}

/// A connection: bytes, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl HttpClient {
    pub fn new(config: &AlertsConfig, tls: Arc<ClientConfig>, resolve: Resolve) -> Self {
        Self {
            policy: config.policy(),
            resolve,
            tls: tls.into(),
            connect_timeout: config.connect_timeout,
            timeout: config.timeout,
        }
    }

    pub async fn post(&self, post: &Post, now: Timestamp) -> Outcome {
        let started = Instant::now();
        let Ok(url) = Url::parse(&post.url) else {
            return Outcome::for_good("The receiver's address is not a URL; give one that begins with https://.");
        };
        let request = match request(&url, post, now) {
            Ok(request) => request,
            Err(words) => return Outcome::for_good(words),
        };
        let connected = timeout_at(started + self.connect_timeout, self.connect(&url)).await;
        let stream = match connected {
            Ok(Ok(stream)) => stream,
            Ok(Err(refusal)) => return refusal,
            Err(_) => {
                let (origin, within) = (origin(&url), self.connect_timeout.as_secs_f32());
                return Outcome::unreached(format!(
                    "{origin} could not be reached within {within} s. See whether it is up and lets this node in."
                ));
            }
        };
        match timeout_at(started + self.timeout, exchange(stream, request)).await {
            Ok(Ok(response)) => read(&url, response, started + self.timeout, now).await,
            Ok(Err(error)) => Outcome::unknown(format!(
                "{} closed the connection without an answer ({error}); it may have the message. It is tried again.",
                origin(&url)
            )),
            Err(_) => Outcome::unknown(format!(
                "{} gave no answer within {} s; it may have the message. It is tried again.",
                origin(&url),
                self.timeout.as_secs_f32()
            )),
        }
    }

    async fn connect(&self, url: &Url) -> Result<Box<dyn Stream>, Outcome> {
        let origin = origin(url);
        let encrypted = url.scheme() == "https";
        let addresses = self.addresses(url).await?;
        let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        self.policy.check(encrypted, &ips).map_err(|words| Outcome::for_good(format!("{origin} {words}.")))?;
        // Each address gets its share of the time, so that one that swallows packets leaves some for the next.
        let share = self.connect_timeout / u32::try_from(addresses.len().clamp(1, MOST_TRIED)).unwrap_or(1);
        let mut failed = String::new();
        for address in addresses.into_iter().take(MOST_TRIED) {
            match timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) if encrypted => return self.encrypt(url, stream).await,
                Ok(Ok(stream)) => return Ok(Box::new(stream)),
                Ok(Err(error)) => failed = format!("{address}: {error}"),
                Err(_) => failed = format!("{address} does not answer"),
            }
        }
        Err(Outcome::unreached(format!(
            "{origin} could not be reached ({failed}). See whether it is up and lets this node in."
        )))
    }

    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, Outcome> {
        let port = url.port_or_known_default().unwrap_or(443);
        let name = match url.host() {
            Some(Host::Ipv4(address)) => return Ok(vec![(address, port).into()]),
            Some(Host::Ipv6(address)) => return Ok(vec![(address, port).into()]),
            Some(Host::Domain(name)) => name,
            None => return Err(Outcome::for_good("The receiver's address has no host.")),
        };
        match (self.resolve)(name.to_owned(), port).await {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            Ok(_) => Err(Outcome::for_now(format!("The name {name} has no address. See whether it is spelled right."))),
            Err(error) => Err(Outcome::for_now(format!(
                "The name {name} cannot be looked up ({error}). See whether it is spelled right, and whether this node's \
                 name server works."
            ))),
        }
    }

    async fn encrypt(&self, url: &Url, stream: TcpStream) -> Result<Box<dyn Stream>, Outcome> {
        let origin = origin(url);
        let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host)
            .map_err(|_| Outcome::for_good(format!("{origin} has a host that no certificate can have.")))?;
        match self.tls.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(Outcome::for_now(format!(
                "{origin} could not be reached over TLS ({error}). See whether its certificate is valid for this name, and \
                 issued by an authority that this node trusts (alerts.ca_file)."
            ))),
        }
    }
}

fn request(url: &Url, post: &Post, now: Timestamp) -> Result<Request<Full<Bytes>>, String> {
    if !matches!(url.scheme(), "https" | "http") {
        return Err(format!(
            "{:?} is no way to send a message; give an address that begins with https://.",
            url.scheme()
        ));
    }
    let host = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let mut request = Request::post(target)
        .header(HOST, host)
        .header(USER_AGENT, concat!("Carillon/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_TYPE, post.content_type)
        .header(CONNECTION, "close");
    if let Some(secret) = &post.secret {
        request = request.header(SIGNATURE_HEADER, signature(secret, now, &post.body));
    }
    if !url.username().is_empty() {
        let decoded = |text: &str| percent_encoding::percent_decode_str(text).collect::<Vec<u8>>();
        let login = [decoded(url.username()), decoded(url.password().unwrap_or(""))].join(&b':');
        request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(login)));
    }
    let body = Full::new(Bytes::from(post.body.clone()));
    request.body(body).map_err(|_| "The receiver's address cannot be written into a request.".to_owned())
}

async fn exchange(stream: Box<dyn Stream>, request: Request<Full<Bytes>>) -> hyper::Result<Response<Connected>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The connection lives as long as the response; it ends when that is dropped.
    let connection = tokio::spawn(connection).abort_handle();
    let guard = Abort(connection);
    let response = sender.send_request(request).await?;
    Ok(response.map(|body| Connected { body, _connection: guard }))
}

/// A body with the connection that brings it.
struct Connected {
    body: Incoming,
    _connection: Abort,
}

struct Abort(tokio::task::AbortHandle);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The status has come, so the outcome is certain: a body that does not end changes nothing.
async fn read(url: &Url, response: Response<Connected>, until: Instant, now: Timestamp) -> Outcome {
    let (head, mut connected) = response.into_parts();
    let mut body = Vec::new();
    let _late = timeout_at(until, async {
        while body.len() < MOST_READ && !connected.body.is_end_stream() {
            match connected.body.frame().await {
                Some(Ok(frame)) => body.extend(frame.into_data().unwrap_or_default()),
                Some(Err(_)) | None => break,
            }
        }
    })
    .await;
    body.truncate(MOST_READ);
    let reply = Reply {
        status: head.status.as_u16(),
        location: text(&head.headers, LOCATION),
        retry_after: text(&head.headers, RETRY_AFTER),
        body: &String::from_utf8_lossy(&body),
    };
    answer(url, &reply, now)
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
