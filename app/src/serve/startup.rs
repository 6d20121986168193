//! What must be true before a server serves: port, lease, database, keeper, executors, session, in this order.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use carillon_adapters::executors::Executors;
use carillon_adapters::keeper::{KeeperHandle, KeeperOptions, boottime_ms};
use carillon_adapters::shell::{ShellConfig, ShellExecutor};
use carillon_adapters::store::sqlite::{Lease, OpenOptions, SqliteStore};
use carillon_adapters::store::{NewSession, Opened, Store, StoreError, SystemClock};
use carillon_domain::id::SessionId;
use carillon_domain::node;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tracing::{info, warn};

use super::SharedStore;
use super::plugins::Plugins;
use crate::config::{Config, StoreUrl};
use crate::engine::{Parts, end_and_sweep};
use crate::http::{self, Tokens};

/// How many rows go into one call to the store at the most.
const MAX_BATCH: usize = 500;
/// How long between two looks for work.
const PEEK_EVERY: Duration = Duration::from_secs(1);
/// How long between two recoveries.
const RECOVER_EVERY: Duration = Duration::from_secs(5);

/// Everything that a server needs to run.
pub(super) struct Started {
    pub store: SharedStore,
    pub parts: Parts,
    pub plugins: Plugins,
    pub listener: TcpListener,
    pub tokens: Tokens,
    pub lease: Lease,
}

/// Why a server cannot start: a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct StartError(String);

impl StartError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Brings everything up. Nothing has been started when it fails.
pub(super) async fn start(config: &Config) -> Result<Started, StartError> {
    let listener = http::bind(config.http.bind).await.map_err(StartError::new)?;
    let tokens = Tokens::of_server(config).map_err(StartError::new)?;
    let path = sqlite_path(config)?;
    // Blocks this thread, on which nothing else runs yet.
    let lease = Lease::acquire(path, config.session.fence_grace).map_err(StartError::new)?;
    let store: SharedStore = Arc::new(open_store(config)?);
    let keeper = KeeperHandle::start(KeeperOptions {
        program: "/proc/self/exe".into(),
        arguments: vec!["keeper".into()],
        lock: Some(lease.as_fd().try_clone_to_owned().map_err(StartError::new)?),
        cgroups: true,
    })
    .map_err(|error| StartError(format!("the keeper process cannot be started: {error}")))?;
    raise_open_files();
    // The lease on the file is ours, so runs may be spawned at once.
    keeper.extend_deadline(boottime_ms() + ms(config.session.self_kill_after));
    let (executors, plugins) = executors(config, &keeper)?;
    let session = SessionId::from_random(random_bits()?);
    let address = listener.local_addr().map_err(StartError::new)?.to_string();
    let new = NewSession { id: session, node: config.node.name.clone(), address, version: VERSION.to_owned() };
    let opened = store.open_session(&new).await.map_err(StartError::new)?;
    end_former_sessions(&*store, session, config.store.statement_timeout).await?;
    let parts = Parts {
        store: store.clone(),
        keeper,
        executors,
        statement_timeout: config.store.statement_timeout,
        config: node_config(config, &opened),
        session,
        node: config.node.name.clone(),
        utc: opened.now,
    };
    Ok(Started { store, parts, plugins, listener, tokens, lease })
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Opens the database, making or migrating it.
pub(super) fn open_store(config: &Config) -> Result<SqliteStore, StartError> {
    let options = OpenOptions { partitions: config.scheduler.partitions, ..OpenOptions::default() };
    SqliteStore::open(sqlite_path(config)?, Arc::new(SystemClock), options).map_err(StartError::new)
}

fn sqlite_path(config: &Config) -> Result<&std::path::Path, StartError> {
    match &config.store.url {
        StoreUrl::Sqlite(path) => Ok(path),
    }
}

/// The shell, and what was dropped into the plugins directory.
fn executors(config: &Config, keeper: &KeeperHandle) -> Result<(Executors, Plugins), StartError> {
    let executors = Executors::new(config.scheduler.horizon + PEEK_EVERY);
    let shell = ShellConfig { allow_users: config.shell.allow_users.clone() };
    executors.offer(Arc::new(ShellExecutor::new(keeper.clone(), shell)));
    let plugins = Plugins::load(config.plugins.clone(), keeper.clone(), executors.clone()).map_err(StartError::new)?;
    Ok((executors, plugins))
}

/// Holding the lease on the file, and with it the proof that no child of a former session lives, what those sessions held
/// is given back at once.
async fn end_former_sessions(store: &dyn Store, me: SessionId, limit: Duration) -> Result<(), StartError> {
    for former in store.sessions().await.map_err(StartError::new)? {
        let beat = former.beat;
        if beat.id == me {
            continue;
        }
        let swept = end_and_sweep(store, beat.id, Some(beat.seq), limit).await;
        match swept {
            Ok(rows) => {
                info!("session {} of node {} had ended without a word; rows given back: {rows}", beat.id, former.node)
            }
            Err(_) => {
                let reason = StoreError::Retryable(format!("session {} could not be ended", beat.id));
                return Err(StartError::new(reason));
            }
        }
    }
    Ok(())
}

/// Connections cost a descriptor each, and the usual soft limit of 1,024 is meant for programs that use
/// `select`. After the keeper's start: children get the limits that it was started with.
fn raise_open_files() {
    let raised =
        getrlimit(Resource::RLIMIT_NOFILE).and_then(|(_, hard)| setrlimit(Resource::RLIMIT_NOFILE, hard, hard));
    if let Err(error) = raised {
        warn!("the limit of open files cannot be raised: {error}");
    }
}

fn node_config(config: &Config, opened: &Opened) -> node::Config {
    node::Config {
        timing: config.session,
        self_kill: false,
        partitions: opened.partitions,
        horizon: config.scheduler.horizon,
        max_in_flight: config.scheduler.max_in_flight,
        max_executing: config.scheduler.max_executing,
        max_batch: MAX_BATCH,
        peek_every: PEEK_EVERY,
        recover_every: RECOVER_EVERY,
        drain_timeout: config.shutdown.timeout,
    }
}

fn random_bits() -> Result<u64, StartError> {
    getrandom::u64().map_err(|error| StartError(format!("the system gives no random numbers: {error}")))
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
