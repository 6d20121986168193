//! The server's configuration: `carillon.toml`, then the environment, then flags.
//!
//! Everything is read at start and checked completely: every unknown key and every bad value is told at once, each with
//! where it came from. After that nothing about it can fail.

mod access;
mod alerts;
mod public_url;
mod section;
mod source;
mod store_url;
mod telemetry;
mod tokens;

pub use access::TlsConfig;
pub use public_url::PublicUrl;
pub use source::{ConfigError, DEFAULT_FILE, Overrides};
pub use store_url::{MySqlUrl, StoreUrl};
pub use telemetry::TelemetryConfig;
pub use tokens::{Role, TokenConfig, TokenDigest};

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use carillon_alerts::{AlertsConfig, MailConfig};
use carillon_domain::lease::Timing;
use carillon_domain::name::{check_label_key, check_label_value};
use carillon_executors::executor::Isolation;
use carillon_store::mysql::Topology;

use self::section::Root;

/// Everything that can be configured, with defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The database.
    pub store: StoreConfig,
    /// This node.
    pub node: NodeConfig,
    /// The API.
    pub http: HttpConfig,
    /// How much is claimed and run.
    pub scheduler: SchedulerConfig,
    /// The lease, where any of it is given; its inequality holds. Otherwise it follows the database's servers.
    pub session: Option<Timing>,
    /// The shell executor.
    pub shell: ShellConfig,
    /// Plugins.
    pub plugins: PluginsConfig,
    /// The history that is kept.
    pub history: HistoryConfig,
    /// The audit log that is kept.
    pub audit: AuditConfig,
    /// The mail server; `None` if there is none.
    pub mail: Option<MailConfig>,
    /// Where messages of alerts may go, and how long they may take.
    pub alerts: AlertsConfig,
    /// The collector of traces.
    pub telemetry: TelemetryConfig,
    /// How the server ends.
    pub shutdown: ShutdownConfig,
}

/// `[store]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// Which database.
    pub url: StoreUrl,
    /// How long one statement may take.
    pub statement_timeout: Duration,
    /// Which kind of servers the database has, and whether several of them may be written to.
    pub topology: Topology,
}

/// `[node]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// The node's name; the host's by default.
    pub name: String,
    /// Where `carillon.token` is kept.
    pub data_dir: PathBuf,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
}

/// `[http]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpConfig {
    /// Where the API listens.
    pub bind: SocketAddr,
    /// The prefix of all paths, such as `/cron`; usually empty.
    pub base_path: String,
    /// Under which scheme and host readers reach it, where something stands before the server.
    pub public_url: Option<PublicUrl>,
    /// Who may call it; with none, one admin token is made and kept in `carillon.token`.
    pub tokens: Vec<TokenConfig>,
    /// The operator's word that something in front of the server speaks TLS.
    pub plaintext: bool,
    /// Further names under which the API may be called.
    pub hosts: Vec<String>,
    /// The certificate, where this server speaks TLS itself.
    pub tls: Option<TlsConfig>,
}

/// `[scheduler]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// How far ahead firings are claimed.
    pub horizon: Duration,
    /// How many claimed and running firings a node holds at the most.
    pub max_in_flight: usize,
    /// How many runs live at once at the most.
    pub max_executing: usize,
    /// How many partitions a new database is made with.
    pub partitions: u16,
    /// When others may claim what its own node left unclaimed.
    pub steal_after: Duration,
}

/// `[shell]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellConfig {
    /// The users that jobs may run as, beside the server's own.
    pub allow_users: Vec<String>,
}

/// `[plugins]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Where plugins are looked for.
    pub dir: PathBuf,
    /// Where their code runs.
    pub isolation: Isolation,
    /// Names of those that are trusted to run in the server, whatever `isolation` says of the others.
    pub in_process: Vec<String>,
}

impl PluginsConfig {
    /// Where the code of a plugin runs.
    pub fn isolation_of(&self, plugin: &str) -> Isolation {
        if self.in_process.iter().any(|name| name == plugin) { Isolation::InProcess } else { self.isolation }
    }

    /// Whether the code of any plugin, be it there or not yet, runs in the server.
    pub fn may_run_in_process(&self) -> bool {
        self.isolation == Isolation::InProcess || !self.in_process.is_empty()
    }
}

/// `[history]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryConfig {
    /// How long records are kept.
    pub keep: Duration,
    /// How many records of one job are kept.
    pub max_runs_per_job: u32,
}

/// `[audit]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// How long entries are kept.
    pub keep: Duration,
}

/// `[shutdown]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutdownConfig {
    /// How long a drain waits for runs before it cancels them.
    pub timeout: Duration,
}

impl Config {
    /// Reads the configuration. `file` is the one that `--config` names, which must exist; without it [`DEFAULT_FILE`] in
    /// the working directory is read if it is there. `environment` is usually [`std::env::vars_os`].
    ///
    /// # Errors
    /// [`ConfigError`]: a sentence for every fault.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let (config, faults) = Self::read(file, environment, overrides)?;
        if faults.is_empty() { Ok(config) } else { Err(ConfigError::Faults(faults)) }
    }

    /// As [`Config::load`], with defaults in place of the values that are at fault, and a sentence for each of those.
    ///
    /// # Errors
    /// [`ConfigError`], where there is nothing to read values from.
    pub fn read(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &Overrides,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let (path, must_exist) = file.map_or((Path::new(DEFAULT_FILE), false), |file| (file, true));
        let (collector, environment) = telemetry::standard_variable(environment);
        let merged = source::merged(path, must_exist, environment, overrides)?;
        let mut root = Root::new(merged, path);
        let node = node(&mut root);
        let mail = alerts::mail(&mut root, &node);
        let alerts = alerts::alerts(&mut root);
        let config = Self {
            store: store(&mut root),
            node,
            http: access::http(&mut root),
            scheduler: scheduler(&mut root),
            session: session(&mut root),
            shell: shell(&mut root),
            plugins: plugins(&mut root),
            history: history(&mut root),
            audit: audit(&mut root),
            mail,
            alerts,
            telemetry: telemetry::telemetry(&mut root, collector),
            shutdown: shutdown(&mut root),
        };
        Ok((config, root.finish()))
    }
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const HOUR: Duration = secs(3_600);
const DAY: Duration = secs(86_400);

