//! Supervises a run of a plugin: stops it at its timeout or on a cancel, and ends it by force if it does not stop.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::exit_reason::{RunEnd, Stopped};
use super::in_server::InServer;
use super::link::HostLink;
use super::run_table::RunTable;
use crate::execution::DetachedRun;
use crate::executor::Outcome;

/// The pause between two requests to stop. They repeat because a signal just before a system call interrupts nothing.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// An active run whose end a task waits for.
pub(crate) struct SupervisedRun {
    key: u64,
    end: oneshot::Receiver<RunEnd>,
    place: HostPlacement,
    over: bool,
}

/// The place of an active run.
#[derive(Clone)]
pub(crate) enum HostPlacement {
    Host(Arc<HostLink>),
    Server(Arc<InServer>),
}

impl HostPlacement {
    /// The table of its runs.
    pub(crate) fn runs(&self) -> &RunTable {
        match self {
            Self::Host(host) => &host.runs,
            Self::Server(server) => &server.runs,
        }
    }
}

impl SupervisedRun {
    /// The run with that key. `end` receives its end.
    pub(crate) fn new(key: u64, end: oneshot::Receiver<RunEnd>, place: HostPlacement) -> Self {
        Self { key, end, place, over: false }
    }

    /// Waits for the end of the run, and stops it at its limits. The second value is the reason for the stop, if there is one.
    pub(crate) async fn follow(mut self, limits: &Limits) -> (RunEnd, Option<Stopped>) {
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

    async fn ended(end: &mut oneshot::Receiver<RunEnd>, over: &mut bool) -> RunEnd {
        match end.await {
            Ok(end) => {
                *over = true;
                end
            }
            // The table completes every run before it drops the sender, so the server itself is ending.
            Err(_) => std::future::pending().await,
        }
    }

    fn cancel(&self) {
        match &self.place {
            HostPlacement::Host(host) => host.cancel(self.key),
            HostPlacement::Server(server) => server.cancel(self.key),
        }
    }

    /// Ends it by force where that is possible. Returns a part of a sentence.
    fn give_up(&self) -> &'static str {
        match &self.place {
            HostPlacement::Host(host) => {
                host.give_up(self.key);
                ", so its process was killed"
            }
            HostPlacement::Server(server) => {
                server.give_up(self.key);
                ""
            }
        }
    }
}

impl Drop for SupervisedRun {
    fn drop(&mut self) {
        if !self.over {
            self.cancel();
            self.give_up();
        }
    }
}

/// A run in a place, without a task that follows it until it has to stop.
pub(crate) struct DetachedInPlace {
    pub(crate) key: u64,
    pub(crate) place: HostPlacement,
}

impl DetachedRun for DetachedInPlace {
    fn stopped(&self) {
        // The run may have ended. If it moved to another host, a task follows it there.
        let Some((run, end)) = self.place.runs().wait_for(self.key) else { return };
        let limits = Limits::new(None, run.run.facts.kill_grace, run.run.stop.clone());
        let ongoing = SupervisedRun::new(self.key, end, self.place.clone());
        tokio::spawn(async move {
            let (end, stopped) = ongoing.follow(&limits).await;
            run.ended(end, stopped);
        });
    }
}

/// Longer than any run, and short enough not to overflow.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The limits of a run: a cancel, or its timeout.
pub(crate) struct Limits {
    timeout: Option<Duration>,
    over_at: Option<Instant>,
    pub(crate) kill_grace: Duration,
    stop: CancellationToken,
}

impl Limits {
    /// Time counts from now.
    pub(crate) fn new(timeout: Option<Duration>, kill_grace: Duration, stop: CancellationToken) -> Self {
        Self { timeout, over_at: timeout.map(after), kill_grace, stop }
    }

    /// The reason why the run has to stop now, if there is one.
    pub(crate) fn are_reached(&self) -> Option<Stopped> {
        if self.stop.is_cancelled() {
            return Some(cancelled());
        }
        self.over_at.filter(|at| *at <= Instant::now()).map(|_| timed_out(self.timeout))
    }

    /// Waits until the run has to stop. Cancel safe.
    pub(crate) async fn reached(&self) -> Stopped {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => cancelled(),
            () = wait_until(self.over_at) => timed_out(self.timeout),
        }
    }

    /// Waits until the kill_grace of a stopped run is over.
    pub(crate) async fn patience(&self) {
        tokio::time::sleep(self.kill_grace.min(FAR)).await;
    }
}

fn cancelled() -> Stopped {
    (Outcome::Cancelled, "cancelled".to_owned())
}

fn timed_out(timeout: Option<Duration>) -> Stopped {
    let timeout = timeout.unwrap_or_default();
    (Outcome::TimedOut, format!("still running after its timeout of {timeout:?}"))
}

fn after(duration: Duration) -> Instant {
    Instant::now() + duration.min(FAR)
}

/// Never returns if there is no such time.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
