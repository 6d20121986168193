//! Storms: a route that has very much to tell within a minute tells it in one message.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::time::Timestamp;

use super::notice::{Notice, NoticeId, State};
use super::sentence;
use super::when::When;

/// The count of what a route told within the last minute. A route that tells nothing has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storm {
    /// When the minute began.
    pub since: Timestamp,
    /// How many notices went by themselves in it; never more than [`Storm::MOST`].
    pub told: u32,
    /// How many wait for the message at the end of the minute, by kind and whether the trouble is over.
    pub folded: BTreeMap<(When, State), u64>,
    /// Names of the first of them.
    pub names: Vec<String>,
}

impl Storm {
    /// The most notices of a route that go by themselves in a minute.
    pub const MOST: u32 = 20;
    /// The minute.
    pub const SPAN: Duration = Duration::from_secs(60);
    /// How many names a message tells.
    pub const NAMES: usize = 5;

    /// When its minute ends, and it must be looked at.
    pub fn ends_at(&self) -> Timestamp {
        self.since + Self::SPAN
    }

    /// The notices to send for `raw`, those that one step made for a route, and the storm after them. No notice vanishes: each goes by
    /// itself or is counted in one message. More than [`Self::MOST`] at once become one message at once.
    pub fn pass(before: Option<Storm>, route: &str, raw: Vec<Notice>, now: Timestamp) -> (Option<Storm>, Vec<Notice>) {
        let mut sent = Vec::new();
        let mut storm = before;
        if storm.as_ref().is_some_and(|storm| storm.ends_at() <= now) {
            storm = storm.take().and_then(|storm| storm.end(route, now, &mut sent));
        }
        if raw.is_empty() {
            return (storm, sent);
        }
        let mut storm = storm.unwrap_or_else(|| Self::begin(now, 0));
        let free = usize::try_from(Self::MOST - storm.told.min(Self::MOST)).unwrap_or(0);
        if raw.len() <= free {
            storm.told += u32::try_from(raw.len()).unwrap_or(Self::MOST);
            sent.extend(raw);
            return (Some(storm), sent);
        }
        // So many come together, and none went before them.
        let at_once = storm.told == 0;
        let by_itself = if at_once { 0 } else { free };
        let mut raw = raw.into_iter();
        sent.extend(raw.by_ref().take(by_itself));
        raw.for_each(|notice| storm.fold(&notice));
        if at_once {
            sent.push(storm.message(route, now));
            storm = Self::begin(now, Self::MOST);
        }
        storm.told = Self::MOST;
        (Some(storm), sent)
    }

    /// A minute that begins now; `told` of its places are taken.
    const fn begin(now: Timestamp, told: u32) -> Self {
        Self { since: now, told, folded: BTreeMap::new(), names: Vec::new() }
    }

    fn fold(&mut self, notice: &Notice) {
        *self.folded.entry((notice.when, notice.state)).or_default() += 1;
        let name = sentence::name_of(notice);
        if self.names.len() < Self::NAMES && !self.names.contains(&name) {
            self.names.push(name);
        }
    }

    /// The end of the minute. The next one of a storm folds from its first notice on, so a long storm tells one message a minute.
    fn end(self, route: &str, now: Timestamp, sent: &mut Vec<Notice>) -> Option<Storm> {
        if self.folded.is_empty() {
            return None;
        }
        sent.push(self.message(route, now));
        Some(Self::begin(now, Self::MOST))
    }

    fn message(&self, route: &str, now: Timestamp) -> Notice {
        let folded = self.folded.values().sum();
        let most = self.folded.iter().max_by_key(|(_, count)| **count);
        let when = most.map_or(When::Failed, |((when, _), _)| *when);
        let all_over = self.folded.keys().all(|(_, state)| *state == State::Recovered);
        let since = self.since.to_string();
        Notice {
            id: NoticeId::derived(&["storm", route, &since, &now.to_string()]),
            route: route.to_owned(),
            when,
            state: if all_over { State::Recovered } else { State::Open },
            namespace: None,
            job: None,
            part: None,
            run: None,
            due_at: None,
            at: now,
            sentence: sentence::of_storm(route, self.told > 0, &self.folded, &self.names),
            then: sentence::AFTER_STORM.to_owned(),
            repeats: 0,
            folded,
            thread: NoticeId::derived(&["storm", route]),
            with_output: false,
            cron_mail: None,
        }
    }
}
