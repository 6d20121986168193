//! A trusted plugin in the server itself (`isolation = "in_process"`): fast, but its crash is the server's crash.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::run_table::{Completion, Entry, RunTable};
use crate::dylib::abi_input::AbiInput;
use crate::dylib::catalog::Plugin;
use crate::dylib::frames::Report;
use crate::dylib::library::Library;
use crate::dylib::run_threads::{RunEvents, RunThreads};
use carillon_keeper::KeeperHandle;

/// A plugin that is loaded here. It is never unloaded.
pub(crate) struct InServer {
    name: String,
    keeper: KeeperHandle,
    pub(crate) runs: Arc<RunTable>,
    stage: RunThreads<Ends>,
    begun: AtomicU64,
}

impl InServer {
    /// Loads the plugin into this process; the error is a sentence. Call it within a tokio runtime.
    pub(crate) fn load(plugin: &Plugin, keeper: KeeperHandle) -> Result<Arc<Self>, String> {
        let library = Library::load(&plugin.image.path())?;
        let runs = Arc::<RunTable>::default();
        let ends = Ends::told_to(runs.clone());
        let stage =
            RunThreads::new(library, ends, None).map_err(|error| format!("signals cannot be set up: {error}"))?;
        Ok(Arc::new(Self { name: plugin.description.name.clone(), keeper, runs, stage, begun: AtomicU64::new(0) }))
    }

    /// Begins a run and answers its key.
    pub(crate) fn begin(&self, facts: AbiInput, entry: Entry<impl Into<Completion>>) -> u64 {
        let key = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.runs.enter(key, entry);
        self.stage.begin(key, self.keeper.deadline_ms(), facts);
        key
    }

    /// Tells a run that it is to stop. May be said again.
    pub(crate) fn cancel(&self, key: u64) {
        self.stage.cancel(key);
    }

    /// A run did not stop. A thread cannot be killed, so the run stays until it returns.
    pub(crate) fn give_up(&self, key: u64) {
        let name = &self.name;
        tracing::error!(
            "run {key} of plugin {name} does not stop; it is in the server's own process, and only the end of that can end it"
        );
    }
}

/// Receives the events of runs from their threads. Ends pass through one task, because each would wake a thread of the
/// runtime otherwise.
struct Ends {
    runs: Arc<RunTable>,
    ends: mpsc::UnboundedSender<(u64, Report)>,
}

impl Ends {
    fn told_to(runs: Arc<RunTable>) -> Self {
        let (ends, mut told) = mpsc::unbounded_channel();
        let to = runs.clone();
        tokio::spawn(async move {
            while let Some((key, report)) = told.recv().await {
                to.ended(key, report);
            }
        });
        Self { runs, ends }
    }
}

impl RunEvents for Ends {
    /// Only the end of a process, which here is the server's own, asks for it.
    fn begun(&self, _key: u64) {}

    fn output(&self, key: u64, bytes: &[u8]) -> Result<(), i32> {
        self.runs.output(key, bytes)
    }

    fn ended(&self, key: u64, report: Report) {
        // The task ends only with the runtime, and then no run waits for its end.
        let _ = self.ends.send((key, report));
    }
}
