//! Listening: connections with bounds, and an end that waits for answers under way.
//!
//! warp's own server has no limits to set, so hyper serves its routes directly. A client that sends its head slowly, keeps many connections
//! or never goes away costs no more than its share.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use warp::http::header::{COOKIE, HOST, HeaderValue};
use warp::http::{Request, Uri, Version};
use warp::hyper::body::Incoming;
use warp::hyper::service::{Service, service_fn};
use warp::reply::Response;

use crate::http::base_path::BasePath;
use crate::http::connection::Connection;
use crate::http::protocol::{Protocol, serve_connection};
use crate::http::request::unread_body::{self, Watched};
use crate::http::tls::{Secured, Tls};
use crate::http::{ApiState, routes};

/// How many connections are served at once; further ones wait to be accepted.
const MOST_CONNECTIONS: usize = 4_096;
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
    let server = Arc::new(Server {
        base_path: state.base_path.clone(),
        tls: state.tls.clone(),
        routes: TowerToHyperService::new(warp::service(routes(Arc::new(state)))),
        ends: CancellationToken::new(),
    });
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (permit, stream, peer) = tokio::select! {
            accepted = accept(&listener, &permits) => match accepted {
                Some(accepted) => accepted,
                None => continue,
            },
            () = &mut shutdown => break,
        };
        let (server, watcher) = (Arc::clone(&server), graceful.watcher());
        connections.spawn(async move {
            server.welcome(stream, peer, watcher).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    server.ends.cancel();
    events.end();
    if tokio::time::timeout(ENDS_WITHIN, graceful.shutdown()).await.is_err() {
        tracing::debug!("connections were cut off at the end");
    }
    connections.shutdown().await;
}

/// The parts that all connections share.
struct Server<R> {
    base_path: BasePath,
    tls: Option<Arc<Tls>>,
    routes: R,
    ends: CancellationToken,
}

impl<R> Server<R>
where
    R: Service<Request<Watched>, Response = Response, Error = Infallible> + Clone + Send + Sync + 'static,
    R::Future: Send + 'static,
{
    /// One connection, from its handshake to its end.
    async fn welcome(&self, stream: TcpStream, peer: SocketAddr, watcher: Watcher) {
        let plain = Connection::plain(peer);
        let ended = match &self.tls {
            None => serve_connection(stream, Protocol::Http1, self.answers(plain), watcher).await,
            Some(tls) => {
                let secured = tokio::select! {
                    secured = tls.accept(stream, plain) => secured,
                    () = self.ends.cancelled() => None,
                };
                let Some(Secured { stream, protocol, connection }) = secured else { return };
                serve_connection(stream, protocol, self.answers(connection), watcher).await
            }
        };
        // A client that breaks off or speaks no HTTP is its own concern.
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    /// The routes, as the requests of one connection see them.
    fn answers(
        &self,
        connection: Connection,
    ) -> impl Service<Request<Incoming>, Response = Response, Error = Infallible, Future: Send + 'static> + use<R> {
        let (routes, base_path) = (self.routes.clone(), self.base_path.clone());
        service_fn(move |mut request: Request<Incoming>| {
            if request.version() == Version::HTTP_2 {
                as_in_http_1(&mut request);
            }
            give_path(&mut request);
            request.extensions_mut().insert(connection);
            let base_path = base_path.clone();
            let inside = base_path.enter(request.uri_mut());
            let (request, unread) = unread_body::watch(request);
            let answer = inside.then(|| routes.call(request));
            async move {
                let answer = match answer {
                    Some(answer) => answer.await?,
                    None => base_path.outside(),
                };
                let mut answer = unread.settle(answer).await;
                base_path.leave(&mut answer);
                Ok(answer)
            }
        })
    }
}

/// HTTP/2 names the host in a field of its own, and may cut a cookie in pieces (RFC 9113, 8.2.3 and 8.3.1). Routes look at headers.
fn as_in_http_1(request: &mut Request<Incoming>) {
    let authority = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    let headers = request.headers_mut();
    // A host of another name makes two of them, which are refused.
    if let Some(authority) = authority.filter(|authority| headers.get(HOST) != Some(authority)) {
        headers.append(HOST, authority);
    }
    let pieces: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if pieces.len() > 1
        && let Ok(whole) = HeaderValue::from_bytes(&pieces.join(&b"; "[..]))
    {
        headers.insert(COOKIE, whole);
    }
}
/// `CONNECT host:port` names no path, and warp's filters panic without one. This server is no proxy: it is as good as `/`.
fn give_path(request: &mut Request<Incoming>) {
    if request.uri().path_and_query().is_none() {
        *request.uri_mut() = Uri::from_static("/");
    }
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Without it answers are only slower.
            let _ = stream.set_nodelay(true);
            Some((permit, stream, peer))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(BREATH).await;
            None
        }
    }
}
