//! History is kept as long as `[history]` says; a little is deleted at a time, so that nothing waits for it.

use std::time::Duration;

use tracing::{debug, warn};

use super::SharedStore;
use crate::config::HistoryConfig;

const EVERY: Duration = Duration::from_secs(60);
const ROWS_AT_ONCE: usize = 1_000;

/// Deletes what has become too old or too much, for ever.
pub(super) async fn run(store: SharedStore, history: HistoryConfig) {
    loop {
        tokio::time::sleep(EVERY).await;
        loop {
            let now = match store.now().await {
                Ok(now) => now,
                Err(error) => {
                    debug!(%error, "history is not purged while the database is away");
                    break;
                }
            };
            match store.purge(now - history.keep, history.max_runs_per_job, ROWS_AT_ONCE).await {
                Ok(rows) if rows == ROWS_AT_ONCE => {}
                Ok(_) => break,
                Err(error) => {
                    warn!(%error, "history could not be purged");
                    break;
                }
            }
        }
    }
}
