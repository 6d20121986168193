//! What ends a run of a plugin that does not end by itself: somebody's wish, or its timeout.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::verdict::Stopped;
use crate::executor::{Ended, Stop};

/// Further than any run goes, and still a moment that can be computed with.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What ends a run that does not end by itself.
pub(super) struct Limits {
    timeout: Option<Duration>,
    over_at: Option<Instant>,
    pub(super) kill_grace: Duration,
    stop: watch::Receiver<Stop>,
}

impl Limits {
    /// Time counts from now.
    pub(super) fn new(timeout: Option<Duration>, kill_grace: Duration, stop: watch::Receiver<Stop>) -> Self {
        Self { timeout, over_at: timeout.map(after), kill_grace, stop }
    }

    /// Why the run is to stop now, if it is.
    pub(super) fn are_reached(&self) -> Option<Stopped> {
        if *self.stop.borrow() != Stop::No {
            return Some(cancelled());
        }
        self.over_at.filter(|at| *at <= Instant::now()).map(|_| timed_out(self.timeout))
    }

    /// Waits until the run is to stop. Cancel safe.
    pub(super) async fn reached(&mut self) -> Stopped {
        tokio::select! {
            biased;
            // Without anybody who could ask, it is never asked.
            Ok(_) = self.stop.wait_for(|stop| *stop != Stop::No) => cancelled(),
            () = wait_until(self.over_at) => timed_out(self.timeout),
        }
    }

    /// Waits until patience with a run that was told to stop is over.
    pub(super) async fn patience(&mut self) {
        tokio::select! {
            Ok(_) = self.stop.wait_for(|stop| *stop == Stop::Now) => {}
            () = tokio::time::sleep(self.kill_grace.min(FAR)) => {}
        }
    }
}

fn cancelled() -> Stopped {
    (Ended::Cancelled, "cancelled".to_owned())
}

fn timed_out(timeout: Option<Duration>) -> Stopped {
    let timeout = timeout.unwrap_or_default();
    (Ended::TimedOut, format!("still running after its timeout of {timeout:?}"))
}

fn after(duration: Duration) -> Instant {
    Instant::now() + duration.min(FAR)
}

/// For ever, at no price, if there is no such time.
async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
