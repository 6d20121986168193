//! The database that `store.url` names, opened and held.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::lease::ChosenTiming;
use carillon_store::mysql::{self, MySqlStore};
use carillon_store::sqlite::{Lease, OpenOptions, SqliteStore};
use carillon_store::{Store, StoreError, SystemClock, TimingReport};
use tracing::info;

use super::SharedStore;
use super::session_file::{SessionFile, end_former};
use super::startup::StartError;
use carillon_node::config::{Config, StoreUrl};
use carillon_node::engine::end_and_sweep;

/// An open database.
pub(super) struct Database {
    pub store: SharedStore,
    /// The lock on an embedded file, which nobody else may open. A cluster's database is shared: there each session has
    /// a lease of its own, kept up by heartbeats.
    pub lease: Option<Lease>,
    /// On a shared database: the locked file of this node, which tells the session of its former process.
    file: Option<SessionFile>,
    /// The session timing that fits it.
    pub timing: TimingReport,
}

impl Database {
    /// Takes the lease where there is one to take, then opens the database, making or migrating it.
    pub async fn hold(config: &Config) -> Result<Self, StartError> {
        let lease = match &config.store.url {
            // Blocks this thread, on which nothing else runs yet.
            StoreUrl::Sqlite(path) => {
                Some(Lease::acquire(path, config.session.unwrap_or_default().fence_grace).map_err(StartError::new)?)
            }
            StoreUrl::MySql(_) => None,
        };
        let (store, timing) = open(config).await?;
        let grace = timing.chosen.timing.fence_grace;
        // Blocks this thread, too.
        let file = match lease {
            None => SessionFile::lock(&config.node.data_dir, &config.node.name, grace),
            Some(_) => None,
        };
        Ok(Self { store, lease, file, timing })
    }

    /// The lock that the keeper is to hold until its last child is reaped.
    pub fn lock(&self) -> Option<BorrowedFd<'_>> {
        let file = self.file.as_ref().map(AsFd::as_fd);
        self.lease.as_ref().map(AsFd::as_fd).or(file)
    }

    /// Whether a node that loses the database must end itself, since others share it.
    pub fn is_shared(&self) -> bool {
        self.lease.is_none()
    }

    /// Releases at once the rows of former sessions. The lease on the file proves that none of their children lives. In a shared database
    /// they may live: their heartbeats tell. The lock of this node's file proves it for the session of its former process.
    pub async fn end_former_sessions(&mut self, me: SessionId, limit: Duration) -> Result<(), StartError> {
        if self.is_shared() {
            let Some(file) = &mut self.file else { return Ok(()) };
            if let Some(former) = file.former() {
                let timing = self.timing.chosen.timing;
                tokio::spawn(end_former(self.store.clone(), me, former, timing, limit));
            }
            file.note(me);
            return Ok(());
        }
        for former in self.store.sessions().await.map_err(StartError::new)? {
            let beat = former.beat;
            if beat.id == me {
                continue;
            }
            match end_and_sweep(&*self.store, (beat.id, beat.seq), limit).await {
                Ok(rows) => {
                    info!(
                        "session {} of node {} had ended without a word; rows given back: {rows}",
                        beat.id, former.node
                    )
                }
                Err(_) => {
                    let reason = StoreError::Retryable(format!("session {} could not be ended", beat.id));
                    return Err(StartError::new(reason));
                }
            }
        }
        Ok(())
    }
}

/// Opens the database, making or migrating it, and chooses the session timing for it.
pub(super) async fn open(config: &Config) -> Result<(Arc<dyn Store>, TimingReport), StartError> {
    let alone = || TimingReport { chosen: ChosenTiming::alone(config.session), misfits: Vec::new() };
    let (partitions, held) = (config.scheduler.partitions, config.scheduler.max_in_flight);
    match &config.store.url {
        StoreUrl::Sqlite(path) => {
            let options = OpenOptions { partitions, held, ..OpenOptions::default() };
            let store = SqliteStore::open(path, Arc::new(SystemClock), options).map_err(StartError::new)?;
            Ok((store.shared(), alone()))
        }
        StoreUrl::MySql(url) => {
            let options = mysql::Options {
                partitions,
                statement_timeout: config.store.statement_timeout,
                timing: config.session,
                held,
                topology: config.store.topology,
                ..mysql::Options::default()
            };
            let store = MySqlStore::open(url.whole(), options).await.map_err(StartError::new)?;
            let timing = store.timing().unwrap_or_else(alone);
            Ok((store.shared(), timing))
        }
    }
}
