//! Calls of monitors at the start of runs: once, by the node that starts, without a promise.

use std::future::Future;
use std::sync::Arc;

use carillon_alerts::{Sender, render_start};
use carillon_domain::time::Timestamp;
use tokio::sync::{Semaphore, mpsc};
use tracing::debug;

use crate::engine::EngineHandle;

/// So many calls wait for a place; further ones are dropped.
const WAITING: usize = 1_000;
/// So many are made at once.
const AT_ONCE: usize = 16;

/// The loop that calls, told of starts by the engine.
pub(super) fn begin(engine: &EngineHandle, sender: Arc<Sender>) -> impl Future<Output = ()> + Send + 'static {
    let (send, mut starts) = mpsc::channel::<String>(WAITING);
    engine.tell_starts_to(send);
    let places = Arc::new(Semaphore::new(AT_ONCE));
    async move {
        while let Some(url) = starts.recv().await {
            let Ok(place) = places.clone().acquire_owned().await else { return };
            let sender = sender.clone();
            tokio::spawn(async move {
                // It has no secret, so no time is signed.
                let outcome = sender.post(&render_start(&url), Timestamp::EPOCH).await;
                debug!("a monitor was told of a start: {}", outcome.words());
                drop(place);
            });
        }
    }
}
