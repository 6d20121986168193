//! The task that looks at the database while somebody reads, and the way to it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_store::feed::{FeedLook, Journal, PerJournal};
use carillon_store::{Store, StoreError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tracing::debug;

use super::event::{Event, Filter};
use super::follow::{Follower, NUMBERS_BACK, Taken};
use super::mark::{Mark, Place, Position};
use super::notices::Notices;
use super::reader::{Begin, Reader, StillAdmitted};
use super::ring::{Ring, Told};
use crate::engine::EngineHandle;

/// How many readers a node serves.
const MOST_READERS: usize = 1_024;
/// How long between two looks, where nothing asks for one sooner.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long between two looks at the least, however much happens.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(50);
/// A look that takes long is followed by a pause so many times as long: a feed takes a small share of the database.
const PAUSE_PER_LOOK: u32 = 9;
/// How long the task goes on when the last reader has gone: people go from page to page.
const LINGER: Duration = Duration::from_secs(5);
/// How long a new reader waits for its first look.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// How long to wait after a look that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Why a reader was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSubscribed {
    /// As many as there may be read already.
    Full(usize),
    /// The database has not answered in time.
    Away(Duration),
    /// The server ends.
    Ending,
}

/// The counters of a feed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// How many read now.
    pub readers: usize,
    /// How many events were told since the node began, each counted for each reader.
    pub told: u64,
    /// How many readers were cut off since the node began.
    pub cut: u64,
    /// How often the database was looked at since the node began.
    pub looks: u64,
}

/// The events of the cluster at one node. Clones share everything.
#[derive(Clone)]
pub struct Feed {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    store: Arc<dyn Store>,
    engine: EngineHandle,
    permits: Arc<Semaphore>,
    state: Mutex<State>,
    /// Changes whenever there is something for readers to look at.
    pub version: watch::Sender<u64>,
    /// The latest look that read everything.
    looked: watch::Sender<u64>,
    wanted: Notify,
    pub told: AtomicU64,
    pub cut: AtomicU64,
}

/// The state that readers look at.
pub(super) struct State {
    polling: bool,
    looks_begun: u64,
    pub ending: bool,
    pub ring: Ring,
    /// Another one after the database went back in time, and after nobody has read for a while.
    pub epoch: u64,
    pub mark: Option<Mark>,
    /// Whether the latest look has read every journal to its end.
    is_whole: bool,
    high: PerJournal<u64>,
    present: Arc<[Event]>,
}

