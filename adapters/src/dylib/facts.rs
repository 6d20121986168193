//! The facts of a run, from the executor's to the plugin's: the same in a host process and in the server.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use carillon_plugin::abi::{Env, RunFacts as AbiFacts};
use serde_json::Value;

use super::wire::Facts;
use crate::executor::{RESERVED, RunFacts};
use crate::shell::secrets;

impl Facts {
    /// What the plugin is told. The run's time counts from now.
    pub(super) fn of(facts: RunFacts) -> Self {
        Self {
            run_id: facts.run_id.to_string(),
            attempt: facts.attempt,
            due_at_ms: facts.due_at.as_ms(),
            deadline_ms: facts.timeout.map_or(0, deadline_ms),
            fencing_token: facts.fencing_token,
            env: variables(&facts),
            namespace: facts.namespace,
            job: facts.job,
            params: facts.params,
        }
    }
}

/// The variables of any run, and `params.env` where the plugin's schema allows one. They are told to the plugin, never put
/// into the environment of a process: that is shared by many runs, and LD_PRELOAD would make other code run in it.
fn variables(facts: &RunFacts) -> Vec<(String, String)> {
    let mut variables = facts.variables().map(|(name, value)| (name.to_owned(), value)).to_vec();
    let own = facts.params.get("env").and_then(Value::as_object).into_iter().flatten();
    let own = own.filter_map(|(name, value)| Some((name.clone(), secrets::text(value)?.to_owned())));
    for (name, value) in own.filter(|(name, _)| !name.starts_with(RESERVED)) {
        variables.retain(|(given, _)| *given != name);
        variables.push((name, value));
    }
    variables
}

fn deadline_ms(timeout: Duration) -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.saturating_add(timeout).as_millis()).unwrap_or(i64::MAX)
}

/// The facts with their strings as C wants them.
pub(super) struct Strings {
    facts: Facts,
    namespace: CString,
    job: CString,
    run_id: CString,
    params: CString,
    env: Vec<(CString, CString)>,
}

/// The functions that a plugin may call during a run, and what it hands them.
pub(super) struct Callbacks {
    pub(super) host: *mut c_void,
    pub(super) write: unsafe extern "C" fn(*mut c_void, *const c_char, usize) -> i32,
    pub(super) cancelled: unsafe extern "C" fn(*mut c_void) -> i32,
}

impl Strings {
    pub(super) fn new(facts: Facts) -> Result<Self, String> {
        let string = |text: &str, what: &str| CString::new(text).map_err(|_| format!("{what} holds a NUL character"));
        let variable = |(name, value): &(String, String)| {
            let what = format!("the variable {name:?}");
            Ok::<_, String>((string(name, &what)?, string(value, &what)?))
        };
        Ok(Self {
            namespace: string(&facts.namespace, "the namespace")?,
            job: string(&facts.job, "the job's name")?,
            run_id: string(&facts.run_id, "the run's id")?,
            params: string(&facts.params.to_string(), "params")?,
            env: facts.env.iter().map(variable).collect::<Result<_, _>>()?,
            facts,
        })
    }

    pub(super) fn variables(&self) -> Vec<Env> {
        self.env.iter().map(|(name, value)| Env { name: name.as_ptr(), value: value.as_ptr() }).collect()
    }

    /// Valid while `self` and `variables` are.
    pub(super) fn for_plugin(&self, variables: &[Env], callbacks: &Callbacks) -> AbiFacts {
        AbiFacts {
            struct_size: size_of::<AbiFacts>() as u32,
            attempt: self.facts.attempt,
            job_namespace: self.namespace.as_ptr(),
            job: self.job.as_ptr(),
            run_id: self.run_id.as_ptr(),
            due_at_ms: self.facts.due_at_ms,
            deadline_ms: self.facts.deadline_ms,
            fencing_token: self.facts.fencing_token,
            params_json: self.params.as_ptr(),
            env: if variables.is_empty() { ptr::null() } else { variables.as_ptr() },
            env_count: u32::try_from(variables.len()).unwrap_or(u32::MAX),
            reserved: 0,
            host: callbacks.host,
            write: callbacks.write,
            cancelled: callbacks.cancelled,
        }
    }
}
