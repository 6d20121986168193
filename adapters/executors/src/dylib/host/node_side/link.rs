//! The handle of one host process: it accepts runs, cancels them, and closes or kills the host.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{mpsc, watch};

use super::exit_reason::{HostEnd, Killed, RunEnd};
use super::run_table::{Completion, Entry, RunTable};
use crate::dylib::MOST_RUNS;
use crate::dylib::abi_input::AbiInput;
use crate::dylib::frames::HostCommand;
use crate::executor::Outcome;
use carillon_keeper::KeeperHandle;

/// Runs after which a host makes room for a fresh one: what a plugin leaks does not add up for ever.
const RUNS_IN_ALL: u64 = 1_000_000;
/// A host process that is or was ready.
pub(crate) struct HostLink {
    keeper: KeeperHandle,
    orders: mpsc::UnboundedSender<Vec<u8>>,
    pub(crate) runs: Arc<RunTable>,
    /// Whether it takes new runs.
    open: AtomicBool,
    begun: AtomicU64,
    pub(crate) kill: watch::Sender<Option<Killed>>,
    end: OnceLock<Arc<HostEnd>>,
}

impl HostLink {
    /// Takes runs from now on, and sends the frames for them to `frames`.
    pub(crate) fn new(keeper: &KeeperHandle, frames: mpsc::UnboundedSender<Vec<u8>>) -> Arc<Self> {
        Arc::new(Self {
            keeper: keeper.clone(),
            orders: frames,
            runs: Arc::default(),
            open: AtomicBool::new(true),
            begun: AtomicU64::new(0),
            kill: watch::Sender::new(None),
            end: OnceLock::new(),
        })
    }

    /// Begins a run and answers its key. Gives it back if the host takes no more: it is to go elsewhere.
    pub(crate) fn begin<T: Into<Completion>>(&self, facts: &AbiInput, entry: Entry<T>) -> Result<u64, Entry<T>> {
        if !self.open.load(Ordering::SeqCst) || self.runs.len() >= MOST_RUNS {
            return Err(entry);
        }
        let key = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if key >= RUNS_IN_ALL {
            self.close();
        }
        let frame = match HostCommand::run_frame(key, self.keeper.deadline_ms(), facts) {
            Ok(frame) => frame,
            Err(sentence) => {
                entry.told.into().complete(RunEnd::NotStarted((Outcome::Failed, sentence)));
                return Ok(key);
            }
        };
        self.runs.enter(key, entry);
        // If the host ended after the check above, its supervisor no longer completes new runs.
        match self.end.get() {
            Some(end) => self.runs.end_all(end),
            None => drop(self.orders.send(frame)),
        }
        Ok(key)
    }

    /// The process is gone. Completes every run.
    pub(crate) fn ended(&self, end: HostEnd) {
        let end = Arc::new(end);
        let _ = self.end.set(end.clone());
        self.runs.end_all(&end);
    }

    /// Takes no new runs from now on.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    /// Asks a run to stop. May be repeated.
    pub(crate) fn cancel(&self, key: u64) {
        let _ = self.orders.send(HostCommand::cancel_frame(key));
    }

    /// A run did not stop. The host takes no new runs, and is killed after its other runs end, at the latest after the
    /// longest kill_grace among them.
    pub(crate) fn give_up(self: &Arc<Self>, key: u64) {
        self.close();
        match self.runs.give_up(key) {
            None => self.kill(Killed::NotStopped),
            Some(patience) => {
                let link = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(patience).await;
                    link.kill(Killed::NotStopped);
                });
            }
        }
    }

    /// Takes no new runs, and ends the process after its last run.
    pub(crate) fn retire(&self) {
        self.close();
        self.end_if_done();
    }

    /// Whether it takes new runs.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    /// Whether its process is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.get().is_some()
    }

    /// Ends a host that takes no more runs and has none left that will end by itself.
    pub(crate) fn end_if_done(&self) {
        if !self.is_open() && self.runs.all_given_up() {
            let why = if self.runs.len() == 0 { Killed::Retired } else { Killed::NotStopped };
            self.kill(why);
        }
    }

    /// Kills the process. The first reason stays.
    pub(crate) fn kill(&self, why: Killed) {
        self.kill.send_if_modified(|killed| killed.replace(why).map(|first| *killed = Some(first)).is_none());
    }
}
