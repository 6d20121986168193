//! `carillon serve` and `carillon init`: everything put together, and taken apart again in good order.

pub mod args;
mod database;
mod logging;
mod plugins;
mod purge;
mod roll_up;
mod session_file;
mod signals;
mod startup;
mod startup_memory;

use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use carillon_alerts::Sender;
use carillon_domain::node::SelfKillReason;
use carillon_executors::dylib::leave;
use carillon_keeper::KeeperHandle;
use tokio::sync::{mpsc, oneshot};
use tracing::{error, info};

use crate::serve::args::{InitArgs, ServeArgs};
use carillon_node::alerts::{self, AwayNote, Places};
use carillon_node::config::Config;
use carillon_node::engine::{End, Engine};
use carillon_node::http;
use carillon_node::service_manager::ServiceManager;
use carillon_node::telemetry::Exporting;
use startup::Started;

/// Exit code of a node that was fenced or had to fence itself.
const FENCED: u8 = 70;
/// Exit code for bad usage, a bad configuration included.
const BAD_USAGE: u8 = 2;
/// How long the API may take to answer what is under way when the server ends.
const LAST_ANSWERS: Duration = Duration::from_secs(2);
/// How long a collector may take the last spans.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// Runs a server until it is told to stop. Exit code 0 after a drain, 1 when it cannot start, 2 for a bad configuration, 70
/// when it was fenced.
pub fn serve(args: &ServeArgs) -> ExitCode {
    let node = &args.node;
    let config = match Config::load(node.from.config.as_deref(), std::env::vars_os(), &node.overrides()) {
        Ok(config) => config,
        Err(error) => return refuse(BAD_USAGE, &error),
    };
    #[cfg(debug_assertions)]
    if let Err(error) = crate::without_guard::from_environment() {
        return refuse(BAD_USAGE, &error);
    }
    let log = logging::start(args.log_format);
    #[cfg(debug_assertions)]
    crate::without_guard::tell();
    if let Err(error) = crate::without_mechanism::from_environment() {
        return refuse(BAD_USAGE, &error);
    }
    let code = on_runtime(|| run(config));
    drop(log);
    if code == ExitCode::from(FENCED) {
        // Plugins in this process may still be at work, and what they want to do at exit may take for ever.
        leave(FENCED);
    }
    code
}

/// Makes or migrates the database, and nothing else.
pub fn init(args: &InitArgs) -> ExitCode {
    let config = match Config::load(args.from.config.as_deref(), std::env::vars_os(), &args.from.overrides()) {
        Ok(config) => config,
        Err(error) => return refuse(BAD_USAGE, &error),
    };
    on_runtime(|| async move {
        match database::open(&config).await {
            Ok(_) => {
                let url = config.store.url.to_string();
                // A reader that has gone takes nothing from what was done.
                let _ = match args.json {
                    true => writeln!(std::io::stdout(), "{}", serde_json::json!({"store": url, "ready": true})),
                    false => writeln!(std::io::stdout(), "{url} is ready"),
                };
                ExitCode::SUCCESS
            }
            Err(error) => refuse(1, &error),
        }
    })
}

fn on_runtime<F: Future<Output = ExitCode>>(main: impl FnOnce() -> F) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(main());
            // A call that hangs in the database must not hold up the end.
            runtime.shutdown_timeout(Duration::from_secs(1));
            code
        }
        Err(error) => refuse(1, &format!("the server's threads cannot be started: {error}")),
    }
}

