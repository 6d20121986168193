//! Events from looks: it knows what was told, and puts in order what is new. It has no clock and asks nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::time::Timestamp;
use carillon_store::feed::{Entry, FeedLook, FeedRequest, Fresh, Journal, JournalAsk, PerJournal, Present, Tail};
use carillon_store::{RunView, SessionState, SessionView};

use super::event::{Event, row_of, session_event, start_of};
use super::mark::Mark;
use super::ring::Told;

/// So many rows of a journal are read in one look.
const ROWS_PER_LOOK: usize = 1_000;
/// So many numbers back from the newest one a feed begins: readers resume from there.
pub(super) const NUMBERS_BACK: u64 = 10_000;

/// The state of all that was told so far.
#[derive(Debug)]
pub(super) struct Follower {
    tails: PerJournal<Tail>,
    at: Timestamp,
    began: bool,
    started: BTreeMap<RunId, Event>,
    sessions: BTreeMap<SessionId, (SessionView, Event)>,
}

/// The outcome of one look.
#[derive(Debug)]
pub(super) enum Taken {
    /// These events are new. `all` if the look has read every journal to its end.
    Told { told: Vec<Told>, all: bool },
    /// The database has lost commits that were told.
    WentBack,
}

impl Follower {
    /// Before the first look: it asks where the journals end.
    pub const fn first_request() -> FeedRequest {
        FeedRequest { journals: [const { JournalAsk::newest() }; Journal::ALL.len()], present: false }
    }

    /// A follower that tells rows with numbers above [`Self::low`], some of which are older than this moment. `back` tells how many
    /// numbers it goes back.
    pub fn begin(first: &FeedLook, back: u64) -> Self {
        Self {
            tails: first.journals.each_ref().map(|rows| Tail::after(rows.newest.saturating_sub(back))),
            at: first.now,
            began: false,
            started: BTreeMap::new(),
            sessions: BTreeMap::new(),
        }
    }

    /// The question of the next look.
    pub fn request(&self) -> FeedRequest {
        FeedRequest { journals: self.tails.each_ref().map(|tail| tail.ask(ROWS_PER_LOOK)), present: true }
    }

    /// Up to where everything was told.
    pub fn mark(&self) -> Mark {
        Mark { at: self.at, numbers: self.tails.each_ref().map(Tail::low) }
    }

    /// The highest numbers that were told.
    pub fn high(&self) -> PerJournal<u64> {
        self.tails.each_ref().map(Tail::high)
    }

    /// Events that tell the present state: runs that execute, and sessions.
    pub fn present(&self) -> Vec<Event> {
        self.started.values().chain(self.sessions.values().map(|(_, event)| event)).cloned().collect()
    }

    /// Takes in a look that began at `at`.
    ///
    /// The rows of a look are told before the runs that execute in it. So a job's run is told as ended before its next one is told as
    /// started. A run whose end comes first is told as started right before.
    pub fn take(&mut self, at: Duration, asked: &FeedRequest, look: FeedLook) -> Taken {
        let FeedLook { now, commits_within, journals, present } = look;
        self.at = now;
        let (mut told, mut ended, mut all) = (Vec::new(), BTreeSet::new(), true);
        for ((journal, rows), asked) in Journal::ALL.into_iter().zip(journals).zip(&asked.journals) {
            let numbers: Vec<u64> = rows.rows.iter().map(|(number, _)| *number).collect();
            all &= numbers.iter().filter(|number| **number > asked.after).count() < asked.limit;
            let mut mark = self.mark();
            let tail = &mut self.tails[journal.place()];
            let low = tail.low();
            let Fresh::Rows(fresh) = tail.take(at, &numbers, rows.newest, commits_within) else {
                return Taken::WentBack;
            };
            let now_low = tail.low();
            for (number, entry) in rows.rows.into_iter().zip(fresh).filter(|(_, fresh)| *fresh).map(|(row, _)| row) {
                // Rows with higher numbers of this look are not told yet.
                mark.numbers[journal.place()] = low.max(number.min(now_low));
                ended.extend(self.tell_row(number, &entry, mark, &mut told));
            }
        }
        if let Some(present) = present.filter(|_| all) {
            if self.tell_present(present, &ended, &mut told) {
                self.tails.iter_mut().for_each(|tail| tail.commits(at));
            }
            self.began = true;
        }
        Taken::Told { told, all }
    }

    /// Answers the run that has ended with the row, if it is about one.
    fn tell_row(&mut self, number: u64, entry: &Entry, mark: Mark, told: &mut Vec<Told>) -> Option<RunId> {
        let (row, run) = row_of(number, entry, mark);
        let is_told = run.is_some_and(|run| self.started.remove(&run).is_some());
        if self.began
            && !is_told
            && let Some(start) = &row.start
        {
            told.push(Told::Event(start.clone()));
        }
        told.push(Told::Row(row));
        run
    }

    /// Answers whether a session has written a heartbeat since the last look.
    fn tell_present(&mut self, present: Present, ended: &BTreeSet<RunId>, told: &mut Vec<Told>) -> bool {
        let Present { running, sessions } = present;
        let running: BTreeMap<RunId, RunView> =
            running.into_iter().filter(|view| !ended.contains(&view.id)).map(|view| (view.id, view)).collect();
        self.started.retain(|run, _| running.contains_key(run));
        for (run, view) in running {
            if !self.started.contains_key(&run)
                && let Some(start) = start_of(&view)
            {
                self.tell(Told::Event(start.clone()), told);
                self.started.insert(run, start);
            }
        }
        self.tell_sessions(sessions, told)
    }

    fn tell_sessions(&mut self, sessions: Vec<SessionView>, told: &mut Vec<Told>) -> bool {
        let mut known = std::mem::take(&mut self.sessions);
        let mut committed = false;
        for view in sessions {
            let before = known.remove(&view.beat.id);
            committed |= before.as_ref().is_none_or(|(before, _)| before.beat != view.beat);
            let event = match before {
                Some((before, event)) if before.beat.state == view.beat.state => event,
                _ => {
                    let event = session_event(&view, view.beat.state, self.at);
                    self.tell(Told::Event(event.clone()), told);
                    event
                }
            };
            self.sessions.insert(view.beat.id, (view, event));
        }
        // A session that holds nothing is removed when it ends.
        for (view, _) in known.into_values().filter(|(view, _)| view.beat.state != SessionState::Ended) {
            self.tell(Told::Event(session_event(&view, SessionState::Ended, self.at)), told);
        }
        committed
    }

    /// The state that the first look finds is no news.
    fn tell(&self, event: Told, told: &mut Vec<Told>) {
        if self.began {
            told.push(event);
        }
    }
}
