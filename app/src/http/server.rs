//! Listening: connections with bounds, and an end that waits for answers under way.
//!
//! warp's own server has no limits to set, so hyper serves its routes directly. A client that sends its head slowly, keeps many connections
//! or never goes away costs no more than its share.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use warp::http::{Request, Uri};
use warp::hyper::body::Incoming;
use warp::hyper::server::conn::http1;
use warp::hyper::service::{Service, service_fn};

use crate::http::{ApiState, request::connection_close, routes};

/// How many connections are served at once; further ones wait to be accepted.
const MOST_CONNECTIONS: usize = 4_096;
/// How long a request's head may take to arrive, and how long a connection may be idle.
const HEAD_ARRIVES_WITHIN: Duration = Duration::from_secs(30);
/// The longest head, URI included, in bytes.
const LONGEST_HEAD: usize = 64 * 1_024;
/// How many headers a request may have.
const MOST_HEADERS: usize = 64;
/// How long answers under way are waited for at the end.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait when the system cannot give another connection.
const BREATH: Duration = Duration::from_millis(100);

/// The address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {addr}: {reason}")]
pub struct BindError {
    /// Which address.
    pub addr: SocketAddr,
    /// Why, for people.
    pub reason: String,
}

/// Listens on `addr`.
///
/// # Errors
/// [`BindError`] when the port is taken, or may not be taken.
pub async fn bind(addr: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(addr).await.map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another process listens there; end it, or choose another address with http.bind or --bind".into()
            }
            io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege; choose a higher one".into(),
            io::ErrorKind::AddrNotAvailable => "this machine has no such address".into(),
            _ => error.to_string(),
        };
        BindError { addr, reason }
    })
}

/// Serves the API until `shutdown`; then accepts nothing more and gives answers under way 5 seconds. Whoever follows the
/// output of a run is cut off after that, so drain the engine first.
pub async fn serve(state: ApiState, listener: TcpListener, shutdown: impl Future<Output = ()>) {
    let events = state.events.clone();
    let service = TowerToHyperService::new(warp::service(routes(Arc::new(state))));
    let service = service_fn(move |mut request: Request<Incoming>| {
        give_path(&mut request);
        let (request, unread) = connection_close::watch(request);
        let answer = service.call(request);
        async move { answer.await.map(|answer| unread.tell(answer)) }
    });
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (permit, stream) = tokio::select! {
            accepted = accept(&listener, &permits) => match accepted {
                Some(accepted) => accepted,
                None => continue,
            },
            () = &mut shutdown => break,
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_ARRIVES_WITHIN)
            .max_buf_size(LONGEST_HEAD)
            .max_headers(MOST_HEADERS)
            .serve_connection(TokioIo::new(stream), service.clone());
        let connection = graceful.watch(connection);
        connections.spawn(async move {
            // A client that breaks off or speaks no HTTP is its own concern.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    events.end();
    if tokio::time::timeout(ENDS_WITHIN, graceful.shutdown()).await.is_err() {
        tracing::debug!("connections were cut off at the end");
    }
    connections.shutdown().await;
}

/// `CONNECT host:port` names no path, and warp's filters panic without one. This server is no proxy: it is as good as `/`.
fn give_path(request: &mut Request<Incoming>) {
    if request.uri().path_and_query().is_none() {
        *request.uri_mut() = Uri::from_static("/");
    }
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> Option<(OwnedSemaphorePermit, TcpStream)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Without it answers are only slower.
            let _ = stream.set_nodelay(true);
            Some((permit, stream))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(BREATH).await;
            None
        }
    }
}
