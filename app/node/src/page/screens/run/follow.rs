//! The output of a run as it comes, made into HTML by the server: server-sent events of finished pieces.
//!
//! The script appends them and interprets nothing, so what is safe to show is decided in one place.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc;
use warp::Reply;
use warp::http::header::{CONTENT_TYPE, HeaderValue};
use warp::hyper::body::Bytes;

use crate::http::routes::output;
use crate::page::layout::Shown;
use crate::page::screens::run::ansi::Ansi;
use crate::page::screens::run::visible;
use crate::page::visit::{Fault, Visit};

/// How many pieces may wait for a slow reader.
const PIECES_WAITING: usize = 16;

/// `GET /runs/{id}/follow`
pub(crate) async fn follow(visit: &Visit, segment: &str) -> Result<Shown, Fault> {
    let run = visible(visit, segment).await?.id;
    let api = Arc::clone(&visit.api);
    let (to_reader, mut chunks) = mpsc::channel::<Bytes>(PIECES_WAITING);
    tokio::spawn(async move {
        // Ends when the run has ended or the reader has gone, whichever comes first.
        tokio::select! {
            () = output::follow(&api, run, &to_reader) => {}
            () = to_reader.closed() => {}
        }
    });
    let (mut ansi, mut ended) = (Ansi::default(), false);
    let events = poll_fn(move |context| {
        let polled = chunks.poll_recv(context);
        polled.map(|chunk| match chunk {
            Some(chunk) => Some(event("output", &ansi.html(&chunk))),
            None if !ended => {
                ended = true;
                Some(event("end", ""))
            }
            None => None,
        })
    });
    let mut response = warp::reply::stream(events.map(Ok::<_, Infallible>)).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(Shown::Response(response))
}

/// An event; each line of its data has a field of its own.
fn event(name: &str, data: &str) -> Bytes {
    let mut text = format!("event: {name}\n");
    for line in data.split('\n') {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_output_stay_one_event() {
        assert_eq!(event("output", "a\nb\n"), "event: output\ndata: a\ndata: b\ndata: \n\n");
    }
}
