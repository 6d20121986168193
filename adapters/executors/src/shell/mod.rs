//! The executor `shell`: a command for a shell, or a program with its arguments.
//!
//! It turns a job's params into a [`Spawn`] and leaves the rest to the [keeper](carillon_keeper). A run is its main process; everything
//! that this leaves behind dies with it.
//!
//! The environment of a run is exactly PATH, HOME, USER, LANG, the six `CARILLON_*` facts and `params.env`, and TRACEPARENT where runs
//! are traced. `params.env` may override all but the facts. Nothing of the server's own environment gets in. The working directory is `params.dir`, or HOME as the run
//! sees it. An account's home that cannot be entered is replaced by `/`, as cron does.

mod account;
mod environment;
mod params;
mod schema;
pub(crate) mod secrets;

use std::ffi::CString;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::executor::{Executor, ExecutorDescription, Exit, Live, Outcome, RunFacts};
use account::{Account, Accounts};
use carillon_keeper::{KeeperHandle, Spawn};
use params::{Params, Program};

/// The section `[shell]` of the configuration.
#[derive(Debug, Clone, Default)]
pub struct ShellConfig {
    /// Users, besides the server's own, that a job's `user` may name. Works only where the server may switch: as root.
    pub allow_users: Vec<String>,
}

/// Runs shell commands and programs through a keeper.
pub struct ShellExecutor {
    keeper: KeeperHandle,
    accounts: Accounts,
}

impl ShellExecutor {
    /// Looks up the server's own account; that may ask name services, so call it at start.
    pub fn new(keeper: KeeperHandle, config: ShellConfig) -> Self {
        Self { keeper, accounts: Accounts::new(config.allow_users) }
    }

    /// Everything about the run decided, or a sentence why it cannot start. May ask name services.
    fn plan(accounts: &Accounts, facts: &RunFacts) -> Result<Spawn, String> {
        let sentences = |problems: Vec<(String, String)>| {
            let each = problems.into_iter().map(|(field, sentence)| format!("{field} {sentence}"));
            each.collect::<Vec<_>>().join("; ")
        };
        let params = Params::read(&facts.params.value()).map_err(sentences)?;
        let account = match &params.user {
            Some(user) => accounts.allowed(user).map_err(|sentence| format!("params.user {sentence}"))?,
            None => accounts.own(),
        };
        let home = params.env.get("HOME").cloned();
        let env = environment::build(&account, facts, params.env);
        let (dir, dir_or_root) = match params.dir.or(home) {
            Some(dir) => (dir, false),
            None => (account.home, true),
        };
        let argv = match params.program {
            Program::Command { shell, command } => vec![shell, "-c".to_owned(), command],
            Program::Argv(argv) => argv,
        };
        Ok(Spawn {
            run: facts.run_id,
            argv: strings(argv)?,
            env: strings(env)?,
            dir: string(dir)?,
            dir_or_root,
            stdin: params.stdin.map(String::into_bytes),
            user: account.switch,
            timeout: facts.timeout,
            kill_grace: facts.kill_grace,
        })
    }
}

fn string(text: String) -> Result<CString, String> {
    CString::new(text).map_err(|_| "params hold a NUL character, which no program can be given".to_owned())
}

fn strings(texts: Vec<String>) -> Result<Vec<CString>, String> {
    texts.into_iter().map(string).collect()
}

#[async_trait]
impl Executor for ShellExecutor {
    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> ExecutorDescription {
        let (version, params_schema) = (env!("CARGO_PKG_VERSION").to_owned(), Some(schema::params_schema()));
        ExecutorDescription { version, abi: None, params_schema, plugin: None }
    }

    /// May ask name services when `params.user` is given; call it where blocking for a moment is allowed.
    fn check(&self, params: &Value) -> Result<(), Vec<(String, String)>> {
        let params = Params::read(params)?;
        match params.user.map(|user| self.accounts.allowed(&user)) {
            Some(Err(sentence)) => Err(vec![("params.user".to_owned(), sentence)]),
            Some(Ok(Account { .. })) | None => Ok(()),
        }
    }

    /// Dropping the future kills the run.
    async fn run(&self, facts: RunFacts, live: Live, stop: CancellationToken) -> Exit {
        let plan = if facts.params.field("user").is_some() {
            let accounts = self.accounts.clone();
            let planned = tokio::task::spawn_blocking(move || Self::plan(&accounts, &facts)).await;
            planned.unwrap_or_else(|_| Err("the server is shutting down".to_owned()))
        } else {
            Self::plan(&self.accounts, &facts)
        };
        let spawn = match plan {
            Ok(spawn) => spawn,
            Err(sentence) => return Exit::without_process(Outcome::Failed, sentence),
        };
        if stop.is_cancelled() {
            return Exit::without_process(Outcome::Cancelled, "cancelled before it started");
        }
        self.keeper.spawn(spawn, live).follow(&stop).await
    }
}
