//! Stored rows that this binary cannot read. Everybody else is told without them, so somebody must be told of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use carillon_store::alerts::Unreadable;
use tracing::{debug, error, info};

use super::watch::Watch;

/// How long between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The rows that were told of.
#[derive(Debug, Default)]
pub(super) struct UnreadableRows {
    looked_at: Option<Instant>,
    known: BTreeSet<Unreadable>,
}

impl UnreadableRows {
    /// Looks once a minute; logs each row once, and counts them.
    pub async fn look(&mut self, watch: &Watch) {
        if self.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return;
        }
        match watch.store.unreadable_alerts().await {
            Ok(found) => {
                self.looked_at = Some(Instant::now());
                watch.handle.count().unreadable = self.note(found);
            }
            Err(error) => debug!(%error, "rows that cannot be read were not looked for; they are looked for again"),
        }
    }

    /// The number of rows of each noun.
    fn note(&mut self, found: Vec<Unreadable>) -> BTreeMap<&'static str, u64> {
        let found: BTreeSet<Unreadable> = found.into_iter().collect();
        for Unreadable { noun, id, problem } in found.difference(&self.known) {
            error!(id, "a stored {noun} is left out of alerts: {problem}");
        }
        if found.is_empty() && !self.known.is_empty() {
            info!("every stored row of alerts can be read again");
        }
        let mut counts = BTreeMap::new();
        for row in &found {
            *counts.entry(row.noun).or_default() += 1;
        }
        self.known = found;
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_as_long_as_they_are_there() {
        let row = |noun, id: &str| Unreadable { noun, id: id.to_owned(), problem: "x".into() };
        let mut rows = UnreadableRows::default();
        assert_eq!(
            rows.note(vec![row("route", "a"), row("fact", "1"), row("fact", "2")]),
            [("fact", 2), ("route", 1)].into()
        );
        assert_eq!(rows.note(vec![row("fact", "2")]), [("fact", 1)].into());
        assert_eq!(rows.note(Vec::new()), BTreeMap::new());
        assert_eq!(rows.known, BTreeSet::new());
    }
}
