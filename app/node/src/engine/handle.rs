//! Questions that the rest of the server may ask of the running engine. Everything here answers at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use carillon_domain::duration::spoken;
use carillon_domain::id::{RunId, SessionId};
use carillon_executors::registry::{ByName, Executors};
use carillon_keeper::boottime_ms;
use carillon_store::LivePart;
use tokio::sync::{Notify, broadcast, mpsc, watch};

use super::Histogram;

/// How much of a running run's output is kept for those who begin to follow it late, in bytes.
const LIVE_OUTPUT_KEPT: usize = 64 * 1024;
/// The node machine counts its runs from 1; those that people ask for come from here on, so that the two never meet.
const FIRST_ASKED_RUN: u64 = 1 << 40;
/// A loop that takes longer than this to go round, in milliseconds, does not schedule.
const LONGEST_ROUND_MS: u64 = 10_000;
/// How many chunks a slow follower may lag behind before it loses some.
const LIVE_CHUNKS_BUFFERED: usize = 256;
/// How much of the end of a run's output followers get anew when they missed it, in bytes.
const END_REPEATED: usize = 32 * 1024;
/// How many bytes at the end tell whether followers have got it.
const END_COMPARED: usize = 4 * 1024;

/// A question to the engine's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// A row changed: look whether something comes up sooner.
    Look,
    /// Somebody wants this run to end: it may be ours.
    Cancel(RunId),
}

/// Whether the node can schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It claims and starts.
    Ready,
    /// It does not, and this is why.
    NotReady(String),
}

impl Readiness {
    /// How it stands, for people.
    pub(crate) fn sentence(&self) -> &str {
        match self {
            Self::Ready => "schedules",
            Self::NotReady(why) => why,
        }
    }
}

/// The engine's counters, for `/metrics` and `/v1/cluster`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Claimed and not started.
    pub prepared: usize,
    /// Started and not finished.
    pub executing: usize,
    /// How many runs may execute here at once; 0 before the engine runs.
    pub max_executing: usize,
    /// The partitions that fall to this node.
    pub partitions: Vec<u16>,
    /// Runs started since the node began.
    pub started_total: u64,
    /// Runs finished since the node began, by status name.
    pub finished_total: BTreeMap<&'static str, u64>,
    /// Calls to the store that failed since the node began, by kind of failure.
    pub store_errors_total: BTreeMap<&'static str, u64>,
    /// How long after their times runs were started.
    pub lags: Histogram,
    /// How long runs lasted, as the node saw it.
    pub durations: Histogram,
    /// How far the database's clock is ahead of this machine's, in milliseconds, as the last heartbeat showed it.
    pub clock_offset_ms: i64,
    /// When the database last answered a call, on the boot clock in milliseconds; 0 before the first answer.
    pub database_heard_ms: u64,
    /// Violations of the domain's invariants seen since the node began; anything but 0 is a bug.
    pub invariant_violations_total: u64,
}

/// A way to the engine; cheap to clone.
#[derive(Clone)]
pub struct EngineHandle {
    shared: Arc<EngineState>,
}

struct EngineState {
    session: SessionId,
    node: String,
    next_run: AtomicU64,
    asks: mpsc::UnboundedSender<Ask>,
    readiness: watch::Receiver<Readiness>,
    /// Kept up to date by the engine, event by event, and copied for whoever asks.
    counts: Mutex<Counts>,
    /// When the loop last went round, on the boot clock in milliseconds.
    seen_ms: AtomicU64,
    executors: Executors,
    live: Mutex<BTreeMap<RunId, Live>>,
    /// Rang when this node has committed something.
    news: Notify,
    /// Who calls monitors at the start of runs.
    starts: OnceLock<mpsc::Sender<String>>,
}

struct Live {
    /// How many bytes were printed.
    written: u64,
    /// The newest of them.
    kept: Vec<u8>,
    /// Made when somebody follows: few runs are, and the room for chunks costs more than a short run.
    chunks: Option<broadcast::Sender<Vec<u8>>>,
}

/// The output of a running run: what was printed so far, and what comes. The channel closes when the run's record is kept.
pub struct LiveOutput {
    /// How many bytes were printed before.
    pub written: u64,
    /// The newest part of them.
    pub so_far: Vec<u8>,
    /// The output from here on.
    pub chunks: broadcast::Receiver<Vec<u8>>,
}

/// The engine's ends of the handle's channels.
pub(crate) struct HandleParts {
    pub asks: mpsc::UnboundedReceiver<Ask>,
    pub readiness: watch::Sender<Readiness>,
}

impl EngineHandle {
    /// A handle and the engine's ends of it.
    pub(crate) fn new(session: SessionId, node: String, executors: Executors) -> (Self, HandleParts) {
        let (asks, asks_rx) = mpsc::unbounded_channel();
        let (readiness_tx, readiness) = watch::channel(Readiness::NotReady("the node is starting".into()));
        let shared = EngineState {
            session,
            node,
            next_run: AtomicU64::new(FIRST_ASKED_RUN),
            asks,
            readiness,
            counts: Mutex::default(),
            seen_ms: AtomicU64::new(boottime_ms()),
            executors,
            live: Mutex::default(),
            news: Notify::new(),
            starts: OnceLock::new(),
        };
        let parts = HandleParts { asks: asks_rx, readiness: readiness_tx };
        (Self { shared: Arc::new(shared) }, parts)
    }

