//! The watch loop: facts of the journals, and expectations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use carillon_store::{Store, StoreError};
use tracing::{debug, warn};

use super::handle::AlertsHandle;
use super::unreadable::UnreadableRows;

/// How long between two looks while there is somebody to tell.
pub(super) const SOON: Duration = Duration::from_secs(1);
/// How long between two looks while there is nobody.
pub(super) const SELDOM: Duration = Duration::from_secs(10);
/// How many rows of a journal, and how many jobs, one look takes.
const AT_ONCE: usize = 1_000;
/// A job with a monitor but without expectations shows itself by its calls only; so long after one more are expected.
const LINGER: Duration = Duration::from_secs(600);
/// For how many times as long as a look took nothing is looked at after it.
const RESTS: u32 = 4;

/// The loop.
pub(super) struct Watch {
    pub store: Arc<dyn Store>,
    pub handle: AlertsHandle,
}

/// The effect of one look.
#[derive(Debug, Clone, Copy, Default)]
struct Look {
    /// Whether another one has work at once.
    more: bool,
    /// Whether anything was found, or will be at a known time.
    found: bool,
}

impl Watch {
    /// Watches for ever. A database that is away is asked again.
    pub async fn run(self) {
        let mut found_at: Option<Instant> = None;
        // When routes were asked for last, and whether there were any.
        let mut routes: Option<(Instant, bool)> = None;
        let mut woken = true;
        let mut unreadable = UnreadableRows::default();
        loop {
            let begun = Instant::now();
            unreadable.look(&self).await;
            let rest = match self.look(&mut routes, woken).await {
                Ok(look) => {
                    if look.found {
                        found_at = Some(begun);
                    }
                    let lately = found_at.is_some_and(|at| begun.duration_since(at) < LINGER);
                    let busy = lately || routes.is_some_and(|(_, any)| any);
                    self.handle.is_busy(busy);
                    match (look.more, busy) {
                        (true, _) => (begun.elapsed() * RESTS).min(SOON),
                        (false, true) => SOON,
                        (false, false) => SELDOM,
                    }
                }
                Err(StoreError::Retryable(error)) => {
                    debug!(error, "nobody is told anything while the database is away");
                    SOON
                }
                Err(error) => {
                    warn!(%error, "alerts could not be looked at; they are looked at again");
                    SELDOM
                }
            };
            woken = tokio::select! {
                () = tokio::time::sleep(rest) => false,
                () = self.handle.step_is_wanted() => true,
            };
        }
    }

    async fn look(&self, routes: &mut Option<(Instant, bool)>, woken: bool) -> Result<Look, StoreError> {
        if woken || routes.is_none_or(|(at, _)| at.elapsed() >= SELDOM) {
            *routes = Some((Instant::now(), !self.store.routes().await?.is_empty()));
        }
        let watched = self.store.watch_expectations(AT_ONCE).await?;
        let stepped = self.store.alert_step(AT_ONCE).await?;
        if stepped.notices + stepped.pings > 0 {
            self.handle.count().notices += stepped.notices as u64;
            self.handle.send();
        }
        let found = stepped.pings > 0 || stepped.next_look.is_some() || watched.next_look.is_some() || watched.jobs > 0;
        Ok(Look { more: stepped.more || watched.more, found })
    }
}