async fn run(config: Config) -> ExitCode {
    // Before anything is registered: it may be refused.
    let sender = match Sender::new(&config.alerts, config.mail.as_ref()) {
        Ok(sender) => sender,
        Err(error) => return refuse(BAD_USAGE, &error),
    };
    let manager = match ServiceManager::from_environment() {
        Ok(manager) => manager,
        Err(error) => return refuse(BAD_USAGE, &error),
    };
    let Started { database, parts, plugins, listener, tokens, tls, exporting } = match startup::start(&config).await {
        Ok(started) => started,
        Err(error) => return refuse(1, &error),
    };
    let keeper = parts.keeper.clone();
    let grace = parts.config.timing.fence_grace;
    let partitions = Some(parts.config.partitions);
    let (engine, handle) = Engine::new(parts);
    let (stop_api, api_stopped) = oneshot::channel::<()>();
    let public_host = config.http.public_url.as_ref().map(|url| url.name().to_owned());
    let named: Vec<String> = config.http.hosts.iter().cloned().chain(public_host).collect();
    let hosts = http::Hosts::new(config.http.bind, &named);
    let handle_of_engine = handle.clone();
    let mut state = http::ApiState::new(database.store.clone(), handle, tokens, hosts);
    state.partitions = partitions;
    state.timing = Some(database.timing.clone());
    state.base_path = http::BasePath::new(&config.http.base_path);
    state.public_url = config.http.public_url.clone();
    state.tls = tls.clone();
    state.places = places(&config);
    state.spans = exporting.as_ref().map(Exporting::counts);
    let address = listener.local_addr();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let away = AwayNote::of(&config.node.data_dir, &config.node.name);
    let told = alerts::Parts {
        store: database.store.clone(),
        engine: handle_of_engine.clone(),
        keeper: keeper.clone(),
        sender,
        alerts: config.alerts.clone(),
        page: page(&config, scheme, address.as_ref().ok().copied()),
        tls: tls.clone(),
        places: state.places.clone(),
        refused: plugins.refused(),
        away: away.clone(),
    };
    let loops = alerts::start(told, &state.alerts);
    let api = tokio::spawn(http::serve(state, listener, async move {
        // The sender is dropped when the server ends by another way.
        let _ = api_stopped.await;
    }));
    if let Ok(address) = address {
        let (node, base_path, store) = (&config.node.name, &config.http.base_path, &config.store.url);
        info!("node {node} serves {scheme}://{address}{base_path} on {store}");
    }
    let (order, orders) = mpsc::unbounded_channel();
    let signals = tokio::spawn(signals::watch(order));
    let purge = tokio::spawn(purge::run(database.store.clone(), config.history.clone(), config.audit.clone()));
    let roll_up = tokio::spawn(roll_up::run(database.store.clone()));
    let plugins = tokio::spawn(plugins.watch());
    let renewal = tls.map(|tls| tokio::spawn(tls.watch()));
    manager.ready();
    tokio::spawn(startup_memory::give_back_after_start());
    // Among the tasks that speak with it: a loop on this thread would be woken by each of them at the price of a switch.
    let end = match tokio::spawn(engine.reporting_to(manager).run(orders)).await {
        Ok(end) => end,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    };
    signals.abort();
    plugins.abort();
    purge.abort();
    if let Some(renewal) = renewal {
        renewal.abort();
    }
    roll_up.abort();
    if let End::SelfKilled(reason) = &end {
        loops.abort();
        if *reason == SelfKillReason::LeaseOver {
            away.write_of(&handle_of_engine);
        }
        // Children first: the keeper kills them and is gone before this process is.
        close(&keeper, grace).await;
        return refuse(FENCED, &fenced_because(*reason));
    }
    loops.drain().await;
    if let Some(exporting) = exporting {
        // The engine has gone, and its tracer with it.
        let _ = tokio::task::spawn_blocking(|| exporting.finish(LAST_SPANS)).await;
    }
    let _ = stop_api.send(());
    let _ = tokio::time::timeout(LAST_ANSWERS, api).await;
    close(&keeper, grace).await;
    // The lease goes last.
    drop(database);
    if let End::Unfit(sentence) = end {
        return refuse(1, &sentence);
    }
    info!("stopped");
    ExitCode::SUCCESS
}

/// The address of the page for messages: the configured one, or else that of the API as this machine knows it.
fn page(config: &Config, scheme: &str, address: Option<SocketAddr>) -> String {
    if let Some(url) = &config.http.public_url {
        return format!("{url}{}", config.http.base_path);
    }
    let address = address.unwrap_or(config.http.bind);
    let port = address.port();
    let host = match config.http.hosts.first() {
        Some(host) => format!("{host}:{port}"),
        None if address.ip().is_unspecified() => format!("{}:{port}", config.node.name),
        None => address.to_string(),
    };
    format!("{scheme}://{host}{}", config.http.base_path)
}

/// The directories whose disks must not be full.
fn places(config: &Config) -> Places {
    Places::of(config.store.url.directory().into_iter().chain([config.node.data_dir.clone()]))
}

/// Waits for the keeper's end, and not for ever: it holds the lease too, so nobody takes over before it is gone.
async fn close(keeper: &KeeperHandle, grace: Duration) {
    if tokio::time::timeout(grace, keeper.close()).await.is_err() {
        error!("the keeper has not ended within {grace:?}; it goes on killing by itself");
    }
}

fn fenced_because(reason: SelfKillReason) -> String {
    match reason {
        SelfKillReason::Fenced => "this node was fenced: another node ended its session",
        SelfKillReason::WentBack => {
            "this node ended itself: the database went back in time, to when it did not know this node's session; the loss is \
             recorded (`carillon cluster`)"
        }
        SelfKillReason::LeaseOver => "this node fenced itself: no heartbeat was acknowledged in time",
        SelfKillReason::KeeperDied => "this node ended itself: its keeper died, and with it every run",
    }
    .to_owned()
}

/// Says why on stderr, and with which exit code the process ends.
fn refuse(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    // Not eprintln: it panics when nobody reads, and the exit code would be another.
    let _ = writeln!(std::io::stderr(), "carillon: {error}");
    ExitCode::from(code)
}

/// Shared by the parts of the server.
pub(crate) type SharedStore = Arc<dyn carillon_store::Store>;
