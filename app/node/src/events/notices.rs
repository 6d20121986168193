//! Notices of routes as events. They have no mark: who resumes gets the newest ones again, and tells repeats by their key.

use std::collections::VecDeque;
use std::time::Duration;

use carillon_domain::alert::Notice;
use carillon_store::feed::{Fresh, JournalAsk, Tail};
use carillon_store::{Store, StoreError};

use super::event::{Event, alert_event};

/// How long between two looks: a message is minutes late more often than it is seconds early.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many notices are read in one look.
const AT_ONCE: usize = 1_000;
/// So many numbers back from the newest one the first look goes, and so many events are kept for those who resume.
const KEPT: u64 = 200;

/// How far notices were told.
#[derive(Debug, Default)]
pub(super) struct Notices {
    tail: Option<Tail>,
    began: bool,
    looked_at: Option<Duration>,
    recent: VecDeque<Event>,
}

impl Notices {
    /// The newest events, for those who resume.
    pub fn recent(&self) -> impl Iterator<Item = &Event> {
        self.recent.iter()
    }

    /// Looks if it is time; the events that are new. `at` is a clock that never goes back.
    pub async fn look(
        &mut self,
        store: &dyn Store,
        at: Duration,
        commits_within: Duration,
    ) -> Result<Vec<Event>, StoreError> {
        if self.looked_at.is_some_and(|before| at.saturating_sub(before) < LOOK_EVERY) {
            return Ok(Vec::new());
        }
        self.looked_at = Some(at);
        let mut tail = match self.tail.take() {
            Some(tail) => tail,
            None => Tail::after(store.notices_numbered(&JournalAsk::newest()).await?.newest.saturating_sub(KEPT)),
        };
        let found = store.notices_numbered(&tail.ask(AT_ONCE)).await;
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.tail = Some(tail);
                return Err(error);
            }
        };
        let numbers: Vec<u64> = found.rows.iter().map(|(number, _)| *number).collect();
        let Fresh::Rows(fresh) = tail.take(at, &numbers, found.newest, commits_within) else {
            // The feed of the other journals tells its readers.
            *self = Self::default();
            return Ok(Vec::new());
        };
        self.tail = Some(tail);
        let rows = found.rows.iter().zip(fresh).filter(|(_, fresh)| *fresh);
        let news = self.note(rows.map(|((_, notice), _)| notice));
        Ok(if std::mem::replace(&mut self.began, true) { news } else { Vec::new() })
    }

    fn note<'a>(&mut self, notices: impl Iterator<Item = &'a Notice>) -> Vec<Event> {
        let news: Vec<Event> = notices.map(alert_event).collect();
        self.recent.extend(news.iter().cloned());
        let surplus = self.recent.len().saturating_sub(usize::try_from(KEPT).unwrap_or(usize::MAX));
        self.recent.drain(..surplus);
        news
    }
}
