//! The tiny store goes back in time, and those who were told more than it knows notice.

use carillon_domain::id::SessionId;
use carillon_domain::lost_commits::{LossWindow, commits_were_lost};

use super::{Me, Store};

impl Store {
    pub(super) fn notices(&mut self, (session, acked): Me) -> bool {
        let known = self.sessions.get(&session).map(|row| row.seq).or(self.spent.get(&session).copied());
        let lost = commits_were_lost(acked, known);
        if lost {
            let found = LossWindow { from_at: self.now, until_at: self.now, noticed_at: self.now };
            self.open = Some(self.open.map_or(found, |open| open.with(found)));
        }
        lost
    }

    /// Nothing is claimed or started.
    pub fn withholds(&mut self, me: Me) -> bool {
        self.notices(me) || self.open.is_some()
    }

    pub(super) fn spend(&mut self, session: SessionId) {
        if let Some(row) = self.sessions.remove(&session) {
            self.spent.insert(session, row.seq);
        }
    }

    /// Somebody has looked at it.
    pub fn accept(&mut self) {
        if let Some(window) = self.open.take() {
            self.losses_until = self.losses_until.max(Some(window.until_at));
        }
    }

    /// Goes back to what it was then; the clock goes on.
    pub fn restore(&mut self, backup: &Store) {
        *self = Self { now: self.now, ..backup.clone() };
    }

    /// Whether whoever knows of this session would notice that the store is this one again; if not, that the session could
    /// not do anything with it.
    pub fn would_tell(&self, (session, acked): Me) -> bool {
        self.sessions.get(&session).is_none_or(|row| commits_were_lost(acked, Some(row.seq)))
    }
}
