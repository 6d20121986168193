//! Conditions for serving: port, certificate, database, keeper, executors, session, in this order.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::SessionId;
use carillon_domain::lease::Timing;
use carillon_domain::node;
use carillon_domain::time::BootTime;
use carillon_executors::registry::Executors;
use carillon_executors::shell::{ShellConfig, ShellExecutor};
use carillon_keeper::{KeeperHandle, KeeperOptions, boottime_ms};
use carillon_store::{NewSession, Opened};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tracing::warn;

use super::database::Database;
use super::plugins::Plugins;
use carillon_node::config::Config;
use carillon_node::engine::Parts;
use carillon_node::http::{self, Tls, Tokens};
use carillon_node::telemetry::{self, Exporting};

/// How many rows go into one call to the store at the most.
const MAX_BATCH: usize = 1_000;
/// How long between two looks for work.
const PEEK_EVERY: Duration = Duration::from_secs(1);
/// The same at rest on an embedded database, at the most. A database that has answered nothing for five seconds counts as away.
const PEEK_EVERY_AT_REST: Duration = Duration::from_secs(3);
/// How long between two recoveries.
const RECOVER_EVERY: Duration = Duration::from_secs(5);
/// How many ends of runs a node remembers at the most: those of ten seconds at a thousand runs a second.
const MOST_REMEMBERED_ENDS: usize = 10_000;

/// Everything that a server needs to run.
pub(super) struct Started {
    pub database: Database,
    pub parts: Parts,
    pub plugins: Plugins,
    pub listener: TcpListener,
    pub tokens: Tokens,
    pub tls: Option<Arc<Tls>>,
    pub exporting: Option<Exporting>,
}

/// Why a server cannot start: a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct StartError(String);

impl StartError {
    pub fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Brings everything up. Nothing has been started when it fails.
pub(super) async fn start(config: &Config) -> Result<Started, StartError> {
    let listener = http::bind(config.http.bind).await.map_err(StartError::new)?;
    let tls = config.http.tls.clone().map(Tls::new).transpose().map_err(StartError::new)?.map(Arc::new);
    let tokens = Tokens::of_server(config).map_err(StartError::new)?;
    let traced = telemetry::start(&config.telemetry, &config.node.name).map_err(StartError::new)?;
    let (tracer, exporting) = traced.unzip();
    let mut database = Database::hold(config).await?;
    let timing = database.timing.chosen.timing;
    let lock = database.lock().map(|lock| lock.try_clone_to_owned()).transpose();
    let keeper = KeeperHandle::start(KeeperOptions {
        program: "/proc/self/exe".into(),
        arguments: keeper_arguments(),
        lock: lock.map_err(StartError::new)?,
        cgroups: true,
        kill_node_after: kill_node_after(config, &timing, database.is_shared()),
    })
    .map_err(|error| StartError(format!("the keeper process cannot be started: {error}")))?;
    raise_open_files();
    let (executors, plugins) = executors(config, &keeper)?;
    let session = SessionId::from_random(random_bits()?);
    let address = listener.local_addr().map_err(StartError::new)?.to_string();
    let new = NewSession { id: session, node: config.node.name.clone(), address, version: VERSION.to_owned() };
    // The others count from when they see the session, which is not before it was sent.
    let registered = BootTime::from_ms(boottime_ms());
    let opened = database.store.open_session(&new).await.map_err(StartError::new)?;
    keeper.extend_deadline((registered + timing.self_kill_after).as_ms());
    database.end_former_sessions(session, config.store.statement_timeout).await?;
    let parts = Parts {
        store: database.store.clone(),
        keeper,
        executors,
        statement_timeout: config.store.statement_timeout,
        config: node_config(config, timing, &opened, database.is_shared()),
        session,
        node: config.node.name.clone(),
        registered,
        utc: opened.now,
        tracer,
    };
    Ok(Started { database, parts, plugins, listener, tokens, tls, exporting })
}

/// The arguments that lead this program to its keeper.
fn keeper_arguments() -> Vec<OsString> {
    let subcommand = OsString::from("keeper");
    #[cfg(debug_assertions)]
    let arguments = crate::without_guard::keeper_argument().into_iter().chain([subcommand]).collect();
    #[cfg(not(debug_assertions))]
    let arguments = vec![subcommand];
    arguments
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// When the keeper kills this node after the end of its lease: only where others take over, and runs may go on in the node.
/// Half of what ending all children may take: the first half is the node's, to end by itself and say why, the second the
/// system's.
fn kill_node_after(config: &Config, timing: &Timing, shared: bool) -> Option<Duration> {
    (shared && config.plugins.may_run_in_process()).then(|| timing.fence_grace / 2)
}

/// The shell, and what was dropped into the plugins directory.
fn executors(config: &Config, keeper: &KeeperHandle) -> Result<(Executors, Plugins), StartError> {
    let executors = Executors::new(config.scheduler.horizon + PEEK_EVERY);
    let shell = ShellConfig { allow_users: config.shell.allow_users.clone() };
    executors.offer(Arc::new(ShellExecutor::new(keeper.clone(), shell)));
    let plugins = Plugins::load(config.plugins.clone(), keeper.clone(), executors.clone()).map_err(StartError::new)?;
    Ok((executors, plugins))
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

fn node_config(config: &Config, timing: Timing, opened: &Opened, shared: bool) -> node::Config {
    node::Config {
        timing,
        self_kill: shared,
        partitions: opened.partitions,
        horizon: config.scheduler.horizon,
        max_in_flight: config.scheduler.max_in_flight,
        max_executing: config.scheduler.max_executing,
        max_batch: MAX_BATCH,
        peek_every: PEEK_EVERY,
        peek_every_at_rest: peek_every_at_rest(config.scheduler.horizon, shared),
        steal_after: config.scheduler.steal_after,
        recover_every: RECOVER_EVERY,
        remembered_ends: config.scheduler.max_in_flight.min(MOST_REMEMBERED_ENDS),
        flow: carillon_domain::node::FlowKind::Tuned,
        drain_timeout: config.shutdown.timeout,
    }
}

/// On a shared database others change rows at any time. An embedded one is looked at ten times within the horizon.
fn peek_every_at_rest(horizon: Duration, shared: bool) -> Duration {
    if shared { PEEK_EVERY } else { (horizon / 10).clamp(PEEK_EVERY, PEEK_EVERY_AT_REST) }
}

fn random_bits() -> Result<u64, StartError> {
    getrandom::u64().map_err(|error| StartError(format!("the system gives no random numbers: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_embedded_database_is_left_alone_for_longer_and_never_for_the_whole_horizon() {
        let secs = Duration::from_secs;
        for (horizon, shared, every) in [
            (secs(30), true, secs(1)),
            (secs(30), false, secs(3)),
            (secs(20), false, secs(2)),
            (secs(1), false, secs(1)),
            (secs(3_600), false, secs(3)),
        ] {
            assert_eq!(peek_every_at_rest(horizon, shared), every, "{horizon:?}, shared: {shared}");
        }
    }
}
