//! A plugin as an executor: one run, one host process, one child of the keeper.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::discovery::Plugin;
use super::verdict;
use super::wire::{Description, Facts, ReportFile};
use crate::executor::{Ended, Executor, ExecutorDescription, Exit, RESERVED, RunFacts, Stop};
use crate::keeper::{KeeperHandle, Spawn};

/// Runs jobs by a plugin. Each run that is going on costs the server one descriptor, for its report.
pub struct DylibExecutor {
    plugin: Plugin,
    keeper: KeeperHandle,
}

impl DylibExecutor {
    /// Runs of `plugin` become children of `keeper`.
    pub fn new(plugin: Plugin, keeper: KeeperHandle) -> Self {
        Self { plugin, keeper }
    }

    /// The plugin.
    pub fn plugin(&self) -> &Plugin {
        &self.plugin
    }

    fn plan(&self, facts: RunFacts, report: &ReportFile) -> Result<Spawn, String> {
        let process_env = environment(&facts);
        let spawn = Spawn {
            run: facts.run_id,
            argv: vec![
                string(self.plugin.host.program.as_os_str().as_bytes())?,
                string(super::SUBCOMMAND)?,
                c"run".to_owned(),
                path(&self.plugin.image.path())?,
                path(&report.path())?,
            ],
            env: process_env.iter().map(|(name, value)| string(format!("{name}={value}"))).collect::<Result<_, _>>()?,
            dir: c"/".to_owned(),
            dir_or_root: false,
            stdin: None,
            user: None,
            timeout: facts.timeout,
            kill_grace: facts.kill_grace,
        };
        let facts = Facts {
            namespace: facts.namespace,
            job: facts.job,
            run_id: facts.run_id.to_string(),
            attempt: facts.attempt,
            due_at_ms: facts.due_at.as_ms(),
            deadline_ms: facts.timeout.map_or(0, deadline_ms),
            fencing_token: facts.fencing_token,
            env: with_own(process_env, &facts.params),
            params: facts.params,
        };
        let stdin = serde_json::to_vec(&facts).map_err(|error| format!("its facts cannot be written: {error}"))?;
        Ok(Spawn { stdin: Some(stdin), ..spawn })
    }
}

#[async_trait]
impl Executor for DylibExecutor {
    fn name(&self) -> &str {
        &self.plugin.description.name
    }

    fn description(&self) -> ExecutorDescription {
        let Description { version, abi_version, params_schema, .. } = self.plugin.description();
        let (version, params_schema) = (version.clone(), Some(params_schema.clone()));
        ExecutorDescription { version, abi: Some(*abi_version), params_schema }
    }

    fn check(&self, params: &Value) -> Result<(), Vec<(String, String)>> {
        self.plugin.schema.check(params)
    }

    /// Dropping the future kills the run.
    async fn run(&self, facts: RunFacts, live: mpsc::Sender<Vec<u8>>, mut stop: watch::Receiver<Stop>) -> Exit {
        let planned = ReportFile::new().and_then(|report| Ok((self.plan(facts, &report)?, report)));
        let (spawn, report) = match planned {
            Ok(planned) => planned,
            Err(sentence) => return Exit::without_process(Ended::Failed, sentence),
        };
        if *stop.borrow_and_update() != Stop::No {
            return Exit::without_process(Ended::Cancelled, "cancelled before it started");
        }
        let exit = self.keeper.spawn(spawn, live).follow(stop).await;
        verdict::judge(exit, report.read())
    }
}

/// The environment of the host process: nothing of the server's own, and nothing of the job's, because a variable such as
/// LD_PRELOAD would make other code run in it.
fn environment(facts: &RunFacts) -> Vec<(String, String)> {
    facts.variables().map(|(name, value)| (name.to_owned(), value)).into()
}

/// The variables that the plugin is told: those of the process, and `params.env` where the plugin's schema allows one.
fn with_own(mut env: Vec<(String, String)>, params: &Value) -> Vec<(String, String)> {
    let own = params.get("env").and_then(Value::as_object).into_iter().flatten();
    let own = own.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    for (name, value) in own.filter(|(name, _)| !name.starts_with(RESERVED)) {
        env.retain(|(given, _)| *given != name);
        env.push((name, value));
    }
    env
}

/// A little before the keeper stops the run, as the clock there starts a little later.
fn deadline_ms(timeout: Duration) -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.saturating_add(timeout).as_millis()).unwrap_or(i64::MAX)
}

fn path(path: &Path) -> Result<CString, String> {
    string(path.as_os_str().as_bytes())
}

fn string(text: impl Into<Vec<u8>>) -> Result<CString, String> {
    CString::new(text).map_err(|_| "a NUL character stands where no program can be given one".to_owned())
}
