//! The way of events to one reader. It holds a place in the ring and no events of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use carillon_store::feed::PerJournal;
use futures_util::Stream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use warp::hyper::body::Bytes;

use super::event::{Event, Filter, notice};
use super::feed::{Feed, State};
use super::ring::{Dropped, Told};

/// How often a reader hears something, in order that proxies keep its connection.
const PING_EVERY: Duration = Duration::from_secs(15);
/// How long a reader waits before it connects again, in milliseconds.
const RETRY_MS: u32 = 2_000;
/// So many bytes of text are sent at once, or one event. A slow reader holds a few of these.
const BYTES_AT_ONCE: usize = 2 * 1024;
/// So many events that a reader does not want are passed over before others get a turn.
const PASSED_AT_ONCE: usize = 2_000;

/// Whether the token of a reader is still let in.
pub type StillAdmitted = Box<dyn Fn() -> bool + Send + Sync>;

/// Where a reader begins.
pub(super) struct Begin {
    /// Its place in the ring.
    pub from: u64,
    /// Until that place only rows with higher numbers than these are new to it.
    pub replay: Option<(PerJournal<u64>, u64)>,
    /// The epoch of the place.
    pub epoch: u64,
    /// Events that tell the present state.
    pub present: Arc<[Event]>,
    /// Why it must load everything anew.
    pub reset: Option<&'static str>,
}

/// One reader of a feed.
pub struct Reader {
    feed: Feed,
    version: watch::Receiver<u64>,
    filter: Filter,
    place: u64,
    replay: Option<(PerJournal<u64>, u64)>,
    present: (Arc<[Event]>, usize),
    epoch: u64,
    first: Option<Bytes>,
    ping_at: Instant,
    still_admitted: StillAdmitted,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

enum Step {
    Send(Bytes),
    /// There is more, but others get a turn.
    GoOn,
    Wait,
    /// The last thing that the reader gets.
    End(Bytes),
}

impl Reader {
    pub(super) fn new(
        feed: Feed,
        version: watch::Receiver<u64>,
        filter: Filter,
        begin: Begin,
        still_admitted: StillAdmitted,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        let Begin { from, replay, epoch, present, reset } = begin;
        let mut first = format!("retry: {RETRY_MS}\n\n");
        if let Some(reason) = reset {
            first.push_str(&String::from_utf8_lossy(&notice("reset", reason)));
        }
        // Who resumes has a mark already. It stays until every row behind it is told.
        let state = feed.inner.state();
        if replay.is_none() && from == state.ring.end() {
            first.push_str(&mark_of(&state));
        }
        drop(state);
        Self {
            feed,
            version,
            filter,
            place: from,
            replay,
            present: (present, 0),
            epoch,
            first: Some(first.into()),
            ping_at: Instant::now() + PING_EVERY,
            still_admitted,
            ended: false,
            _permit: permit,
        }
    }

    /// The rest of the events as the body of an answer.
    pub fn into_stream(self) -> impl Stream<Item = Bytes> + Send {
        futures_util::stream::unfold(self, async |mut reader| {
            let bytes = reader.next().await?;
            Some((bytes, reader))
        })
    }

    /// The next piece of text; `None` at the end.
    pub async fn next(&mut self) -> Option<Bytes> {
        if self.ended {
            return None;
        }
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if Instant::now() >= self.ping_at {
            return Some(self.ping());
        }
        loop {
            self.version.borrow_and_update();
            match self.step() {
                Step::Send(bytes) => return Some(bytes),
                Step::GoOn => tokio::task::yield_now().await,
                Step::End(bytes) => {
                    self.ended = true;
                    self.feed.inner.cut.fetch_add(1, Ordering::Relaxed);
                    return Some(bytes);
                }
                Step::Wait => {
                    let pinged = tokio::select! {
                        // The sender is in `self`.
                        _ = self.version.changed() => None,
                        () = tokio::time::sleep_until(self.ping_at) => Some(self.ping()),
                    };
                    if let Some(bytes) = pinged {
                        return Some(bytes);
                    }
                }
            }
        }
    }

