//! History is counted for the page, a bounded part at a time. Any node does it; the others find that it is done.

use std::time::{Duration, Instant};

use carillon_store::StoreError;
use tracing::{debug, warn};

use super::SharedStore;

/// How long to wait where nothing was left to count. A node that finds nothing new has asked one statement.
const EVERY: Duration = Duration::from_secs(10);
/// How many numbers of records one transaction goes over: it takes some tens of milliseconds.
const NUMBERS_AT_ONCE: usize = 20_000;
/// For how many times as long as a transaction took nothing is counted after it.
const RESTS: u32 = 4;

/// Counts what has become history, for ever.
pub(super) async fn run(store: SharedStore) {
    let mut rest = EVERY;
    loop {
        tokio::time::sleep(rest).await;
        let begun = Instant::now();
        rest = match store.roll_up(NUMBERS_AT_ONCE).await {
            Ok(step) if step.more => rest_after(begun.elapsed()),
            Ok(_) => EVERY,
            Err(StoreError::Retryable(error)) => {
                debug!(error, "history is not counted while the database is away");
                EVERY
            }
            Err(error) => {
                warn!(%error, "history could not be counted: the page shows old figures");
                EVERY
            }
        };
    }
}

/// A slow transaction shows that others need the database.
fn rest_after(took: Duration) -> Duration {
    (took * RESTS).min(EVERY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_the_database_the_longer_the_rest() {
        assert_eq!(rest_after(Duration::from_millis(20)), Duration::from_millis(80));
        assert_eq!(rest_after(Duration::from_secs(60)), EVERY);
    }
}
