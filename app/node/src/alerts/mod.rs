//! Telling people: the loops of a node that watch, send and report.
//!
//! Every node does all of it. The store lets one node step at a time, and gives each delivery to one node. Rules stand in
//! [`carillon_domain::alert`]; nothing here decides whom to tell of what.

mod attempt;
mod away;
mod command;
mod handle;
mod refused_plugins;
mod send;
mod starts;
mod state;
mod troubles;
mod unreadable;
mod watch;

pub use away::AwayNote;
pub use handle::{AlertCounts, AlertsHandle};
pub use refused_plugins::RefusedPlugins;
pub use state::{drifts, is_full};
pub use troubles::{ENDS_SOON, Places, disk};

use std::sync::Arc;
use std::time::Duration;

use carillon_alerts::{AlertsConfig, Sender};
use carillon_keeper::KeeperHandle;
use carillon_store::Store;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::EngineHandle;
use crate::http::Tls;

/// How long messages under way are waited for at the end, beyond the time that one may take.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// The parts of the loops.
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// This node's engine.
    pub engine: EngineHandle,
    /// Starts commands.
    pub keeper: KeeperHandle,
    /// Sends what is no command.
    pub sender: Sender,
    /// `[alerts]`
    pub alerts: AlertsConfig,
    /// The address of the page, without a slash at the end.
    pub page: String,
    /// Certificate of this node, if it speaks TLS.
    pub tls: Option<Arc<Tls>>,
    /// Directories whose disks are looked at.
    pub places: Places,
    /// Plugins that this node does not load.
    pub refused: RefusedPlugins,
    /// The memory of a database that is away.
    pub away: AwayNote,
}

/// The running loops.
pub struct Loops {
    tasks: Vec<JoinHandle<()>>,
    sender: JoinHandle<()>,
    stop: CancellationToken,
    ends_within: Duration,
}

/// Starts the loops.
pub fn start(parts: Parts, handle: &AlertsHandle) -> Loops {
    let stop = CancellationToken::new();
    let Parts { store, engine, keeper, sender, alerts, page, tls, places, refused, away } = parts;
    let sender = Arc::new(sender);
    let watch = watch::Watch { store: store.clone(), handle: handle.clone() };
    let troubles = troubles::Watcher::new(store.clone(), engine.clone(), tls, places, refused, away);
    let starts = starts::begin(&engine, sender.clone());
    let attempts =
        attempt::Attempts { store, engine, keeper, sender, page, stop: stop.clone(), handle: handle.clone() };
    let ends_within = alerts.timeout + LAST_ANSWERS;
    let sender = send::Loop::new(attempts, alerts.limits).run(stop.clone());
    Loops {
        tasks: vec![tokio::spawn(watch.run()), tokio::spawn(troubles.run()), tokio::spawn(starts)],
        sender: tokio::spawn(sender),
        stop,
        ends_within,
    }
}

impl Loops {
    /// Claims nothing more, and waits for the answers to what is under way. What has no answer by then is sent again by another node.
    pub async fn drain(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.stop.cancel();
        let aborted = self.sender.abort_handle();
        if tokio::time::timeout(self.ends_within, self.sender).await.is_err() {
            aborted.abort();
        }
    }

    /// Ends at once.
    pub fn abort(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.sender.abort();
    }
}
