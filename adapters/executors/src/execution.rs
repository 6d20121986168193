//! A run in progress, of any executor.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::executor::{Executor, Exit, Live, RunFacts};

/// A run before its start.
pub struct NewRun {
    /// The facts of the run.
    pub facts: RunFacts,
    /// The receiver of its output while it runs.
    pub live: Live,
    /// Called once with its exit. Must not block.
    pub done: Box<dyn FnOnce(Exit) + Send>,
    /// Cancelled when it has to stop.
    pub stop: CancellationToken,
}

/// A run without a task that follows it.
pub trait DetachedRun: Send {
    /// Its [`NewRun::stop`] was cancelled.
    fn stopped(&self);
}

/// A run in progress. Dropping this does not end it.
pub struct Execution {
    stop: CancellationToken,
    begun: Option<Box<dyn DetachedRun>>,
}

impl Execution {
    /// Begins the run, in a task of its own where `executor` needs one. Call it within a tokio runtime.
    pub fn start(
        executor: Arc<dyn Executor>,
        facts: RunFacts,
        live: Live,
        done: impl FnOnce(Exit) + Send + 'static,
    ) -> Self {
        let stop = CancellationToken::new();
        let run = Box::new(NewRun { facts, live, done: Box::new(done), stop: stop.clone() });
        let begun = match executor.clone().begin(run) {
            Ok(begun) => Some(begun),
            Err(run) => {
                tokio::spawn(run.follow(executor));
                None
            }
        };
        Self { stop, begun }
    }

    /// Asks the run to end: politely, then by force after its `kill_grace`.
    pub fn stop(&self) {
        if !self.stop.is_cancelled() {
            self.stop.cancel();
            self.begun.iter().for_each(|begun| begun.stopped());
        }
    }
}

impl NewRun {
    /// Runs to the end and calls `done`.
    pub(crate) async fn follow(self, executor: Arc<dyn Executor>) {
        let Self { facts, live, done, stop } = self;
        done(executor.run(facts, live, stop).await);
    }
}
