//! The way to the loops, and their counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A way to the loops of this node; clones are the same.
#[derive(Clone, Default)]
pub struct AlertsHandle {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    watch: Notify,
    send: Notify,
    /// Whether there is anybody to tell of anything.
    busy: AtomicBool,
    counts: Mutex<AlertCounts>,
}

/// The work of this node since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertCounts {
    /// Notices that its watch steps have made.
    pub notices: u64,
    /// Attempts to send, by the kind of the fact and by how they ended.
    pub attempts: BTreeMap<(&'static str, &'static str), u64>,
    /// Stored rows that its last look could not read, by their noun.
    pub unreadable: BTreeMap<&'static str, u64>,
}

impl AlertsHandle {
    /// Something is to be sent, or somebody new is to be told: the loops need not wait for their next look.
    pub fn wake(&self) {
        self.shared.watch.notify_one();
        self.shared.send.notify_one();
    }

    /// The counters.
    pub fn counts(&self) -> AlertCounts {
        self.count().clone()
    }

    /// The same, to change them.
    pub(super) fn count(&self) -> MutexGuard<'_, AlertCounts> {
        self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until somebody wants a watch step.
    pub(super) async fn step_is_wanted(&self) {
        self.shared.watch.notified().await;
    }

    /// There may be deliveries.
    pub(super) fn send(&self) {
        self.shared.send.notify_one();
    }

    /// Waits until there may be deliveries.
    pub(super) async fn send_is_wanted(&self) {
        self.shared.send.notified().await;
    }

    /// Notes whether there is anybody to tell.
    pub(super) fn is_busy(&self, busy: bool) {
        self.shared.busy.store(busy, Ordering::Relaxed);
    }

    /// Whether there is anybody to tell.
    pub(super) fn busy(&self) -> bool {
        self.shared.busy.load(Ordering::Relaxed)
    }
}