impl Feed {
    /// A feed of a store, woken by the commits of an engine.
    pub fn new(store: Arc<dyn Store>, engine: EngineHandle) -> Self {
        let state = State {
            polling: false,
            looks_begun: 0,
            ending: false,
            ring: Ring::above(PerJournal::default(), 0),
            epoch: 0,
            mark: None,
            is_whole: false,
            high: PerJournal::default(),
            present: Arc::default(),
        };
        let inner = Inner {
            store,
            engine,
            permits: Arc::new(Semaphore::new(MOST_READERS)),
            state: Mutex::new(state),
            version: watch::Sender::new(0),
            looked: watch::Sender::new(0),
            wanted: Notify::new(),
            told: AtomicU64::new(0),
            cut: AtomicU64::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// A new reader. It gets every event that is committed from now on; with `resume`, the text of an earlier [`Position`], every one
    /// since then. It is asked now and then whether it is `still_admitted`.
    ///
    /// # Errors
    /// [`NotSubscribed`].
    pub async fn subscribe(
        &self,
        filter: Filter,
        resume: Option<&str>,
        still_admitted: StillAdmitted,
    ) -> Result<Reader, NotSubscribed> {
        let permit = self.inner.permits.clone().try_acquire_owned().map_err(|_| NotSubscribed::Full(MOST_READERS))?;
        tokio::time::timeout(FIRST_LOOK, self.inner.next_look())
            .await
            .map_err(|_| NotSubscribed::Away(FIRST_LOOK))??;
        Ok(self.admit(filter, resume, still_admitted, permit))
    }

    fn admit(
        &self,
        filter: Filter,
        resume: Option<&str>,
        still_admitted: StillAdmitted,
        permit: OwnedSemaphorePermit,
    ) -> Reader {
        let version = self.inner.version.subscribe();
        let begin = self.inner.state().begin(resume, self.inner.engine.session());
        Reader::new(self.clone(), version, filter, begin, still_admitted, permit)
    }

    /// Tells every reader that the server ends, and admits no more.
    pub fn end(&self) {
        self.inner.state().ending = true;
        self.inner.looked.send_replace(u64::MAX);
        self.inner.tell_readers();
    }

    /// Where a reader stands that knows everything that was told until now: a page that reads after this and follows from here misses
    /// nothing. `None` while nobody reads, and before the first look is done.
    pub fn position(&self) -> Option<Position> {
        let state = self.inner.state();
        let mark = state.mark.filter(|_| state.polling && state.is_whole && !state.ending)?;
        let place = Place { session: self.inner.engine.session(), epoch: state.epoch, next: state.ring.end() };
        Some(Position { mark, place: Some(place) })
    }

    /// A number that grows with each event that this node learns of; `None` while nobody reads.
    pub fn version(&self) -> Option<u64> {
        (self.inner.readers() > 0).then(|| *self.inner.version.borrow())
    }

    /// A number that grows with each change by people that this node learns of; `None` while nobody reads.
    pub fn changes(&self) -> Option<u64> {
        (self.inner.readers() > 0).then(|| self.inner.state().high[Journal::Audit as usize])
    }

    /// The counters.
    pub fn counts(&self) -> EventCounts {
        EventCounts {
            readers: self.inner.readers(),
            told: self.inner.told.load(Ordering::Relaxed),
            cut: self.inner.cut.load(Ordering::Relaxed),
            looks: self.inner.state().looks_begun,
        }
    }
}

impl State {
    /// Where a reader begins; `own` is the session of this node.
    fn begin(&self, resume: Option<&str>, own: SessionId) -> Begin {
        let end = self.ring.end();
        let anew = Begin { from: end, replay: None, epoch: self.epoch, present: Arc::default(), reset: None };
        let Some(text) = resume else { return anew };
        let Some(position) = Position::parse(text) else {
            return Begin { reset: Some("the Last-Event-ID is not one of this server"), ..anew };
        };
        let is_here = |place: &Place| {
            (place.session, place.epoch) == (own, self.epoch) && place.next <= end && self.ring.get(place.next).is_ok()
        };
        if let Some(place) = position.place.filter(is_here) {
            return Begin { from: place.next, ..anew };
        }
        match self.resume(position.mark) {
            Ok((from, above)) => Begin { from, replay: Some((above, end)), present: self.present.clone(), ..anew },
            Err(reason) => Begin { reset: Some(reason), ..anew },
        }
    }

    /// Where a reader with this mark goes on, and the numbers above which it lacks rows; or why it must load everything anew.
    fn resume(&self, mark: Mark) -> Result<(u64, PerJournal<u64>), &'static str> {
        if self.mark.is_some_and(|now| mark.is_stale(now.at)) {
            return Err("the Last-Event-ID is older than a day");
        }
        if mark.numbers.iter().zip(self.high).any(|(number, high)| *number > high) {
            return Err("the database has lost what was told before");
        }
        let from = self.ring.resume(mark.numbers).map_err(|_| "more has happened since than is kept for readers")?;
        Ok((from, mark.numbers))
    }
}

impl Inner {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> usize {
        MOST_READERS - self.permits.available_permits()
    }

