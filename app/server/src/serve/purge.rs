//! History is kept as long as `[history]` says, and the audit log as long as `[audit]` says. A purge of ten million rows must not hold up
//! firings. So it deletes a little at a time and pauses between.

use std::time::{Duration, Instant};

use carillon_store::StoreError;
use tracing::{debug, warn};

use super::SharedStore;
use carillon_node::config::{AuditConfig, HistoryConfig};

/// How long to wait where nothing was left to delete, of what was looked at.
const EVERY: Duration = Duration::from_secs(30);
/// How many rows go in one transaction: it takes some milliseconds, and so does the commit that others wait for.
const ROWS_AT_ONCE: usize = 500;
/// For how many times as long as a transaction took nothing is deleted after it.
const RESTS: u32 = 4;

/// Deletes what has become too old or too much, for ever.
pub(super) async fn run(store: SharedStore, history: HistoryConfig, audit: AuditConfig) {
    let mut rest = EVERY;
    loop {
        tokio::time::sleep(rest).await;
        let begun = Instant::now();
        rest = match purge(&store, &history, &audit).await {
            Ok(rows) => rest_after(rows, begun.elapsed()),
            Err(StoreError::Retryable(error)) => {
                debug!(error, "history is not purged while the database is away");
                EVERY
            }
            Err(error) => {
                warn!(%error, "history could not be purged");
                EVERY
            }
        };
    }
}

/// Answers the most that was deleted of one kind.
async fn purge(store: &SharedStore, history: &HistoryConfig, audit: &AuditConfig) -> Result<usize, StoreError> {
    let now = store.now().await?;
    let records = store.purge(now - history.keep, history.max_runs_per_job, ROWS_AT_ONCE).await?;
    let entries = store.purge_audit(now - audit.keep, ROWS_AT_ONCE).await?;
    let messages = store.purge_alerts(now - history.keep, ROWS_AT_ONCE).await?;
    Ok(records.max(entries).max(messages))
}

/// A full transaction has left something over; a slow one shows that others need the database.
fn rest_after(rows: usize, took: Duration) -> Duration {
    if rows < ROWS_AT_ONCE { EVERY } else { (took * RESTS).min(EVERY) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_the_database_the_longer_the_rest() {
        let ms = Duration::from_millis;
        assert_eq!(rest_after(ROWS_AT_ONCE, ms(20)), ms(80));
        assert_eq!(rest_after(ROWS_AT_ONCE, Duration::from_secs(60)), EVERY);
        assert_eq!(rest_after(ROWS_AT_ONCE - 1, ms(20)), EVERY);
        assert_eq!(rest_after(0, ms(1)), EVERY);
    }
}
