//! One handshake: within a time limit, and with a clear word for clients that speak plain HTTP.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use carillon_domain::duration::spoken;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::Tls;
use crate::http::connection::{Connection, Fingerprint};
use crate::http::protocol::{HTTP_2, Protocol};

/// How long a handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How many bytes of a request in the clear are read, so that its answer arrives.
const MOST_UNREAD: usize = 64 * 1024;
/// How long a client that speaks in the clear has to take its answer.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// A connection on which TLS is spoken, and what is spoken over it.
pub(in crate::http) struct Secured {
    pub stream: TlsStream<TcpStream>,
    pub protocol: Protocol,
    pub connection: Connection,
}

impl Tls {
    /// Shakes hands. `None` where that fails, which is the client's concern: it is counted and logged at level debug.
    pub(in crate::http) async fn accept(&self, stream: TcpStream, plain: Connection) -> Option<Secured> {
        let begun = timeout(HANDSHAKE_WITHIN, self.shake_hands(stream));
        let why = match begun.await {
            Ok(Ok(Some(stream))) => return Some(secured(stream, plain)),
            // A look whether somebody listens, as load balancers take it.
            Ok(Ok(None)) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it took longer than {}", spoken(HANDSHAKE_WITHIN)),
        };
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
        tracing::debug!("the TLS handshake with {} failed: {why}", plain.peer);
        None
    }

    async fn shake_hands(&self, stream: TcpStream) -> io::Result<Option<TlsStream<TcpStream>>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Ok(None);
        }
        // A method of HTTP begins with a capital letter, and no record of TLS does.
        if first[0].is_ascii_uppercase() {
            say_so_in_the_clear(stream).await?;
            return Err(io::Error::other("the client speaks HTTP in the clear"));
        }
        TlsAcceptor::from(self.config()).accept(stream).await.map(Some)
    }
}

fn secured(stream: TlsStream<TcpStream>, plain: Connection) -> Secured {
    let (_, session) = stream.get_ref();
    let shown = session.peer_certificates().and_then(|chain| chain.first());
    let certificate = shown.map(|certificate| Fingerprint(Sha256::digest(certificate).into()));
    let protocol = if session.alpn_protocol() == Some(HTTP_2) { Protocol::Http2 } else { Protocol::Http1 };
    Secured { connection: Connection { tls: true, certificate, ..plain }, protocol, stream }
}

async fn say_so_in_the_clear(mut stream: TcpStream) -> io::Result<()> {
    let problem = json!({
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": "this port speaks TLS: write https:// in place of http://",
        "errors": [],
    });
    let body = problem.to_string();
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await?;
    // Bytes that nobody read would make the system reset the connection, and the answer be lost.
    let mut unread = stream.take(MOST_UNREAD as u64);
    let _ = timeout(LEAVES_WITHIN, tokio::io::copy(&mut unread, &mut tokio::io::sink())).await;
    Ok(())
}
