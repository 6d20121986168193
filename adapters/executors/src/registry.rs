//! The executors of a node: the offered ones, and those that were withdrawn a short time ago.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::executor::Executor;

/// Executors by name.
pub type ByName = BTreeMap<String, Arc<dyn Executor>>;

/// A set of executors that may change while the node runs. Clones are the same set.
#[derive(Clone)]
pub struct Executors(Arc<RegistryState>);

struct RegistryState {
    sets: RwLock<Sets>,
    linger: Duration,
}

struct Sets {
    offered: Arc<ByName>,
    /// Withdrawn, and until when firings that were claimed for them before may still start.
    leaving: BTreeMap<String, (Instant, Arc<dyn Executor>)>,
}

impl Executors {
    /// `linger`: for how long firings may still start that were claimed before their executor was withdrawn.
    pub fn new(linger: Duration) -> Self {
        let sets = Sets { offered: Arc::default(), leaving: BTreeMap::new() };
        Self(Arc::new(RegistryState { sets: RwLock::new(sets), linger }))
    }

    /// Those for which firings are claimed and jobs are saved.
    pub fn offered(&self) -> Arc<ByName> {
        self.0.sets.read().unwrap_or_else(PoisonError::into_inner).offered.clone()
    }

    /// The one that a claimed firing is to start with.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Executor>> {
        let sets = self.0.sets.read().unwrap_or_else(PoisonError::into_inner);
        let leaving = || sets.leaving.get(name).map(|(_, executor)| executor);
        sets.offered.get(name).or_else(leaving).cloned()
    }

    /// Offers an executor from now on. One of the same name ends what it has.
    pub fn offer(&self, executor: Arc<dyn Executor>) {
        self.change(|offered, leaving| {
            let name = executor.name().to_owned();
            leaving.remove(&name);
            offered.insert(name, executor);
        });
    }

    /// Offers it no more. It stays for firings that were claimed before.
    pub fn withdraw(&self, name: &str) {
        let until = Instant::now() + self.0.linger;
        self.change(|offered, leaving| {
            leaving.extend(offered.remove(name).map(|executor| (name.to_owned(), (until, executor))));
        });
    }

    /// Lets go of what was withdrawn long enough ago.
    pub fn let_go(&self) {
        let now = Instant::now();
        let mut sets = self.0.sets.write().unwrap_or_else(PoisonError::into_inner);
        sets.leaving.retain(|_, (until, _)| *until > now);
    }

    fn change(&self, change: impl FnOnce(&mut ByName, &mut BTreeMap<String, (Instant, Arc<dyn Executor>)>)) {
        let mut sets = self.0.sets.write().unwrap_or_else(PoisonError::into_inner);
        let mut offered = (*sets.offered).clone();
        change(&mut offered, &mut sets.leaving);
        sets.offered = Arc::new(offered);
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::Value;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::executor::{ExecutorDescription, Exit, Live, Outcome, RunFacts};

    struct Named(&'static str, &'static str);

    #[async_trait]
    impl Executor for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn description(&self) -> ExecutorDescription {
            ExecutorDescription { version: self.1.into(), abi: None, params_schema: None, plugin: None }
        }

        fn check(&self, _params: &Value) -> Result<(), Vec<(String, String)>> {
            Ok(())
        }

        async fn run(&self, _facts: RunFacts, _live: Live, _stop: CancellationToken) -> Exit {
            Exit::without_process(Outcome::Failed, "")
        }
    }

    fn found(executors: &Executors, name: &str) -> Option<String> {
        executors.find(name).map(|executor| executor.description().version)
    }

    #[test]
    fn what_is_withdrawn_can_still_start_what_was_claimed() {
        for (linger, stays) in [(Duration::from_secs(3_600), true), (Duration::ZERO, false)] {
            let executors = Executors::new(linger);
            executors.offer(Arc::new(Named("a", "1")));
            let before = executors.offered();
            executors.offer(Arc::new(Named("a", "2")));
            assert_eq!(found(&executors, "a").as_deref(), Some("2"));
            executors.withdraw("a");
            executors.withdraw("b");
            assert_eq!((before.len(), executors.offered().len()), (1, 0));
            executors.let_go();
            assert_eq!(found(&executors, "a").is_some(), stays);
            executors.offer(Arc::new(Named("a", "3")));
            assert_eq!(found(&executors, "a").as_deref(), Some("3"));
        }
    }
}
