//! The namespaces of jobs, as far as this process has met them. A job never changes its namespace. A look into the table of jobs for each
//! record would cost more than the rest of a count.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use carillon_domain::time::Timestamp;

use crate::cache::two_gen_map::TwoGenMap;

/// How many jobs are remembered at least, if they were met lately: two megabytes.
const JOBS: usize = 50_000;

/// The namespace of each job; `None` if the job is forgotten.
type Known = TwoGenMap<u64, Option<Arc<str>>>;

/// Jobs and their namespaces.
pub struct JobNamespaces {
    known: Mutex<Known>,
}

impl Default for JobNamespaces {
    fn default() -> Self {
        Self { known: Mutex::new(TwoGenMap::of(JOBS)) }
    }
}

impl JobNamespaces {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The namespaces of these jobs that are known, and the jobs that are not.
    pub(crate) fn of(&self, jobs: &BTreeSet<u64>) -> (BTreeMap<u64, Option<Arc<str>>>, Vec<u64>) {
        let (mut found, mut unknown, mut known) = (BTreeMap::new(), Vec::new(), self.known());
        for job in jobs {
            match known.touch(*job) {
                Some(namespace) => _ = found.insert(*job, namespace.clone()),
                None => unknown.push(*job),
            }
        }
        (found, unknown)
    }

    /// Remembers what was looked up.
    pub(crate) fn learn(&self, looked_up: &BTreeMap<u64, Option<Arc<str>>>) {
        let mut known = self.known();
        for (job, namespace) in looked_up {
            known.put(*job, namespace.clone());
        }
    }

    /// Forgets jobs that may be of commits that were lost: their numbers may have been given out again.
    pub(crate) fn forget_lost(&self, losses_until: Option<Timestamp>) {
        self.known().forget_lost(losses_until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_learnt_is_known() {
        let namespaces = JobNamespaces::default();
        let asked = BTreeSet::from([1, 2, 3]);
        assert_eq!(namespaces.of(&asked), (BTreeMap::new(), vec![1, 2, 3]));
        let learnt = BTreeMap::from([(1, Some("a".into())), (3, None)]);
        namespaces.learn(&learnt);
        assert_eq!(namespaces.of(&asked), (learnt, vec![2]), "a forgotten job is not looked for again");
        namespaces.forget_lost(Some(Timestamp::from_ms(7)));
        assert_eq!(namespaces.of(&asked).1, [1, 2, 3]);
    }
}