fn store(root: &mut Root) -> StoreConfig {
    let mut section = root.section("store");
    let url = section.secret_text("url", |text| text.parse());
    StoreConfig {
        url: url.unwrap_or_default(),
        statement_timeout: section.duration("statement_timeout", secs(5), Duration::from_millis(100)..=secs(300)),
        topology: section.text("topology", |text| text.parse()).unwrap_or_default(),
    }
}

fn node(root: &mut Root) -> NodeConfig {
    let mut section = root.section("node");
    let named = |text: &str| match text {
        "" => Err("a name that is not empty".into()),
        text => check_label_value(text).map(|()| text.to_owned()).map_err(|error| format!("a name: {error}")),
    };
    let name = section.text("name", named).unwrap_or_else(host_name);
    let data_dir = section.text("data_dir", path).unwrap_or_else(|| ".".into());
    NodeConfig { name, data_dir, labels: labels(&mut section) }
}

fn labels(section: &mut section::Section<'_>) -> BTreeMap<String, String> {
    let given = section.table("labels", "a table of strings (in the environment CARILLON__NODE__LABELS__KEY=value)");
    let mut labels = BTreeMap::new();
    for (key, value) in given.unwrap_or_default() {
        let checked = check_label_key(&key).and_then(|()| check_label_value(&value));
        match checked {
            Ok(()) => drop(labels.insert(key, value)),
            Err(error) => section.fault("labels", &error.to_string()),
        }
    }
    labels
}

fn scheduler(root: &mut Root) -> SchedulerConfig {
    let mut section = root.section("scheduler");
    let config = SchedulerConfig {
        horizon: section.duration("horizon", secs(30), secs(1)..=HOUR),
        max_in_flight: section.integer("max_in_flight", 10_000, 1..=1_000_000) as usize,
        max_executing: section.integer("max_executing", 1_000, 1..=100_000) as usize,
        partitions: u16::try_from(section.integer("partitions", 16, 1..=1_024)).unwrap_or(1),
        steal_after: section.duration("steal_after", secs(5), Duration::from_millis(100)..=HOUR),
    };
    if config.max_executing > config.max_in_flight {
        let (most, held) = (config.max_executing, config.max_in_flight);
        section.fault("max_executing", &format!("{most} is more than max_in_flight = {held}, which counts them too"));
    }
    config
}

/// A configuration that gives one setting has one server's defaults for the others, whatever servers are found.
fn session(root: &mut Root) -> Option<Timing> {
    let mut section = root.section("session");
    let is_given = !section.is_empty();
    let preset = Timing::default();
    let allowed = Duration::from_millis(1)..=DAY;
    let mut take = |key, preset| section.duration(key, preset, allowed.clone());
    let timing = Timing {
        heartbeat: take("heartbeat", preset.heartbeat),
        heartbeat_timeout: take("heartbeat_timeout", preset.heartbeat_timeout),
        self_kill_after: take("self_kill_after", preset.self_kill_after),
        fence_grace: take("fence_grace", preset.fence_grace),
        pause: take("pause", preset.pause),
        expire_after: take("expire_after", preset.expire_after),
    };
    if let Err(error) = timing.check() {
        section.sentence(error.to_string());
    }
    is_given.then_some(timing)
}

fn shell(root: &mut Root) -> ShellConfig {
    ShellConfig { allow_users: root.section("shell").texts("allow_users") }
}

fn plugins(root: &mut Root) -> PluginsConfig {
    let mut section = root.section("plugins");
    let isolation = section.text("isolation", |text| match text {
        "process" => Ok(Isolation::Process),
        "in_process" => Ok(Isolation::InProcess),
        _ => Err("\"process\" or \"in_process\"".into()),
    });
    PluginsConfig {
        dir: section.text("dir", path).unwrap_or_else(|| "plugins".into()),
        isolation: isolation.unwrap_or(Isolation::Process),
        in_process: section.texts("in_process"),
    }
}

fn history(root: &mut Root) -> HistoryConfig {
    let mut section = root.section("history");
    HistoryConfig {
        keep: section.duration("keep", 30 * DAY, secs(60)..=36_500 * DAY),
        max_runs_per_job: section.integer("max_runs_per_job", 10_000, 1..=10_000_000),
    }
}

fn audit(root: &mut Root) -> AuditConfig {
    AuditConfig { keep: root.section("audit").duration("keep", 400 * DAY, DAY..=36_500 * DAY) }
}

fn shutdown(root: &mut Root) -> ShutdownConfig {
    ShutdownConfig { timeout: root.section("shutdown").duration("timeout", secs(60), Duration::ZERO..=DAY) }
}

fn path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() || text.contains('\0') { Err("a path".into()) } else { Ok(text.into()) }
}

fn host_name() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = kernel.trim();
    if name.is_empty() || check_label_value(name).is_err() { "carillon".into() } else { name.into() }
}

#[cfg(test)]
mod tests;
