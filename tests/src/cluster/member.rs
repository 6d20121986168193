//! A node under a service manager: started again whenever it ends, as `Restart=always` does.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::server::{Server, show_log};
use crate::waiting::wait_until_within;

/// How often it is looked whether the process is there.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long the first start may take.
const FIRST: Duration = Duration::from_secs(60);

/// A node that is started again whenever it ends.
pub struct Member {
    name: String,
    home: PathBuf,
    shared: Arc<Shared>,
    stop: Option<Sender<()>>,
    manager: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    running: Mutex<Option<Arc<Server>>>,
    ends: Mutex<Vec<(Instant, String)>>,
    /// Held while it is started, and while nobody may start it.
    starting: Mutex<()>,
}

impl Member {
    pub(super) fn start(home: PathBuf, name: &str, environment: Vec<String>) -> Self {
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = channel();
        let (of_manager, at) = (Arc::clone(&shared), home.clone());
        let manager = std::thread::spawn(move || manage(&at, &environment, &of_manager, &stopped));
        let member = Self { name: name.to_owned(), home, shared, stop: Some(stop), manager: Some(manager) };
        wait_until_within(FIRST, &format!("node {name} is ready"), || member.is_ready());
        member
    }

    /// Whether it runs, and says that it schedules.
    pub fn is_ready(&self) -> bool {
        self.server().is_some_and(|server| server.is_ready())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The server as it runs now, ready or not; `None` while it is down.
    pub fn server(&self) -> Option<Arc<Server>> {
        self.shared.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts it no more while the guard is held; one that is being started is waited for.
    pub fn hold_starts(&self) -> MutexGuard<'_, ()> {
        self.shared.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How its processes have ended so far, and when that was seen.
    pub fn ends(&self) -> Vec<(Instant, String)> {
        self.shared.ends.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends a signal to the running process.
    pub fn signal(&self, signal: Signal) {
        self.server().expect("the node runs").signal(signal);
    }

    /// Drains it, starting it no more; how it ended.
    pub fn drain(mut self) -> String {
        drop(self.stop.take());
        if let Some(server) = self.server() {
            server.signal(Signal::SIGTERM);
        }
        if let Some(manager) = self.manager.take() {
            manager.join().expect("the manager of a node");
        }
        self.ends().pop().map(|(_, how)| how).unwrap_or_default()
    }
}

impl Drop for Member {
    /// Ends it, if it was not drained.
    fn drop(&mut self) {
        drop(self.stop.take());
        let Some(manager) = self.manager.take() else { return };
        let ends: Vec<String> = self.ends().into_iter().map(|(_, how)| how).collect();
        if let Some(server) = self.server() {
            let _gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(server.pid()), Signal::SIGKILL);
        }
        let _ended = manager.join();
        // The manager dropped the server, and nothing has failed in its thread.
        show_log(&self.home, &ends.join(", "));
    }
}

fn manage(home: &Path, environment: &[String], shared: &Shared, stopped: &Receiver<()>) {
    let environment: Vec<(&str, &str)> = environment.iter().filter_map(|pair| pair.split_once('=')).collect();
    loop {
        // Whether it can schedule is up to the database, which may be away, or wait for people.
        let started = {
            let _one_at_a_time = shared.starting.lock().unwrap_or_else(PoisonError::into_inner);
            Server::try_listen(home, |command| command.envs(environment.iter().copied()))
        };
        let Ok(server) = started else {
            // The database is away: again in a moment.
            if is_over(stopped, Duration::from_millis(200)) {
                return;
            }
            continue;
        };
        if is_over(stopped, Duration::ZERO) {
            return;
        }
        let server = Arc::new(server);
        *shared.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&server));
        let status = loop {
            if let Some(status) = server.has_ended() {
                break status;
            }
            std::thread::park_timeout(LOOK_EVERY);
        };
        *shared.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
        shared.ends.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), status.to_string()));
        if is_over(stopped, Duration::from_millis(200)) {
            return;
        }
    }
}

/// Whether nobody wants it any more, now or within `pause`.
fn is_over(stopped: &Receiver<()>, pause: Duration) -> bool {
    !matches!(stopped.recv_timeout(pause), Err(std::sync::mpsc::RecvTimeoutError::Timeout))
}