    /// It carries the mark: a reader that wants few events does not fall behind.
    fn ping(&mut self) -> Bytes {
        self.ping_at = Instant::now() + PING_EVERY;
        if !(self.still_admitted)() {
            self.ended = true;
            self.feed.inner.cut.fetch_add(1, Ordering::Relaxed);
            return notice("cut", "the token is not let in any more");
        }
        let mark = {
            let state = self.feed.inner.state();
            if self.epoch == state.epoch && self.place == state.ring.end() { mark_of(&state) } else { String::new() }
        };
        format!(": ping\n{mark}\n").into()
    }

    #[cfg(test)]
    pub(super) fn ping_now(&mut self) {
        self.ping_at = Instant::now();
    }

    fn step(&mut self) -> Step {
        let feed = self.feed.clone();
        let state = feed.inner.state();
        if state.ending {
            return Step::End(notice("cut", "the server ends; connect again, to any node"));
        }
        if self.epoch != state.epoch {
            self.epoch = state.epoch;
            self.place = state.ring.end();
            (self.replay, self.present) = (None, (Arc::default(), 0));
            return Step::Send(notice("reset", "the database has lost what was told before"));
        }
        let mut found = Found::default();
        for _ in 0..PASSED_AT_ONCE {
            if found.bytes >= BYTES_AT_ONCE {
                break;
            }
            match self.pass(&state, &mut found) {
                Ok(true) => {}
                Ok(false) if found.frames.is_empty() => return Step::Wait,
                Ok(false) => break,
                Err(Dropped) if found.frames.is_empty() => {
                    return Step::End(notice("cut", "it reads too slowly; connect again to get what it has missed"));
                }
                Err(Dropped) => break,
            }
        }
        drop(state);
        if found.frames.is_empty() {
            return Step::GoOn;
        }
        self.feed.inner.told.fetch_add(found.frames.len() as u64, Ordering::Relaxed);
        Step::Send(found.text())
    }

    /// Passes one event; `false` if there is none.
    fn pass(&mut self, state: &State, found: &mut Found) -> Result<bool, Dropped> {
        match self.replay {
            Some((above, until)) if self.place < until => {
                if let Some(Told::Row(row)) = state.ring.get(self.place)?
                    && row.number > above[row.journal.place()]
                {
                    row.start.iter().chain([&row.event]).for_each(|event| found.take(event, &self.filter));
                }
                self.place += 1;
            }
            Some(_) => match self.present.0.get(self.present.1) {
                Some(event) => {
                    found.take(event, &self.filter);
                    self.present.1 += 1;
                }
                None => (self.replay, self.present) = (None, (Arc::default(), 0)),
            },
            None => match state.ring.get(self.place)? {
                Some(told) => {
                    found.take(told.event(), &self.filter);
                    self.place += 1;
                }
                None => return Ok(false),
            },
        }
        Ok(true)
    }
}

/// The place of a reader that has got everything, as an id without an event.
fn mark_of(state: &State) -> String {
    state.mark.map(|mark| format!("id: {mark}\n\n")).unwrap_or_default()
}

/// The texts that are sent together.
#[derive(Default)]
struct Found {
    frames: Vec<Bytes>,
    bytes: usize,
}

impl Found {
    fn take(&mut self, event: &Event, filter: &Filter) {
        if filter.wants(event.kind, event.about.as_ref()) {
            self.bytes += event.frame.len();
            self.frames.push(event.frame.clone());
        }
    }

    /// One text is shared with all readers, several are put together.
    fn text(mut self) -> Bytes {
        match self.frames.pop() {
            Some(only) if self.frames.is_empty() => only,
            Some(last) => {
                self.frames.push(last);
                self.frames.concat().into()
            }
            None => Bytes::new(),
        }
    }
}
