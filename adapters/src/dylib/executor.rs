//! A plugin as an executor. Where its code runs, in host processes or in the server, makes no difference to a job.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use super::discovery::Plugin;
use super::facts::Facts;
use super::hosts::Hosts;
use super::limits::Limits;
use super::link::{HostLink, NotStarted};
use super::server::InServer;
use super::slots::End;
use super::verdict::{Stopped, judge};
use super::wire::Description;
use crate::executor::{Ended, Executor, ExecutorDescription, Exit, Isolation, Live, PluginDescription, RunFacts, Stop};
use crate::keeper::KeeperHandle;

/// A run that is to stop is told so again and again: a signal that comes just before a system call interrupts nothing.
const ASK_EVERY: Duration = Duration::from_millis(100);

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
    async fn begin(&self, facts: &Facts, live: &Live, limits: &mut Limits) -> Result<Ongoing, NotStarted> {
        let hosts = match &self.way {
            Way::Hosts(hosts) => hosts,
            Way::Server(server) => {
                let (key, end) = server.begin(facts.clone(), live.clone(), limits.kill_grace);
                return Ok(Ongoing { key, end, place: Place::Server(server.clone()), over: false });
            }
        };
        // Mostly there is a place, and nothing to wait for.
        let begun = match hosts.begin_at_once(facts, live, limits.kill_grace) {
            Some(begun) => begun,
            None => {
                let kill_grace = limits.kill_grace;
                tokio::select! {
                    biased;
                    (how, reason) = limits.reached() => Err((how, format!("{reason} before it started"))),
                    begun = hosts.begin(facts, live, kill_grace) => begun,
                }
            }
        };
        begun.map(|(host, key, end)| Ongoing { key, end, place: Place::Host(host), over: false })
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
    async fn run(&self, facts: RunFacts, live: Live, stop: watch::Receiver<Stop>) -> Exit {
        let mut limits = Limits::new(facts.timeout, facts.kill_grace, stop);
        let facts = match Facts::of(&facts) {
            Ok(facts) => facts,
            Err(sentence) => return Exit::without_process(Ended::Failed, sentence),
        };
        loop {
            if let Some((how, reason)) = limits.are_reached() {
                return Exit::without_process(how, format!("{reason} before it started"));
            }
            let ongoing = match self.begin(&facts, &live, &mut limits).await {
                Ok(ongoing) => ongoing,
                Err((how, sentence)) => return Exit::without_process(how, sentence),
            };
            let (end, stopped) = ongoing.follow(&mut limits).await;
            match end {
                // The process ended before the plugin was called: the run goes to the next one.
                End::NotBegun(host) if stopped.is_none() && host.exit.how != Ended::Lost => {}
                end => return judge(self.name(), end, stopped),
            }
        }
    }
}

/// A run that goes on.
struct Ongoing {
    key: u64,
    end: oneshot::Receiver<End>,
    place: Place,
    over: bool,
}

enum Place {
    Host(Arc<HostLink>),
    Server(Arc<InServer>),
}

impl Ongoing {
    /// Waits for the end of the run, and sees to it that it comes. The second answer is why it was to stop, if it was.
    async fn follow(mut self, limits: &mut Limits) -> (End, Option<Stopped>) {
        let (how, mut reason) = tokio::select! {
            biased;
            end = Self::ended(&mut self.end, &mut self.over) => return (end, None),
            stopped = limits.reached() => stopped,
        };
        let kill_grace = limits.kill_grace;
        let mut patience = std::pin::pin!(limits.patience());
        let mut patient = true;
        loop {
            self.cancel();
            tokio::select! {
                biased;
                end = Self::ended(&mut self.end, &mut self.over) => return (end, Some((how, reason))),
                () = &mut patience, if patient => {
                    patient = false;
                    let killed = self.give_up();
                    reason = format!("{reason}; it did not return within {kill_grace:?}{killed}");
                }
                () = tokio::time::sleep(ASK_EVERY) => {}
            }
        }
    }

    async fn ended(end: &mut oneshot::Receiver<End>, over: &mut bool) -> End {
        match end.await {
            Ok(end) => {
                *over = true;
                end
            }
            // Whoever holds the other side tells every run of its end before it goes; then this is the server's own end.
            Err(_) => std::future::pending().await,
        }
    }

    fn cancel(&self) {
        match &self.place {
            Place::Host(host) => host.cancel(self.key),
            Place::Server(server) => server.cancel(self.key),
        }
    }

    /// Ends it by force, if there is one; how, as a part of a sentence.
    fn give_up(&self) -> &'static str {
        match &self.place {
            Place::Host(host) => {
                host.give_up(self.key);
                ", so its process was killed"
            }
            Place::Server(server) => {
                server.give_up(self.key);
                ""
            }
        }
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        if !self.over {
            self.cancel();
            self.give_up();
        }
    }
}
