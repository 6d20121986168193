//! The loop that sends: it claims deliveries as far as there are places, and lets no receiver hold up another.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use carillon_alerts::{Lanes, Left, Limits, Wait};
use carillon_domain::time::BootTime;
use carillon_keeper::boottime_ms;
use carillon_store::StoreError;
use carillon_store::alerts::{Claimed, DeliveryClaim};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::attempt::Attempts;
use super::watch::{SELDOM, SOON};

/// A delivery that has found no place for so long is given back, while its lease is still good.
const WAITS_HERE: Duration = Duration::from_secs(20);

/// The loop and what it holds.
pub(super) struct Loop {
    attempts: Attempts,
    limits: Limits,
    lanes: Lanes,
    /// Claimed, and waiting for a place in their lane.
    queued: BTreeMap<String, VecDeque<(Instant, Claimed)>>,
    /// How many are on their way, by host.
    inside: BTreeMap<String, usize>,
    /// Each answers its host.
    under_way: JoinSet<(String, Left)>,
}

impl Loop {
    pub fn new(attempts: Attempts, limits: Limits) -> Self {
        let (queued, inside) = (BTreeMap::new(), BTreeMap::new());
        Self { attempts, limits, lanes: Lanes::new(limits), queued, inside, under_way: JoinSet::new() }
    }

    /// Sends until `stop`, then waits for the answers to what is under way, and gives back the rest.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let rest = match self.claim().await {
                Ok(full) if full && self.free() > 0 => Duration::ZERO,
                Ok(_) => self.rest(),
                Err(StoreError::Retryable(error)) => {
                    debug!(error, "nothing is sent while the database is away");
                    SOON
                }
                Err(error) => {
                    warn!(%error, "deliveries could not be claimed; they are claimed again");
                    SELDOM
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = self.under_way.join_next() => self.left(done),
                () = tokio::time::sleep(rest) => {}
                () = self.attempts.handle.send_is_wanted() => {}
            }
            self.start_queued();
        }
        for (_, claimed) in std::mem::take(&mut self.queued).into_values().flatten() {
            self.give_back(claimed, "This node ended before it was sent.");
        }
        while let Some(done) = self.under_way.join_next().await {
            self.left(done);
        }
    }

    fn rest(&self) -> Duration {
        let busy = !self.queued.is_empty() || !self.under_way.is_empty() || self.attempts.handle.busy();
        if busy { SOON } else { SELDOM }
    }

    fn free(&self) -> usize {
        self.limits.in_all.saturating_sub(self.under_way.len())
    }

    /// Claims as much as there is room for; whether as much came.
    async fn claim(&mut self) -> Result<bool, StoreError> {
        let limit = self.free();
        if limit == 0 {
            return Ok(false);
        }
        let per_host = self.limits.per_lane;
        let mut in_flight = self.inside.clone();
        // A host with deliveries that wait here gets no more of them.
        in_flight.extend(self.queued.keys().map(|host| (host.clone(), per_host)));
        let session = self.attempts.engine.session();
        let claimed =
            self.attempts.store.claim_deliveries(&DeliveryClaim { session, limit, in_flight, per_host }).await?;
        let full = claimed.len() == limit;
        for claimed in claimed {
            self.queued.entry(claimed.host.clone()).or_default().push_back((Instant::now(), claimed));
        }
        self.start_queued();
        Ok(full)
    }

    /// Starts what has a place, and gives back what has waited for one for long.
    fn start_queued(&mut self) {
        for (host, mut waiting) in std::mem::take(&mut self.queued) {
            while let Some((since, claimed)) = waiting.pop_front() {
                match self.lanes.enter(&host, now()) {
                    Ok(()) => {
                        *self.inside.entry(host.clone()).or_default() += 1;
                        let (attempts, host) = (self.attempts.clone(), host.clone());
                        self.under_way.spawn(async move { (host, attempts.make(claimed).await) });
                    }
                    Err(wait) if since.elapsed() >= WAITS_HERE => {
                        let words = match wait {
                            Wait::ForAPlace => "Not sent: other messages to this receiver have no answer yet.",
                            Wait::Until(_) => "Not sent: the receiver wants to be left alone for a while.",
                        };
                        self.give_back(claimed, words);
                    }
                    Err(_) => {
                        waiting.push_front((since, claimed));
                        break;
                    }
                }
            }
            if !waiting.is_empty() {
                self.queued.insert(host, waiting);
            }
        }
    }

    fn give_back(&mut self, claimed: Claimed, words: &'static str) {
        let (attempts, host) = (self.attempts.clone(), String::new());
        self.under_way.spawn(async move {
            attempts.give_back(&claimed, words).await;
            (host, Left::Answered)
        });
    }

    fn left(&mut self, done: Result<(String, Left), tokio::task::JoinError>) {
        // A task that panicked has said so; its lease runs out.
        let Ok((host, left)) = done else { return };
        if let Some(inside) = self.inside.get_mut(&host) {
            *inside -= 1;
            if *inside == 0 {
                self.inside.remove(&host);
            }
            self.lanes.leave(&host, now(), left);
        }
    }
}

fn now() -> BootTime {
    BootTime::from_ms(boottime_ms())
}
