//! What the server keeps of each run that goes on in one place: its output so far, and who waits for its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::alone::Alone;
use super::stage::Sink;
use super::verdict::{HostEnd, NotStarted, Stopped};
use super::wire::Report;
use crate::executor::{Ended, Live};
use carillon_keeper::output::Output;

/// How a run came to its end.
pub(super) enum End {
    /// The plugin returned, or was not called, and why.
    Reported(Report, Output),
    /// The process that it was in is gone.
    HostEnded { key: u64, host: Arc<HostEnd>, alone: bool, output: Output },
    /// The process is gone, and the plugin had not been called for this run: it can go to another one.
    NotBegun(Arc<HostEnd>),
    /// It was never handed over, and why.
    NotStarted(NotStarted),
}

impl End {
    /// Whether the run is not over, but is to go to another process.
    pub(super) fn goes_elsewhere(&self, stopped: Option<&Stopped>) -> bool {
        matches!(self, Self::NotBegun(host) if stopped.is_none() && host.exit.how != Ended::Lost)
    }
}

/// Who is told of the end of a run.
pub(super) enum Told {
    /// Somebody who waits for it.
    Waiting(oneshot::Sender<End>),
    /// Nobody waits: what is to be done then.
    Alone(Alone),
}

impl Told {
    pub(super) fn tell(self, end: End) {
        match self {
            // Nobody may be waiting any more.
            Self::Waiting(waiting) => drop(waiting.send(end)),
            Self::Alone(run) => run.ended(end, None),
        }
    }
}

impl From<oneshot::Sender<End>> for Told {
    fn from(waiting: oneshot::Sender<End>) -> Self {
        Self::Waiting(waiting)
    }
}

impl From<Alone> for Told {
    fn from(run: Alone) -> Self {
        Self::Alone(run)
    }
}

/// A run that is to be entered, and who is told of its end.
pub(super) struct Entry<T> {
    pub(super) live: Live,
    pub(super) kill_grace: Duration,
    pub(super) told: T,
}

struct Slot {
    begun: bool,
    /// It was to stop and did not.
    given_up: bool,
    output: Output,
    entry: Entry<Told>,
}

/// The runs in one place, by key.
#[derive(Default)]
pub(super) struct Slots(Mutex<BTreeMap<u64, Slot>>);

impl Slots {
    /// Enters a run, under a key that no other has had.
    pub(super) fn enter(&self, key: u64, entry: Entry<impl Into<Told>>) {
        let Entry { live, kill_grace, told } = entry;
        let entry = Entry { live, kill_grace, told: told.into() };
        let slot = Slot { begun: false, given_up: false, output: Output::default(), entry };
        self.lock().insert(key, slot);
    }

    /// The end of a run that nobody waits for is waited for from now on. `None` if it is over, or waited for already.
    pub(super) fn wait_for(&self, key: u64) -> Option<(Alone, oneshot::Receiver<End>)> {
        let mut slots = self.lock();
        let told = &mut slots.get_mut(&key)?.entry.told;
        let (waiting, end) = oneshot::channel();
        match std::mem::replace(told, Told::Waiting(waiting)) {
            Told::Alone(run) => Some((run, end)),
            as_before => {
                *told = as_before;
                None
            }
        }
    }

    /// How many runs there are.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Notes that a run did not stop. Answers how long the others here may still take; `None` if there are no others.
    pub(super) fn give_up(&self, key: u64) -> Option<Duration> {
        let mut slots = self.lock();
        if let Some(slot) = slots.get_mut(&key) {
            slot.given_up = true;
        }
        slots.values().filter(|slot| !slot.given_up).map(|slot| slot.entry.kill_grace).max()
    }

    /// Whether all that is left does not stop.
    pub(super) fn all_given_up(&self) -> bool {
        self.lock().values().all(|slot| slot.given_up)
    }

    /// The process is gone: tells every run.
    pub(super) fn end_all(&self, host: &Arc<HostEnd>) {
        let slots = std::mem::take(&mut *self.lock());
        let alone = slots.values().filter(|slot| slot.begun).count() == 1;
        for (key, slot) in slots {
            let host = host.clone();
            let end = match slot.begun {
                true => End::HostEnded { key, host, alone, output: slot.output },
                false => End::NotBegun(host),
            };
            slot.entry.told.tell(end);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Slot>> {
        // Every change is one call, so a panic elsewhere leaves the table whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Arc<Slots> {
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
        if let Some(Slot { output, entry, .. }) = slot {
            entry.told.tell(End::Reported(report, output));
        }
    }
}
