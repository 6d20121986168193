//! The two protocols of a connection, HTTP/1.1 and HTTP/2, with the bounds of each.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use warp::http::{Request, Response};
use warp::hyper::body::{Body, Incoming};
use warp::hyper::server::conn::{http1, http2};
use warp::hyper::service::Service;

/// The name of HTTP/1.1 in a handshake.
pub(in crate::http) const HTTP_1: &[u8] = b"http/1.1";
/// The name of HTTP/2 in a handshake.
pub(in crate::http) const HTTP_2: &[u8] = b"h2";

/// How long a request's head may take to arrive, and how long a connection may be idle.
const HEAD_ARRIVES_WITHIN: Duration = Duration::from_secs(30);
/// The longest head, URI included, in bytes.
const LONGEST_HEAD: u32 = 64 * 1_024;
/// How many headers a request may have.
const MOST_HEADERS: usize = 64;
/// How many requests a connection of HTTP/2 may have under way.
const MOST_STREAMS: u32 = 100;
/// How many requests a client may take back before they were looked at (CVE-2023-44487).
const MOST_TAKEN_BACK: usize = 20;
/// How many requests may break the protocol before the connection ends (CVE-2025-8671).
const MOST_BROKEN: usize = 128;
/// How many bytes of one answer wait for a slow reader.
const MOST_UNSENT: usize = 256 * 1_024;
/// How many bytes of bodies may come in before they are read: of one request, and of all on a connection.
const WINDOWS: (u32, u32) = (256 * 1_024, 1_024 * 1_024);
/// A quiet connection of HTTP/2 is asked for a sign of life as often, and has as long to give it.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Protocol {
    /// Version 1.0 or 1.1.
    Http1,
    /// Version 2, which is spoken over TLS only.
    Http2,
}

/// Serves a connection to its end, which comes after the answers under way once `watcher` says so.
pub(in crate::http) async fn serve_connection<I, S, B>(
    io: I,
    protocol: Protocol,
    service: S,
    watcher: Watcher,
) -> Result<(), warp::hyper::Error>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = std::convert::Infallible>,
    S::Future: Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let io = TokioIo::new(io);
    match protocol {
        Protocol::Http1 => {
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD_ARRIVES_WITHIN);
            server.max_buf_size(LONGEST_HEAD as usize).max_headers(MOST_HEADERS);
            watcher.watch(server.serve_connection(io, service)).await
        }
        Protocol::Http2 => {
            let mut server = http2::Builder::new(TokioExecutor::new());
            server.timer(TokioTimer::new()).keep_alive_interval(PING.0).keep_alive_timeout(PING.1);
            server.max_header_list_size(LONGEST_HEAD).max_concurrent_streams(MOST_STREAMS);
            server.max_pending_accept_reset_streams(MOST_TAKEN_BACK).max_local_error_reset_streams(MOST_BROKEN);
            server.initial_stream_window_size(WINDOWS.0).initial_connection_window_size(WINDOWS.1);
            server.max_send_buf_size(MOST_UNSENT);
            watcher.watch(server.serve_connection(io, service)).await
        }
    }
}
