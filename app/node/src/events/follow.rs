//! Events from looks: it knows what was told, and puts in order what is new. It has no clock and asks nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carillon_domain::id::{RunId, SessionId};
use carillon_domain::time::Timestamp;
use carillon_store::feed::{Entry, FeedLook, FeedRequest, Fresh, Journal, JournalAsk, PerJournal, Tail};
use carillon_store::{RunView, SessionState, SessionView};

use super::event::{Event, row_of, session_event, start_of};
use super::mark::Mark;
use super::merge::{Item, merged};
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
    /// The runs that a look finds ended are told before those that execute in it. So a job's run is told as ended before its next one is
    /// told as started. A run whose end comes first is told as started before.
    pub fn take(&mut self, at: Duration, asked: &FeedRequest, look: FeedLook) -> Taken {
        let FeedLook { now, commits_within, journals, present } = look;
        self.at = now;
        let (mark, mut all) = (self.mark(), true);
        let mut fresh: PerJournal<Vec<(u64, Entry)>> = Default::default();
        for ((journal, found), asked) in Journal::ALL.into_iter().zip(journals).zip(&asked.journals) {
            let numbers: Vec<u64> = found.rows.iter().map(|(number, _)| *number).collect();
            all &= numbers.iter().filter(|number| **number > asked.after).count() < asked.limit;
            let tail = &mut self.tails[journal.place()];
            let Fresh::Rows(is_fresh) = tail.take(at, &numbers, found.newest, commits_within) else {
                return Taken::WentBack;
            };
            let rows = found.rows.into_iter().zip(is_fresh);
            fresh[journal.place()] = rows.filter(|(_, fresh)| *fresh).map(|(row, _)| row).collect();
        }
        let [runs, changes] = fresh;
        let mut ended = BTreeSet::new();
        let mut items = self.ends(runs, &mut ended);
        let present = present.filter(|_| all).map(|present| (present.running, present.sessions));
        let (running, sessions) = present.unzip();
        items.extend(running.into_iter().flat_map(|running| self.starts(running, &ended)));
        let changes = changes.into_iter().map(|(number, entry)| Item::Row(Journal::Audit, number, entry)).collect();
        let mut told = self.tell_items(merged(items, changes), mark);
        if let Some(sessions) = sessions {
            if self.tell_sessions(sessions, &mut told) {
                self.tails.iter_mut().for_each(|tail| tail.commits(at));
            }
            self.began = true;
        }
        Taken::Told { told, all }
    }

    /// The runs that are in history now, each with its start if that is news too.
    fn ends(&mut self, rows: Vec<(u64, Entry)>, ended: &mut BTreeSet<RunId>) -> Vec<Item> {
        let mut items = Vec::with_capacity(rows.len());
        for (number, entry) in rows {
            if let Entry::Run(view) = &entry {
                ended.insert(view.id);
                let is_told = self.started.remove(&view.id).is_some();
                let start = start_of(view).filter(|_| self.began && !is_told);
                items.extend(start.map(Item::Event));
            }
            items.push(Item::Row(Journal::Runs, number, entry));
        }
        items
    }

    /// The runs that execute now and did not before.
    fn starts(&mut self, running: Vec<RunView>, ended: &BTreeSet<RunId>) -> Vec<Item> {
        let running: BTreeMap<RunId, RunView> =
            running.into_iter().filter(|view| !ended.contains(&view.id)).map(|view| (view.id, view)).collect();
        self.started.retain(|run, _| running.contains_key(run));
        let mut items = Vec::new();
        for (run, view) in running {
            if !self.started.contains_key(&run)
                && let Some(start) = start_of(&view)
            {
                items.extend(self.began.then(|| Item::Event(start.clone())));
                self.started.insert(run, start);
            }
        }
        items
    }

    /// `mark` is how far everything was told before. Each row moves it; rows behind it in the same look are not told yet.
    fn tell_items(&self, items: Vec<Item>, mut mark: Mark) -> Vec<Told> {
        let tell = |item| match item {
            Item::Event(event) => Told::Event(event),
            Item::Row(journal, number, entry) => {
                let place = journal.place();
                mark.numbers[place] = mark.numbers[place].max(number.min(self.tails[place].low()));
                Told::Row(row_of(number, &entry, mark))
            }
        };
        items.into_iter().map(tell).collect()
    }

    /// Answers whether a session has written a heartbeat since the last look.
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
