//! Definitions that were read and parsed before, by (job, generation). A claim of a thousand rows then parses none.
//!
//! There is room for the jobs of all firings that a node may hold: at short intervals the same jobs return again and again. A
//! connection that writes has a cache of its own and empties it at every rollback. A number that was rolled back may return
//! with another definition.

use std::sync::Arc;

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use crate::cache::two_gen_map::TwoGenMap;
use crate::definition::Definition;

/// The least room: people look at jobs that this node does not hold.
const LEAST: usize = 8192;

/// Definitions that were used lately.
#[derive(Debug)]
pub(crate) struct Cache(TwoGenMap<(JobId, u64), Arc<Definition>>);

impl Cache {
    /// For a node that holds at most so many firings.
    pub fn of(held: usize) -> Self {
        Self(TwoGenMap::of(held.max(LEAST)))
    }

    pub fn get(&mut self, id: JobId, generation: u64) -> Option<Arc<Definition>> {
        self.0.touch((id, generation)).cloned()
    }

    pub fn put(&mut self, id: JobId, definition: Arc<Definition>) {
        self.0.put((id, definition.generation), definition);
    }

    /// See [`TwoGenMap::forget_lost`].
    pub fn forget_lost(&mut self, losses_until: Option<Timestamp>) {
        self.0.forget_lost(losses_until);
    }

    pub fn clear(&mut self) {
        self.0.clear();
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
            assert!(cache.0.len() <= 2 * held as usize);
            assert_eq!(known(&mut cache, 0..held), 0, "what nobody uses goes");
        }
    }
}
