//! A plugin as an executor. Where its code runs, in host processes or in the server, makes no difference to a job.

use std::sync::Arc;

use async_trait::async_trait;
use carillon_domain::mechanism::{Mechanism, enabled as uses};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::abi_input::AbiInput;
use super::catalog::Description;
use super::catalog::Plugin;
use super::host::node_side::Hosts;
use super::host::node_side::exit_reason::{NotStarted, judge};
use super::host::node_side::in_server::InServer;
use super::host::node_side::run_table::{Completion, Detached, Entry};
use super::host::node_side::supervise::{DetachedInPlace, HostPlacement, Limits, SupervisedRun};
use crate::execution::{DetachedRun, NewRun};
use crate::executor::{Executor, ExecutorDescription, Exit, Isolation, Live, Outcome, PluginDescription, RunFacts};
use carillon_keeper::KeeperHandle;

/// The longest params, in bytes, of a detached run. To start a run with longer ones would block the caller too long.
const SHORT_PARAMS: usize = 4 << 10;

/// Runs jobs by a plugin.
pub struct DylibExecutor {
    plugin: Arc<Plugin>,
    way: Way,
}

/// Where the plugin's code runs.
enum Way {
    Hosts(Arc<Hosts>),
    Server(Arc<InServer>),
}

impl DylibExecutor {
    /// Runs of `plugin` go on in a host process, a child of `keeper`, which is started when the first one comes.
    pub fn in_hosts(plugin: Plugin, keeper: KeeperHandle) -> Self {
        let plugin = Arc::new(plugin);
        Self { way: Way::Hosts(Hosts::new(plugin.clone(), keeper)), plugin }
    }

    /// Runs of `plugin` go on in this very process, which its faults will hurt. Loads it, which may block; the error is a
    /// sentence.
    pub fn in_process(plugin: Plugin, keeper: KeeperHandle) -> Result<Self, String> {
        let server = InServer::load(&plugin, keeper)?;
        Ok(Self { plugin: Arc::new(plugin), way: Way::Server(server) })
    }

    /// The plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    /// Begins the run as soon as there is a place for it, unless it is to stop before.
    async fn begin_in_time(&self, facts: &AbiInput, live: &Live, limits: &Limits) -> Result<SupervisedRun, NotStarted> {
        let (told, end) = oneshot::channel();
        let entry = Entry { live: live.clone(), kill_grace: limits.kill_grace, told };
        let (place, key) = match self.way.begin(facts, entry) {
            Ok(begun) => begun,
            Err((entry, hosts)) => tokio::select! {
                biased;
                (how, reason) = limits.reached() => return Err((how, format!("{reason} before it started"))),
                begun = hosts.begin(facts, entry) => begun.map(|(host, key)| (HostPlacement::Host(host), key))?,
            },
        };
        Ok(SupervisedRun::new(key, end, place))
    }
}

/// Where a run goes on, and under which key; or the run, and those who will make a place for it.
type Placed<'a, T> = Result<(HostPlacement, u64), (Entry<T>, &'a Arc<Hosts>)>;

impl Way {
    /// Begins a run if there is a place for it now; gives it back if there is none.
    fn begin<T: Into<Completion>>(&self, facts: &AbiInput, entry: Entry<T>) -> Placed<'_, T> {
        match self {
            Self::Hosts(hosts) => match hosts.begin_at_once(facts, entry) {
                Ok((host, key)) => Ok((HostPlacement::Host(host), key)),
                Err(entry) => Err((entry, hosts)),
            },
            Self::Server(server) => Ok((HostPlacement::Server(server.clone()), server.begin(facts.clone(), entry))),
        }
    }
}

#[async_trait]
impl Executor for DylibExecutor {
    fn name(&self) -> &str {
        &self.plugin.description.name
    }

    fn description(&self) -> ExecutorDescription {
        let Description { version, abi_version, params_schema, .. } = self.plugin.description();
        let (isolation, host, trouble) = match &self.way {
            Way::Hosts(hosts) => {
                let (state, trouble) = hosts.describe();
                (Isolation::Process, Some(state), trouble)
            }
            Way::Server(_) => (Isolation::InProcess, None, None),
        };
        let plugin = PluginDescription { file: self.plugin.file().to_owned(), isolation, host, trouble };
        let (version, params_schema) = (version.clone(), Some(params_schema.clone()));
        ExecutorDescription { version, abi: Some(*abi_version), params_schema, plugin: Some(plugin) }
    }

    fn check(&self, params: &Value) -> Result<(), Vec<(String, String)>> {
        self.plugin.schema.check(params)
    }

    /// Dropping the future ends the run as if it had been cancelled and did not stop.
    async fn run(&self, facts: RunFacts, live: Live, stop: CancellationToken) -> Exit {
        let limits = Limits::new(facts.timeout, facts.kill_grace, stop);
        let facts = match AbiInput::of(&facts) {
            Ok(facts) => facts,
            Err(sentence) => return Exit::without_process(Outcome::Failed, sentence),
        };
        loop {
            if let Some((how, reason)) = limits.are_reached() {
                return Exit::without_process(how, format!("{reason} before it started"));
            }
            let ongoing = match self.begin_in_time(&facts, &live, &limits).await {
                Ok(ongoing) => ongoing,
                Err((how, sentence)) => return Exit::without_process(how, sentence),
            };
            let (end, stopped) = ongoing.follow(&limits).await;
            if !end.goes_elsewhere(stopped.as_ref()) {
                return judge(self.name(), end, stopped);
            }
        }
    }

    fn begin(self: Arc<Self>, run: Box<NewRun>) -> Result<Box<dyn DetachedRun>, Box<NewRun>> {
        let is_long = run.facts.params.text().len() > SHORT_PARAMS;
        if is_long || !uses(Mechanism::DetachedRun) || run.facts.timeout.is_some() || run.stop.is_cancelled() {
            return Err(run);
        }
        // The task finds the same error and reports it.
        let Ok(facts) = AbiInput::of(&run.facts) else { return Err(run) };
        let (live, kill_grace) = (run.live.clone(), run.facts.kill_grace);
        let told = Detached { run, executor: self.clone() };
        match self.way.begin(&facts, Entry { live, kill_grace, told }) {
            Ok((place, key)) => Ok(Box::new(DetachedInPlace { key, place })),
            Err((refused, _)) => Err(refused.told.run),
        }
    }
}
