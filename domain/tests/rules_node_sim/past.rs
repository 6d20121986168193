//! Worlds in which the store goes back in time: where all that know more of it than it does itself are told so, no firing of
//! a job with `on_lost = skip` starts twice, over all pasts that there were.

use std::collections::BTreeSet;

use carillon_domain::id::{JobId, SessionId};
use carillon_domain::job::{Job, OnLost};
use carillon_domain::run::Trigger;
use carillon_domain::time::Timestamp;

use super::{Process, World};
use crate::store::Store;

#[derive(Debug, Default)]
pub struct Past {
    backup: Option<Store>,
    /// How often the store went back.
    pub restored: u64,
    restored_at: Timestamp,
    /// Who can tell that it did, until somebody has.
    witnesses: Vec<SessionId>,
    /// All witnesses ended before they could tell, or a node began before: then it may claim what has run.
    pub unnoticed: bool,
}

/// Jobs are called after their numbers.
pub fn number_of(job: &Job) -> JobId {
    JobId(job.name.trim_start_matches("job-").parse().expect("a number"))
}

impl World {
    /// A world in which the store goes back in time.
    pub fn with_pasts(seed: u64) -> Self {
        Self { past: Some(Past::default()), ..Self::new(seed) }
    }

    pub fn restored(&self) -> u64 {
        self.past.as_ref().map_or(0, |past| past.restored)
    }

    /// All who could tell that it did ended before they had, or a node began before.
    pub fn unnoticed(&self) -> bool {
        self.past.as_ref().is_some_and(|past| past.unnoticed)
    }

    pub(super) fn went_back(&self) -> bool {
        self.restored() > 0
    }

    /// Backups, restores, and somebody who accepts them.
    pub(super) fn play_with_time(&mut self) {
        let wants = self.dice.below(120);
        let all_would_tell = |backup: &Store| {
            let mut alive = self.processes.iter().filter(|process| process.alive);
            alive.all(|process| backup.would_tell((process.session, process.node.acked())))
        };
        let alive = |process: &&Process| process.alive;
        let alive: Vec<SessionId> = self.processes.iter().filter(alive).map(|process| process.session).collect();
        let Some(past) = &mut self.past else { return };
        // A window that was open in the backup says nothing of this loss.
        if self.store.open.is_some_and(|open| open.until_at >= past.restored_at) {
            past.witnesses.clear();
        } else if !past.witnesses.is_empty() {
            let witness = |session: &SessionId| past.witnesses.contains(session);
            past.unnoticed |= !alive.iter().any(witness) || !alive.iter().all(witness);
        }
        match wants {
            0..=1 if self.faults => past.backup = Some(self.store.clone()),
            2..=7 if self.faults => {
                if let Some(backup) = past.backup.as_ref().filter(|backup| all_would_tell(backup)) {
                    self.store.restore(backup);
                    past.restored += 1;
                    past.restored_at = self.store.now;
                    past.unnoticed |= alive.is_empty();
                    past.witnesses = alive;
                }
            }
            8..=9 => self.store.accept(),
            _ => {}
        }
    }

    /// S2, for jobs that ask for it: what the processes really started, whatever the store remembers of it.
    pub(super) fn check_starts_over_all_pasts(&self) {
        if self.unnoticed() {
            return;
        }
        let mut seen = BTreeSet::new();
        for (key, attempt, _) in &self.spawned {
            let firing = (key.job, key.due_at, key.trigger == Trigger::Manual, *attempt);
            let once = self.store.jobs[&key.job].job.on_lost == OnLost::Skip;
            assert!(seen.insert(firing) || !once, "S2: attempt {attempt} of {key:?} started twice");
        }
    }
}