    fn tell_readers(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// Waits until a look that has begun after this moment has read everything.
    async fn next_look(self: &Arc<Self>) -> Result<(), NotSubscribed> {
        let mut looked = self.looked.subscribe();
        let wanted = {
            let mut state = self.state();
            if state.ending {
                return Err(NotSubscribed::Ending);
            }
            if !state.polling {
                state.polling = true;
                tokio::spawn(look_on(Arc::clone(self)));
            }
            state.looks_begun + 1
        };
        self.wanted.notify_one();
        // The sender is in `self`, so there is always an answer.
        let _ = looked.wait_for(|done| *done >= wanted).await;
        if self.state().ending { Err(NotSubscribed::Ending) } else { Ok(()) }
    }
}

/// Looks until nobody has read for a while, or the server ends.
async fn look_on(inner: Arc<Inner>) {
    let begun = Instant::now();
    let (mut follower, mut notices, mut back, mut read_at) = (None, Notices::default(), NUMBERS_BACK, begun);
    loop {
        let looked_at = Instant::now();
        if inner.readers() > 0 {
            read_at = looked_at;
        }
        if inner.stop(looked_at.duration_since(read_at) >= LINGER) {
            return;
        }
        let pause = match inner.look((&mut follower, &mut notices), back, looked_at.duration_since(begun)).await {
            Ok(Looked::All) => (looked_at.elapsed() * PAUSE_PER_LOOK).max(LOOK_AT_MOST_EVERY),
            Ok(Looked::MoreToRead) => Duration::ZERO,
            Ok(Looked::WentBack) => {
                (follower, back) = (None, 0);
                Duration::ZERO
            }
            Err(error) => {
                debug!(%error, "the events could not be looked at");
                AFTER_FAILURE
            }
        };
        inner.pause(pause).await;
    }
}

enum Looked {
    All,
    MoreToRead,
    WentBack,
}

impl Inner {
    /// Ends the task if nobody reads; forgets the events then.
    fn stop(&self, unread: bool) -> bool {
        let mut state = self.state();
        // Who comes now waits for its permit first, and finds the task running or starts another one.
        let is_over = state.ending || (unread && self.readers() == 0);
        if !is_over {
            state.looks_begun += 1;
            return false;
        }
        state.polling = false;
        // Changes from now on are not looked at, so a place from before is none any more.
        state.epoch += 1;
        state.is_whole = false;
        state.ring = Ring::above([u64::MAX; Journal::ALL.len()], state.ring.end());
        state.present = Arc::new([]);
        true
    }

    /// Nothing for so long; then until something asks for a look, or it is time.
    async fn pause(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
        if pause.is_zero() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY.saturating_sub(pause)) => {}
            () = self.engine.news() => {}
            () = self.wanted.notified() => {}
        }
    }

    async fn look(
        &self,
        (follower, notices): (&mut Option<Follower>, &mut Notices),
        back: u64,
        at: Duration,
    ) -> Result<Looked, StoreError> {
        let number = self.state().looks_begun;
        let Some(follower) = follower else {
            let first: FeedLook = self.store.look(&Follower::first_request()).await?;
            let begun = Follower::begin(&first, back);
            let mut state = self.state();
            state.ring = Ring::above(begun.high(), state.ring.end());
            *follower = Some(begun);
            return Ok(Looked::MoreToRead);
        };
        let request = follower.request();
        let look = self.store.look(&request).await?;
        let commits_within = look.commits_within;
        let Taken::Told { mut told, all } = follower.take(at, &request, look) else {
            self.state().epoch += 1;
            self.tell_readers();
            return Ok(Looked::WentBack);
        };
        if all {
            // Before what others commit meanwhile: the runs that notices are about were told.
            match notices.look(&*self.store, at, commits_within).await {
                Ok(news) => told.extend(news.into_iter().map(Told::Event)),
                // The rows of this look are told all the same; the notices come with a later one.
                Err(error) => debug!(%error, "notices could not be looked at"),
            }
        }
        let present = all.then(|| follower.present().into_iter().chain(notices.recent().cloned()).collect());
        self.publish(follower, told, number, present);
        Ok(if all { Looked::All } else { Looked::MoreToRead })
    }

    fn publish(&self, follower: &Follower, told: Vec<Told>, number: u64, present: Option<Vec<Event>>) {
        let (news, all) = (!told.is_empty(), present.is_some());
        let mut state = self.state();
        told.into_iter().for_each(|told| state.ring.push(told));
        (state.mark, state.high, state.is_whole) = (Some(follower.mark()), follower.high(), all);
        if let Some(present) = present {
            state.present = present.into();
        }
        if news {
            // Under the lock: a position that includes these events must not be seen beside the version before them.
            self.tell_readers();
        }
        drop(state);
        if all {
            self.looked.send_modify(|done| *done = number.max(*done));
        }
    }
}
