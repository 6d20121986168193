//! The sums of a step of [`Count::Activity`](super::counting::Count::Activity), for each namespace and for all of them.

use std::collections::BTreeMap;

use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;

use super::counting::{BUCKET, begin_of};
use crate::ActivityBucket;

/// Records of one namespace, five minutes and status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When one of them ended.
    pub finished_at: Timestamp,
    /// How they ended.
    pub status: Status,
    /// How many runs or due times they are.
    pub count: u64,
    /// How many of them had started.
    pub started: u64,
    /// The sum of the lags, in milliseconds.
    pub lag_total_ms: u64,
    /// The longest lag, in milliseconds.
    pub lag_max_ms: u64,
}

impl Ended {
    /// One record.
    pub fn one(finished_at: Timestamp, status: Status, count: u64, lag_ms: Option<i64>) -> Self {
        let lag = lag_ms.map_or(0, |lag| u64::try_from(lag).unwrap_or(0));
        Self { finished_at, status, count, started: u64::from(lag_ms.is_some()), lag_total_ms: lag, lag_max_ms: lag }
    }
}

/// The sums of a step, by namespace and five minutes; the empty namespace stands for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<(String, Timestamp), ActivityBucket>);

impl Tally {
    /// Adds records of a namespace; `None` if their job is forgotten.
    pub fn add(&mut self, namespace: Option<&str>, ended: &Ended) {
        let begins_at = begin_of(ended.finished_at, BUCKET);
        for name in namespace.into_iter().chain([""]) {
            let bucket = self.0.entry((name.to_owned(), begins_at)).or_default();
            bucket.begins_at = begins_at;
            bucket.outcomes.add(ended.status, ended.count);
            bucket.started += ended.started;
            bucket.lag_total_ms += ended.lag_total_ms;
            bucket.lag_max_ms = bucket.lag_max_ms.max(ended.lag_max_ms);
        }
    }

    /// Each namespace with its sums.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &ActivityBucket)> {
        self.0.iter().map(|((namespace, _), bucket)| (namespace.as_str(), bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_and_all_of_them_have_their_sums() {
        let at = Timestamp::from_secs;
        let ended = |secs, status, count| Ended {
            finished_at: at(secs),
            status,
            count,
            started: 1,
            lag_total_ms: 5,
            lag_max_ms: 5,
        };
        let mut tally = Tally::default();
        tally.add(Some("a"), &ended(299, Status::Succeeded, 2));
        tally.add(Some("b"), &ended(0, Status::Failed, 1));
        tally.add(None, &ended(300, Status::Skipped, 7));
        let rows: Vec<_> = tally
            .rows()
            .map(|(name, bucket)| {
                let outcomes = bucket.outcomes;
                let counts = (outcomes.succeeded, outcomes.failed, outcomes.skipped);
                (name, bucket.begins_at, counts, bucket.lag_total_ms, bucket.lag_max_ms)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("", at(0), (2, 1, 0), 10, 5),
                ("", at(300), (0, 0, 7), 5, 5),
                ("a", at(0), (2, 0, 0), 5, 5),
                ("b", at(0), (0, 1, 0), 5, 5)
            ]
        );
    }
}