    /// This node's session.
    pub fn session(&self) -> SessionId {
        self.shared.session
    }

    /// This node's name.
    pub fn node(&self) -> &str {
        &self.shared.node
    }

    /// A new run id: session and counter, unique without asking anybody (go-crontab).
    pub fn draw_run_id(&self) -> RunId {
        RunId::drawn(self.shared.session, self.shared.next_run.fetch_add(1, Ordering::Relaxed))
    }

    /// Tells the engine that rows changed, so that what is due soon starts on time.
    pub fn look(&self) {
        // The engine may have ended; then there is nothing to tell.
        let _ = self.shared.asks.send(Ask::Look);
        self.committed();
    }

    /// This node has committed something.
    pub(super) fn committed(&self) {
        self.shared.news.notify_one();
    }

    /// Waits until this node has committed something since the last call. One task waits at a time.
    pub async fn news(&self) {
        self.shared.news.notified().await;
    }

    /// The addresses of monitors go there when runs start; the first receiver stays.
    pub(crate) fn tell_starts_to(&self, starts: mpsc::Sender<String>) {
        // A second one would be told nothing.
        let _ = self.shared.starts.set(starts);
    }

    /// A run starts, and its monitor is to be called. If too many calls wait already, this one is left out.
    pub(super) fn tell_start(&self, url: &str) {
        if let Some(starts) = self.shared.starts.get() {
            let _ = starts.try_send(url.to_owned());
        }
    }

    /// Tells the engine that a run was asked to end, so that it need not wait for the next look.
    pub fn cancel(&self, run: RunId) {
        let _ = self.shared.asks.send(Ask::Cancel(run));
    }

    /// Whether the node can schedule.
    pub fn readiness(&self) -> Readiness {
        // It goes round each second at the least, to look for work.
        let silent_ms = boottime_ms().saturating_sub(self.shared.seen_ms.load(Ordering::Relaxed));
        if silent_ms > LONGEST_ROUND_MS {
            return Readiness::NotReady(format!(
                "the engine has not moved for {}",
                spoken(Duration::from_millis(silent_ms))
            ));
        }
        self.shared.readiness.borrow().clone()
    }

    /// The engine's loop goes round.
    pub(super) fn seen(&self) {
        self.shared.seen_ms.store(boottime_ms(), Ordering::Relaxed);
    }

    /// The engine's counters.
    pub fn counts(&self) -> Counts {
        self.count().clone()
    }

    /// The same, for the engine to change.
    pub(super) fn count(&self) -> MutexGuard<'_, Counts> {
        self.shared.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Tells how many runs may execute here at once.
    pub(crate) fn limit_executing(&self, most: usize) {
        self.count().max_executing = most;
    }

    /// The executors that this node offers now, by name.
    pub fn executors(&self) -> Arc<ByName> {
        self.shared.executors.offered()
    }

    /// The output of a run that runs here; `None` when it does not.
    pub fn live_output(&self, run: RunId) -> Option<LiveOutput> {
        let mut live = self.live();
        let of_run = live.get_mut(&run)?;
        let chunks = of_run.chunks.get_or_insert_with(|| broadcast::Sender::new(LIVE_CHUNKS_BUFFERED)).subscribe();
        Some(LiveOutput { written: of_run.written, so_far: of_run.kept.clone(), chunks })
    }

    /// The output of a run that runs here, unless nothing was printed since it went as far as `known`.
    pub(super) fn printed_since(&self, run: RunId, known: Option<u64>) -> Option<LivePart> {
        let live = self.live();
        let of_run = live.get(&run).filter(|of_run| Some(of_run.written) != known)?;
        Some(LivePart { written: of_run.written, tail: of_run.kept.clone() })
    }

    pub(crate) fn begin_output(&self, run: RunId) {
        self.live().insert(run, Live { written: 0, kept: Vec::new(), chunks: None });
    }

    pub(crate) fn add_output(&self, run: RunId, chunk: &[u8]) {
        if let Some(of_run) = self.live().get_mut(&run) {
            of_run.written += chunk.len() as u64;
            of_run.kept.extend_from_slice(chunk);
            let surplus = of_run.kept.len().saturating_sub(LIVE_OUTPUT_KEPT);
            of_run.kept.drain(..surplus);
            if let Some(chunks) = &of_run.chunks {
                // The follower may have gone.
                let _ = chunks.send(chunk.to_vec());
            }
        }
    }

    /// The run has ended and printed `output`, as far as it is kept. Live chunks may have been lost on the way; those who
    /// follow get the end in any case.
    pub(crate) fn complete_output(&self, run: RunId, output: &[u8]) {
        if output.is_empty() {
            return;
        }
        let end = |bytes: usize| &output[output.len().saturating_sub(bytes)..];
        let missed = self.live().get(&run).is_some_and(|of_run| !of_run.kept.ends_with(end(END_COMPARED)));
        if missed {
            let mut chunk = b"\n[some output was left out here]\n".to_vec();
            chunk.extend_from_slice(end(END_REPEATED));
            self.add_output(run, &chunk);
        }
    }

    pub(crate) fn end_output(&self, run: RunId) {
        self.live().remove(&run);
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<RunId, Live>> {
        self.shared.live.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
