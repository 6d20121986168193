//! Publishing what runs print, for those who read it at another node.
//!
//! A task of its own with one call under way at the most: scheduling never waits for it. What fails is not repeated, as
//! there is more to publish soon.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::id::RunId;
use carillon_domain::node::port::WantedOutput;
use carillon_store::{LivePart, Store};
use tokio::sync::watch;
use tracing::debug;

use super::EngineHandle;

/// How long between two looks at what was printed.
const PUBLISH_EVERY: Duration = Duration::from_millis(500);
/// How many runs are published in one call: 64 KiB each.
const RUNS_AT_ONCE: usize = 32;

/// The way to the task that publishes; it ends when this is dropped.
pub(super) struct Publisher(watch::Sender<Vec<WantedOutput>>);

impl Publisher {
    pub fn spawn(store: Arc<dyn Store>, handle: EngineHandle, statement_timeout: Duration) -> Self {
        let (wanted, to_task) = watch::channel(Vec::new());
        tokio::spawn(publish(store, handle, statement_timeout, to_task));
        Self(wanted)
    }

    /// The outputs that the latest peek found to be read elsewhere.
    pub fn wanted(&self, wanted: &[WantedOutput]) {
        self.0.send_if_modified(|known| {
            let changed = *known != wanted;
            if changed {
                *known = wanted.to_vec();
            }
            changed
        });
    }
}

async fn publish(
    store: Arc<dyn Store>,
    handle: EngineHandle,
    statement_timeout: Duration,
    mut wanted: watch::Receiver<Vec<WantedOutput>>,
) {
    let mut after = None;
    while wanted.changed().await.is_ok() {
        // The database has the last word: a call may have failed, and readers come and go.
        let mut published: BTreeMap<RunId, Option<u64>> =
            wanted.borrow_and_update().iter().map(|wanted| (wanted.run, wanted.published)).collect();
        while !published.is_empty() && matches!(wanted.has_changed(), Ok(false)) {
            let parts = next_parts(&handle, &published, after);
            after = parts.last().map(|(run, _)| *run);
            if write(&*store, &parts, statement_timeout).await {
                published.extend(parts.iter().map(|(run, part)| (*run, Some(part.written))));
            }
            tokio::time::sleep(PUBLISH_EVERY).await;
        }
    }
}

/// `true` when all of it is published.
async fn write(store: &dyn Store, parts: &[(RunId, LivePart)], statement_timeout: Duration) -> bool {
    if parts.is_empty() {
        return true;
    }
    let outcome = tokio::time::timeout(statement_timeout, store.publish_output(parts)).await;
    match &outcome {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "live output could not be published"),
        Err(_) => debug!("live output could not be published within {statement_timeout:?}"),
    }
    matches!(outcome, Ok(Ok(())))
}

/// The output since the last publication, beginning with the runs whose turn is next.
fn next_parts(
    handle: &EngineHandle,
    published: &BTreeMap<RunId, Option<u64>>,
    after: Option<RunId>,
) -> Vec<(RunId, LivePart)> {
    let is_later = |run: &RunId| after.is_none_or(|after| *run > after);
    let later = published.iter().filter(|(run, _)| is_later(run));
    let others = published.iter().filter(|(run, _)| !is_later(run));
    let news = later.chain(others).filter_map(|(run, known)| Some((*run, handle.printed_since(*run, *known)?)));
    news.take(RUNS_AT_ONCE).collect()
}
