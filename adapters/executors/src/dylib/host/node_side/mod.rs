//! The host processes of one plugin: one that takes new runs, and those that only end what they have.
//!
//! A host is started when the first run comes and kept. One that ends by itself is started again after a pause. The pause doubles from
//! [`FIRST_PAUSE`] to [`LONGEST_PAUSE`], and is short again once a host has lived for [`HEALTHY`]. Runs that
//! arrive during the pause wait. If the next start fails, they fail with its reason.

pub(crate) mod exit_reason;
mod host_process;
pub(crate) mod in_server;
mod link;
mod printed;
pub(crate) mod run_table;
pub(crate) mod supervise;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use self::exit_reason::{HostEnd, Killed, NotStarted};
use self::link::HostLink;
use self::run_table::{Completion, Entry};
use crate::dylib::abi_input::AbiInput;
use crate::dylib::catalog::Plugin;
use crate::executor::{HostState, Outcome};
use carillon_keeper::KeeperHandle;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const HEALTHY: Duration = Duration::from_secs(60);

/// The hosts of one plugin.
pub(crate) struct Hosts {
    plugin: Arc<Plugin>,
    keeper: KeeperHandle,
    state: Mutex<State>,
    /// Changes when a start has succeeded or failed.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// Ready, or ending.
    links: Vec<Arc<HostLink>>,
    /// The number of the start that is going on.
    starting: Option<u64>,
    starts: u64,
    /// The newest start that failed, and why.
    failed: Option<(u64, NotStarted)>,
    /// Why the last host ended that was not to end.
    trouble: Option<String>,
    pause: Option<Duration>,
    not_before: Option<Instant>,
}

/// A host and the key of a run in it.
pub(crate) type InHost = (Arc<HostLink>, u64);

impl Hosts {
    /// None is started yet.
    pub(crate) fn new(plugin: Arc<Plugin>, keeper: KeeperHandle) -> Arc<Self> {
        Arc::new(Self { plugin, keeper, state: Mutex::default(), changed: watch::Sender::new(()) })
    }

    /// Begins a run in a host that takes it now; gives it back if there is none.
    pub(crate) fn begin_at_once<T: Into<Completion>>(
        &self,
        facts: &AbiInput,
        entry: Entry<T>,
    ) -> Result<InHost, Entry<T>> {
        self.state().begin(facts, entry)
    }

    /// Begins a run in a host, starting one if need be. May wait for long: cancel safe until it
    /// has answered.
    pub(crate) async fn begin<T: Into<Completion>>(
        self: &Arc<Self>,
        facts: &AbiInput,
        mut entry: Entry<T>,
    ) -> Result<InHost, NotStarted> {
        let mut changed = self.changed.subscribe();
        let mut awaited = None;
        loop {
            {
                let mut state = self.state();
                entry = match state.begin(facts, entry) {
                    Ok(begun) => return Ok(begun),
                    Err(entry) => entry,
                };
                match (&state.failed, awaited) {
                    (Some((failed, why)), Some(awaited)) if *failed >= awaited => return Err(why.clone()),
                    _ => awaited = Some(self.ensure_start(&mut state)),
                }
            }
            // The sender lives as long as `self`.
            let _ = changed.changed().await;
        }
    }

    /// The state of the newest host, and its trouble.
    pub(crate) fn describe(&self) -> (HostState, Option<String>) {
        let state = self.state();
        let trouble = state.trouble.clone();
        let waits = state.not_before.is_some_and(|at| at > Instant::now());
        match state.links.iter().any(|link| link.is_open()) {
            true => (HostState::Running, None),
            false if waits && trouble.is_some() => (HostState::BackingOff, trouble),
            false if state.starting.is_some() => (HostState::Starting, trouble),
            false => (HostState::NotStarted, trouble),
        }
    }

    /// The number of the current start. Begins one if there is none.
    fn ensure_start(self: &Arc<Self>, state: &mut State) -> u64 {
        if let Some(number) = state.starting {
            return number;
        }
        state.starts += 1;
        let (number, not_before) = (state.starts, state.not_before);
        state.starting = Some(number);
        let hosts = self.clone();
        tokio::spawn(async move {
            if let Some(at) = not_before {
                tokio::time::sleep_until(at).await;
            }
            hosts.start(number).await;
        });
        number
    }

    async fn start(self: &Arc<Self>, number: u64) {
        let (hosts, began) = (Arc::downgrade(self), Instant::now());
        let on_end = move |end: &HostEnd| Self::ended(&hosts, end, began.elapsed());
        let started = host_process::start(&self.plugin, &self.keeper, on_end).await;
        {
            let mut state = self.state();
            state.starting = None;
            state.links.retain(|link| !link.has_ended());
            match started {
                Ok(link) => state.links.push(link),
                Err((how, reason)) => {
                    let name = &self.plugin.description.name;
                    let reason = format!("no process of plugin {name} could be started: {reason}");
                    tracing::warn!("{reason}");
                    if how != Outcome::Lost {
                        state.lengthen_pause(Duration::ZERO);
                    }
                    state.trouble = Some(reason.clone());
                    state.failed = Some((number, (how, reason)));
                }
            }
        }
        self.changed.send_replace(());
    }

    /// A host has ended. One that the server ended, or that the fence did, says nothing of the plugin.
    fn ended(hosts: &Weak<Self>, end: &HostEnd, lived: Duration) {
        let Some(hosts) = hosts.upgrade() else { return };
        let meant = matches!(end.killed, Some(Killed::Retired | Killed::NotStopped));
        if meant || end.exit.how == Outcome::Lost {
            return;
        }
        let trouble = format!("plugin {} {}", end.plugin, end.why());
        let mut state = hosts.state();
        let pause = state.lengthen_pause(lived);
        tracing::warn!("{trouble}; its process is started again, {pause:?} from now at the earliest");
        state.trouble = Some(trouble);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.state().links.iter().for_each(|link| link.retire());
    }
}

impl State {
    fn begin<T: Into<Completion>>(&self, facts: &AbiInput, mut entry: Entry<T>) -> Result<InHost, Entry<T>> {
        for link in &self.links {
            entry = match link.begin(facts, entry) {
                Ok(key) => return Ok((link.clone(), key)),
                Err(entry) => entry,
            };
        }
        Err(entry)
    }

    /// Notes a failure of a host that lived for so long; answers the pause before the next one.
    fn lengthen_pause(&mut self, lived: Duration) -> Duration {
        let pause = match self.pause {
            Some(pause) if lived < HEALTHY => (2 * pause).min(LONGEST_PAUSE),
            _ => FIRST_PAUSE,
        };
        self.pause = Some(pause);
        self.not_before = Some(Instant::now() + pause);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_pause_doubles_up_to_its_limit_and_health_makes_it_short_again() {
        let mut state = State::default();
        let pauses: Vec<u128> = (0..9).map(|_| state.lengthen_pause(Duration::ZERO).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(state.lengthen_pause(HEALTHY), FIRST_PAUSE);
        assert_eq!(state.lengthen_pause(Duration::ZERO), 2 * FIRST_PAUSE);
    }
}
