//! Definitions that were read and parsed before, by (job, generation): a claim of a thousand rows parses none.
//!
//! Two maps of bounded size: what is used moves to the young one; when that is full it becomes the old one, and what nobody
//! used since goes. Each takes the jobs of all firings that a node may hold: where short intervals keep a node full, the same
//! ones come again and again, and one map too small would read each anew. A connection that writes has a cache of its own and empties it at every rollback, because a number or a
//! generation that was rolled back may come again with another definition.

use std::collections::HashMap;
use std::sync::Arc;

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use crate::store::definition::Definition;

/// Of each half at the least: people look at jobs that no node of theirs holds.
const LEAST: usize = 8192;

/// Bounded, and a little forgetful.
#[derive(Debug)]
pub(in crate::store) struct Cache {
    half: usize,
    young: HashMap<(JobId, u64), Arc<Definition>>,
    old: HashMap<(JobId, u64), Arc<Definition>>,
    uncertain_until: Option<Timestamp>,
}

impl Cache {
    /// For a node that holds so many firings at the most.
    pub fn of(held: usize) -> Self {
        Self { half: held.max(LEAST), young: HashMap::new(), old: HashMap::new(), uncertain_until: None }
    }

    pub fn get(&mut self, id: JobId, generation: u64) -> Option<Arc<Definition>> {
        if let Some(found) = self.young.get(&(id, generation)) {
            return Some(found.clone());
        }
        let found = self.old.remove(&(id, generation))?;
        self.put(id, found.clone());
        Some(found)
    }

    pub fn put(&mut self, id: JobId, definition: Arc<Definition>) {
        if self.young.len() >= self.half {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert((id, definition.generation), definition);
    }

    /// After commits were lost up to another time than before, what was read may be of one of them, and its number and
    /// generation come again.
    pub fn forget_lost(&mut self, uncertain_until: Option<Timestamp>) {
        if self.uncertain_until != uncertain_until {
            self.uncertain_until = uncertain_until;
            self.clear();
        }
    }

    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use carillon_domain::job::Job;

    use super::*;

    fn definition() -> Arc<Definition> {
        let at = Timestamp::from_ms(7);
        let job = Arc::new(Job::new(("default", "j"), "@every 1s", "{}"));
        let timeline = job.timeline(at).unwrap();
        Arc::new(Definition { job, timeline, generation: 1, anchor_at: at, created_at: at, updated_at: at })
    }

    #[test]
    fn the_jobs_of_all_that_is_held_are_known_and_no_more_than_twice_as_many() {
        for held in [LEAST, LEAST + 1_000] {
            let (mut cache, definition) = (Cache::of(held), definition());
            let held = held as u64;
            let put = |cache: &mut Cache, ids: std::ops::Range<u64>| {
                ids.for_each(|id| cache.put(JobId(id), definition.clone()));
            };
            let known = |cache: &mut Cache, ids: std::ops::Range<u64>| {
                ids.filter(|id| cache.get(JobId(*id), 1).is_some()).count()
            };
            put(&mut cache, 0..held);
            for _ in 0..3 {
                assert_eq!(known(&mut cache, 0..held), held as usize, "round after round");
            }
            put(&mut cache, held..4 * held);
            assert!(cache.young.len() + cache.old.len() <= 2 * held as usize);
            assert_eq!(known(&mut cache, 0..held), 0, "what nobody uses goes");
        }
    }
}
