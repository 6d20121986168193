//! The runs whose exit the node awaits, and the end of all of them when the keeper dies.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use carillon_domain::id::RunId;
use carillon_domain::run::Outcome;
use tokio::sync::{oneshot, watch};

use crate::exit::{Exit, Live};
use crate::process::cgroup::kill_and_remove;
use crate::protocol::frames::Report;

/// The receivers of a run's output and exit.
pub(crate) struct Slot {
    pub(crate) live: Live,
    pub(crate) exit: oneshot::Sender<Exit>,
    /// Known once the keeper has started it.
    pub(crate) group: Option<i32>,
}

#[derive(Default)]
struct State {
    slots: HashMap<RunId, Slot>,
    /// The keeper's directory of cgroups, where it has one.
    cgroup: Option<PathBuf>,
    dead: Option<String>,
}

/// Shared by the handle and the task that reads the keeper's reports.
pub(crate) struct Registry {
    state: Mutex<State>,
    died: watch::Sender<Option<String>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), died: watch::Sender::new(None) }
    }

    pub(crate) fn died(&self) -> watch::Receiver<Option<String>> {
        self.died.subscribe()
    }

    /// Enters a run; on refusal, its exit.
    pub(crate) fn enter(&self, run: RunId, slot: Slot) -> Result<(), Exit> {
        let mut state = self.state();
        if let Some(sentence) = &state.dead {
            return Err(Exit::without_process(Outcome::Lost, sentence.clone()));
        }
        match state.slots.entry(run) {
            Entry::Occupied(_) => Err(Exit::without_process(Outcome::Failed, format!("run {run} is already running"))),
            Entry::Vacant(vacant) => {
                vacant.insert(slot);
                Ok(())
            }
        }
    }

    /// Handles a report of the keeper.
    pub(crate) fn on_report(&self, report: Report) {
        match report {
            Report::Ready { cgroup } if cgroup.is_empty() => {}
            Report::Ready { cgroup } => {
                let cgroup = PathBuf::from(OsString::from_vec(cgroup));
                tracing::debug!(cgroup = %cgroup.display(), "the keeper is ready");
                self.state().cgroup = Some(cgroup);
            }
            Report::Started { run, pid } => {
                if let Some(slot) = self.state().slots.get_mut(&run) {
                    slot.group = Some(pid);
                }
            }
            Report::Chunk { run, bytes } => {
                if let Some(slot) = self.state().slots.get(&run) {
                    slot.live.printed(&bytes);
                }
            }
            Report::Ended { run, exit } => {
                let slot = self.state().slots.remove(&run);
                // The receiver may be gone.
                let _ = slot.map(|slot| slot.exit.send(exit));
            }
            Report::Note(text) => tracing::warn!("keeper: {text}"),
        }
    }

    /// The keeper is dead, so every run is lost. Kills the process groups and cgroups that the node knows. Best effort: the
    /// main processes died with the keeper, and the number of a group may have been reused.
    pub(crate) fn on_death(&self, sentence: &str) {
        let (slots, cgroup) = {
            let mut state = self.state();
            state.dead = Some(sentence.to_owned());
            (std::mem::take(&mut state.slots), state.cgroup.take())
        };
        for slot in slots.into_values() {
            if let Some(group) = slot.group {
                // SAFETY: takes numbers only.
                unsafe { libc::killpg(group, libc::SIGKILL) };
            }
            let _ = slot.exit.send(Exit::without_process(Outcome::Lost, sentence));
        }
        if let Some(cgroup) = cgroup {
            kill_and_remove(&cgroup);
        }
    }

    /// Announces the death, after the keeper was reaped.
    pub(crate) fn announce_death(&self, sentence: String) {
        self.died.send_replace(Some(sentence));
    }

    /// Every change is one call, so a panic under the lock leaves the table consistent.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
