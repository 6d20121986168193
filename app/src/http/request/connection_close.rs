//! Answers that were given before the request's body had come in whole, as a refusal often is.
//!
//! The server ends such a connection, as the rest of the body would be taken for the next request. It says so in the answer, or a
//! client that keeps its connections would send the next request to one that is about to end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use warp::http::header::{CONNECTION, HeaderValue};
use warp::http::{Request, Response, Version};
use warp::hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

/// Whether a request's body has come in whole.
pub(in crate::http) struct Unread(Arc<AtomicBool>);

/// A body that notes when it has been read to its end.
pub(in crate::http) struct Watched {
    body: Incoming,
    unread: Arc<AtomicBool>,
}

/// Watches the body of a request. A connection of HTTP/2 goes on without the rest of a body.
pub(in crate::http) fn watch(request: Request<Incoming>) -> (Request<Watched>, Unread) {
    let ends = request.version() != Version::HTTP_2 && !request.body().is_end_stream();
    let unread = Arc::new(AtomicBool::new(ends));
    let watched = Arc::clone(&unread);
    (request.map(|body| Watched { body, unread: watched }), Unread(unread))
}

impl Unread {
    /// Says in the answer that the connection ends, where it does.
    pub fn tell<B>(self, mut answer: Response<B>) -> Response<B> {
        if self.0.load(Ordering::Acquire) {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = <Incoming as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.unread.store(false, Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
