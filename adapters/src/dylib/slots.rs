//! What the server keeps of each run that goes on in one place: its output so far, and who waits for its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::stage::Sink;
use super::verdict::HostEnd;
use super::wire::Report;
use crate::executor::Live;
use crate::keeper::output::Output;

/// How a run came to its end.
pub(super) enum End {
    /// The plugin returned, or was not called, and why.
    Reported(Report, Output),
    /// The process that it was in is gone.
    HostEnded { key: u64, host: Arc<HostEnd>, alone: bool, output: Output },
    /// The process is gone, and the plugin had not been called for this run: it can go to another one.
    NotBegun(Arc<HostEnd>),
}

struct Slot {
    begun: bool,
    /// It was to stop and did not.
    given_up: bool,
    kill_grace: Duration,
    output: Output,
    live: Live,
    end: oneshot::Sender<End>,
}

/// The runs in one place, by key.
#[derive(Default)]
pub(super) struct Slots(Mutex<BTreeMap<u64, Slot>>);

impl Slots {
    /// Enters a run, and answers where its end will be told.
    pub(super) fn enter(&self, key: u64, live: Live, kill_grace: Duration) -> oneshot::Receiver<End> {
        let (end, told) = oneshot::channel();
        let slot = Slot { begun: false, given_up: false, kill_grace, output: Output::default(), live, end };
        self.lock().insert(key, slot);
        told
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
        slots.values().filter(|slot| !slot.given_up).map(|slot| slot.kill_grace).max()
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
            // Nobody may be waiting any more.
            let _ = slot.end.send(end);
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
            slot.live.printed(bytes);
        }
        Ok(())
    }

    fn ended(&self, key: u64, report: Report) {
        let slot = self.lock().remove(&key);
        let _ = slot.map(|slot| slot.end.send(End::Reported(report, slot.output)));
    }
}
