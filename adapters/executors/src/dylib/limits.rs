//! What ends a run of a plugin that does not end by itself: somebody's wish, or its timeout.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::verdict::Stopped;
use crate::executor::Ended;

/// Further than any run goes, and still a moment that can be computed with.
const FAR: Duration = Duration::from_secs(100 * 365 * 86_400);

/// What ends a run that does not end by itself.
pub(super) struct Limits {
    timeout: Option<Duration>,
    over_at: Option<Instant>,
    pub(super) kill_grace: Duration,
    stop: CancellationToken,
}

impl Limits {
    /// Time counts from now.
    pub(super) fn new(timeout: Option<Duration>, kill_grace: Duration, stop: CancellationToken) -> Self {
        Self { timeout, over_at: timeout.map(after), kill_grace, stop }
    }

    /// Why the run is to stop now, if it is.
    pub(super) fn are_reached(&self) -> Option<Stopped> {
        if self.stop.is_cancelled() {
            return Some(cancelled());
        }
        self.over_at.filter(|at| *at <= Instant::now()).map(|_| timed_out(self.timeout))
    }

    /// Waits until the run is to stop. Cancel safe.
    pub(super) async fn reached(&self) -> Stopped {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => cancelled(),
            () = wait_until(self.over_at) => timed_out(self.timeout),
        }
    }

    /// Waits until patience with a run that was told to stop is over.
    pub(super) async fn patience(&self) {
        tokio::time::sleep(self.kill_grace.min(FAR)).await;
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
