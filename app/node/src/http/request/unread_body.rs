//! Answers that were given before the request's body had come in whole, as a refusal often is.
//!
//! HTTP/1.1: the server ends such a connection, as the rest of the body would be taken for the next request. It says so in the
//! answer, or a client that keeps its connections would send the next request to one that is about to end.
//!
//! HTTP/2: the server tells the client to stop sending, and curl before 8.0 then forgets the answer. So a short rest is read first.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use warp::http::header::{CONNECTION, HeaderValue};
use warp::http::{Request, Response, Version};
use warp::hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

/// How much of a body that nobody wants is read, in bytes.
const MOST_REST: u64 = 2 * 1_024 * 1_024;
/// How long the rest of a body may take.
const REST_WITHIN: Duration = Duration::from_secs(2);

/// Whether a request's body has come in whole.
pub(in crate::http) struct Unread {
    unread: Arc<AtomicBool>,
    /// The body of a request of HTTP/2, once its reader has let go of it before its end.
    rest: Option<Arc<Mutex<Option<Incoming>>>>,
}

/// A body that notes when it has been read to its end.
pub(in crate::http) struct Watched {
    body: Option<Incoming>,
    unread: Arc<AtomicBool>,
    rest: Option<Arc<Mutex<Option<Incoming>>>>,
}

/// Watches the body of a request.
pub(in crate::http) fn watch(request: Request<Incoming>) -> (Request<Watched>, Unread) {
    let unread = Arc::new(AtomicBool::new(!request.body().is_end_stream()));
    let rest = (request.version() == Version::HTTP_2).then(Arc::default);
    let watched = Unread { unread: Arc::clone(&unread), rest: rest.clone() };
    (request.map(|body| Watched { body: Some(body), unread, rest }), watched)
}

impl Unread {
    /// Makes an answer fit for a body of which a part is still to come.
    pub async fn settle<B>(self, mut answer: Response<B>) -> Response<B> {
        if !self.unread.load(Ordering::Acquire) {
            return answer;
        }
        match &self.rest {
            None => drop(answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"))),
            Some(rest) => {
                let body = rest.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(body) = body.filter(|body| body.size_hint().lower() <= MOST_REST) {
                    // A client that goes on sending is told to stop.
                    let _ = tokio::time::timeout(REST_WITHIN, read_rest(body)).await;
                }
            }
        }
        answer
    }
}

async fn read_rest(mut body: Incoming) {
    let mut left = MOST_REST;
    while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let (Some(rest), true) = (&self.rest, self.unread.load(Ordering::Acquire)) {
            *rest.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
        }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = <Incoming as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(&mut *body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || body.is_end_stream() {
            self.unread.store(false, Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, Incoming::size_hint)
    }
}
