//! The runs in one place (a host or the server): their output so far, and the receivers of their ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::exit_reason::{HostEnd, RunEnd, Stopped, judge};
use crate::dylib::frames::Report;
use crate::dylib::run_threads::RunEvents;
use crate::execution::NewRun;
use crate::executor::{Executor, Live};
use carillon_keeper::output::Output;

/// A run without a task that follows it.
pub(crate) struct Detached {
    pub(crate) run: Box<NewRun>,
    pub(crate) executor: Arc<dyn Executor>,
}

impl Detached {
    /// The run has ended, at least in this place.
    pub(crate) fn ended(self, end: RunEnd, stopped: Option<Stopped>) {
        let Self { run, executor } = self;
        if end.goes_elsewhere(stopped.as_ref()) {
            tokio::spawn(run.follow(executor));
        } else {
            (run.done)(judge(executor.name(), end, stopped));
        }
    }
}

/// The receiver of a run's end.
pub(crate) enum Completion {
    /// A task waits for it.
    Waiting(oneshot::Sender<RunEnd>),
    /// No task waits for it.
    Detached(Detached),
}

impl Completion {
    pub(crate) fn complete(self, end: RunEnd) {
        match self {
            // The task may be gone.
            Self::Waiting(waiting) => drop(waiting.send(end)),
            Self::Detached(run) => run.ended(end, None),
        }
    }
}

impl From<oneshot::Sender<RunEnd>> for Completion {
    fn from(waiting: oneshot::Sender<RunEnd>) -> Self {
        Self::Waiting(waiting)
    }
}

impl From<Detached> for Completion {
    fn from(run: Detached) -> Self {
        Self::Detached(run)
    }
}

/// A run before it is entered.
pub(crate) struct Entry<T> {
    pub(crate) live: Live,
    pub(crate) kill_grace: Duration,
    pub(crate) told: T,
}

struct TableRow {
    begun: bool,
    /// It was to stop and did not.
    given_up: bool,
    output: Output,
    entry: Entry<Completion>,
}

/// The runs in one place, by key.
#[derive(Default)]
pub(crate) struct RunTable(Mutex<BTreeMap<u64, TableRow>>);

impl RunTable {
    /// Enters a run, under a key that no other has had.
    pub(crate) fn enter(&self, key: u64, entry: Entry<impl Into<Completion>>) {
        let Entry { live, kill_grace, told } = entry;
        let entry = Entry { live, kill_grace, told: told.into() };
        let slot = TableRow { begun: false, given_up: false, output: Output::default(), entry };
        self.lock().insert(key, slot);
    }

    /// Attaches a waiting task to a detached run. `None` if the run ended or a task waits for it already.
    pub(crate) fn wait_for(&self, key: u64) -> Option<(Detached, oneshot::Receiver<RunEnd>)> {
        let mut runs = self.lock();
        let told = &mut runs.get_mut(&key)?.entry.told;
        let (waiting, end) = oneshot::channel();
        match std::mem::replace(told, Completion::Waiting(waiting)) {
            Completion::Detached(run) => Some((run, end)),
            as_before => {
                *told = as_before;
                None
            }
        }
    }

    /// How many runs there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Notes that a run did not stop. Answers how long the others here may still take; `None` if there are no others.
    pub(crate) fn give_up(&self, key: u64) -> Option<Duration> {
        let mut runs = self.lock();
        if let Some(slot) = runs.get_mut(&key) {
            slot.given_up = true;
        }
        runs.values().filter(|slot| !slot.given_up).map(|slot| slot.entry.kill_grace).max()
    }

    /// Whether all that is left does not stop.
    pub(crate) fn all_given_up(&self) -> bool {
        self.lock().values().all(|slot| slot.given_up)
    }

    /// The process is gone: tells every run.
    pub(crate) fn end_all(&self, host: &Arc<HostEnd>) {
        let runs = std::mem::take(&mut *self.lock());
        let alone = runs.values().filter(|slot| slot.begun).count() == 1;
        for (key, slot) in runs {
            let host = host.clone();
            let end = match slot.begun {
                true => RunEnd::HostEnded { key, host, alone, output: slot.output },
                false => RunEnd::NotBegun(host),
            };
            slot.entry.told.complete(end);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, TableRow>> {
        // Every change is one call, so a panic elsewhere leaves the table whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunEvents for Arc<RunTable> {
    fn begun(&self, key: u64) {
        if let Some(slot) = self.lock().get_mut(&key) {
            slot.begun = true;
        }
    }

    fn output(&self, key: u64, bytes: &[u8]) -> Result<(), i32> {
        if let Some(slot) = self.lock().get_mut(&key) {
            slot.output.push(bytes);
            slot.entry.live.printed(bytes);
        }
        Ok(())
    }

    fn ended(&self, key: u64, report: Report) {
        let slot = self.lock().remove(&key);
        if let Some(TableRow { output, entry, .. }) = slot {
            entry.told.complete(RunEnd::Reported(report, output));
        }
    }
}
