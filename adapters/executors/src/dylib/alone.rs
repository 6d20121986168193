//! Runs that go on by themselves. Most runs of a plugin are short, never to be stopped and without a timeout, and a task that
//! waits for such a one costs as much as all else that the server does for it.

use std::sync::Arc;

use super::executor::DylibExecutor;
use super::limits::Limits;
use super::ongoing::{Ongoing, Place};
use super::slots::End;
use super::verdict::{Stopped, judge};
use crate::execution::{Begun, NewRun};
use crate::executor::Executor as _;

/// What is to be done when the run is over.
pub(super) struct Alone {
    pub(super) run: Box<NewRun>,
    pub(super) executor: Arc<DylibExecutor>,
}

impl Alone {
    /// The run is over, here at least.
    pub(super) fn ended(self, end: End, stopped: Option<Stopped>) {
        let Self { run, executor } = self;
        if end.goes_elsewhere(stopped.as_ref()) {
            tokio::spawn(run.follow(executor));
        } else {
            (run.done)(judge(executor.name(), end, stopped));
        }
    }
}

/// A run that nobody follows until it is to stop.
pub(super) struct Unfollowed {
    pub(super) key: u64,
    pub(super) place: Place,
}

impl Begun for Unfollowed {
    fn stopped(&self) {
        // It may be over; and where it went elsewhere it is followed.
        let Some((run, end)) = self.place.slots().wait_for(self.key) else { return };
        let limits = Limits::new(None, run.run.facts.kill_grace, run.run.stop.clone());
        let ongoing = Ongoing::new(self.key, end, self.place.clone());
        tokio::spawn(async move {
            let (end, stopped) = ongoing.follow(&limits).await;
            run.ended(end, stopped);
        });
    }
}
