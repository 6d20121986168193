//! An HTTP server that answers as it is told, well or badly.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// How it answers.
#[derive(Clone)]
pub enum Reply {
    /// Status, headers and body.
    Says(u16, Vec<(&'static str, String)>, String),
    /// It reads the request and never answers.
    Hangs,
    /// It reads the request and closes the connection.
    LosesTheAnswer,
    /// It closes the connection at once.
    Closes,
    /// It answers 200, and its body never ends.
    TalksForEver,
}

impl Reply {
    pub fn status(status: u16) -> Self {
        Self::Says(status, Vec::new(), String::new())
    }
}

/// A request that arrived.
#[derive(Debug)]
pub struct Received {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

pub struct Receiver {
    pub address: SocketAddr,
    pub received: mpsc::UnboundedReceiver<Received>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub async fn start(reply: Reply) -> Self {
        Self::with_tls(reply, None).await
    }

    pub async fn with_tls(reply: Reply, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, received) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reply, tell, tls) = (reply.clone(), tell.clone(), tls.clone());
                if matches!(reply, Reply::Closes) {
                    continue;
                }
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, reply, tell).await;
                            }
                        }
                        None => serve(stream, reply, tell).await,
                    }
                });
            }
        });
        Self { address, received, task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Body = http_body_util::combinators::BoxBody<Bytes, io::Error>;

async fn serve<S>(stream: S, reply: Reply, tell: mpsc::UnboundedSender<Received>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let reply = Arc::new(reply);
    let service = service_fn(move |request: Request<Incoming>| {
        let (reply, tell) = (reply.clone(), tell.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let headers = head.headers.iter();
            let _test_is_over = tell.send(Received {
                method: head.method.to_string(),
                path: head.uri.to_string(),
                headers: headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect(),
                body: String::from_utf8(body.to_vec()).unwrap(),
            });
            answered(&reply).await
        }
    });
    let _broken_off = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answered(reply: &Reply) -> io::Result<Response<Body>> {
    let whole =
        |text: &str| Full::new(Bytes::from(text.to_owned())).map_err(|never: Infallible| match never {}).boxed();
    match reply {
        Reply::Says(status, headers, body) => {
            let mut response = Response::builder().status(*status);
            for (name, value) in headers {
                response = response.header(*name, value);
            }
            Ok(response.body(whole(body)).unwrap())
        }
        Reply::Hangs => std::future::pending().await,
        Reply::LosesTheAnswer | Reply::Closes => Err(io::Error::other("no answer")),
        Reply::TalksForEver => {
            let (talk, listen) = mpsc::unbounded_channel::<io::Result<Frame<Bytes>>>();
            tokio::spawn(async move {
                while talk.send(Ok(Frame::data(Bytes::from_static(&[b'x'; 512])))).is_ok() {
                    tokio::task::yield_now().await;
                }
            });
            let chunks = StreamBody::new(Chunks(listen));
            Ok(Response::new(BodyExt::boxed(chunks)))
        }
    }
}

/// The receiving end of a channel, as the stream that a body is made of.
struct Chunks(mpsc::UnboundedReceiver<io::Result<Frame<Bytes>>>);

impl futures_core::Stream for Chunks {
    type Item = io::Result<Frame<Bytes>>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx)
    }
}
