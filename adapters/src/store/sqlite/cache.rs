//! Definitions that were read and parsed before, by (job, generation): a claim of a thousand rows parses none.
//!
//! Two maps of bounded size: what is used moves to the young one; when that is full it becomes the old one, and what nobody
//! used since goes. A connection that writes has a cache of its own and empties it at every rollback, because a number or a
//! generation that was rolled back may come again with another definition.

use std::collections::HashMap;
use std::sync::Arc;

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use crate::store::definition::Definition;

const HALF: usize = 8192;

/// Bounded, and a little forgetful.
#[derive(Debug, Default)]
pub(in crate::store) struct Cache {
    young: HashMap<(JobId, u64), Arc<Definition>>,
    old: HashMap<(JobId, u64), Arc<Definition>>,
    uncertain_until: Option<Timestamp>,
}

impl Cache {
    pub fn get(&mut self, id: JobId, generation: u64) -> Option<Arc<Definition>> {
        if let Some(found) = self.young.get(&(id, generation)) {
            return Some(found.clone());
        }
        let found = self.old.remove(&(id, generation))?;
        self.put(id, found.clone());
        Some(found)
    }

    pub fn put(&mut self, id: JobId, definition: Arc<Definition>) {
        if self.young.len() >= HALF {
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
