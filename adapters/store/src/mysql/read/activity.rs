//! The counts of history.

use std::collections::BTreeMap;

use carillon_domain::id::JobId;
use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;

use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::reports::constants;
use crate::reports::counting::{BUCKET, Count, DAY, begin_of, begin_of_day, days_from};
use crate::{ActivityBucket, JobDay, NamespaceScope, OutcomeCounts, StoreResult};

/// The columns of [`OutcomeCounts`], each named as its status.
pub(in crate::mysql) const OUTCOME_COLUMNS: [&str; 6] =
    ["succeeded", "failed", "timed_out", "cancelled", "lost", "skipped"];

/// Their sums.
const OUTCOMES: &str = "SUM(succeeded), SUM(failed), SUM(timed_out), SUM(cancelled), SUM(lost), SUM(skipped)";

/// How many of a job's newest records are looked at for those that are not counted yet.
const NOT_COUNTED: usize = 5_000;

impl Columns {
    /// A sum, which the server answers as a decimal.
    pub fn sum(&mut self) -> StoreResult<u64> {
        let text: String = self.next()?;
        text.parse().map_err(|_| unreadable(format!("\"{text}\" is not a sum")))
    }

    fn outcomes(&mut self) -> StoreResult<OutcomeCounts> {
        Ok(OutcomeCounts {
            succeeded: self.sum()?,
            failed: self.sum()?,
            timed_out: self.sum()?,
            cancelled: self.sum()?,
            lost: self.sum()?,
            skipped: self.sum()?,
        })
    }
}

/// The columns of an [`ActivityBucket`].
pub(in crate::mysql) fn buckets() -> String {
    format!("begins_at, {OUTCOMES}, SUM(started), SUM(lag_total_ms), MAX(lag_max_ms)")
}

/// The buckets of a scope since then, oldest first, from FROM on.
pub(in crate::mysql) fn buckets_since(scope: &NamespaceScope, since: Timestamp) -> String {
    let names = match scope {
        NamespaceScope::All => "''".to_owned(),
        NamespaceScope::Only(names) if names.is_empty() => "NULL".to_owned(),
        NamespaceScope::Only(names) => constants(names),
    };
    format!(
        "FROM activity FORCE INDEX (PRIMARY) WHERE namespace IN ({names}) AND begins_at >= {} \
         GROUP BY begins_at ORDER BY begins_at",
        begin_of(since, BUCKET).as_ms()
    )
}

/// A row of [`buckets`].
pub(in crate::mysql) fn bucket(from: &mut Columns) -> StoreResult<ActivityBucket> {
    Ok(ActivityBucket {
        begins_at: from.time()?,
        outcomes: from.outcomes()?,
        started: from.sum()?,
        lag_total_ms: from.sum()?,
        lag_max_ms: from.next()?,
    })
}

impl MySqlConnection {
    /// Days that are counted, and the job's records that are not.
    pub(in crate::mysql) async fn select_days_of_job(
        &mut self,
        job: JobId,
        since: Timestamp,
    ) -> StoreResult<Vec<JobDay>> {
        let (day_ms, first) = (DAY.as_millis(), begin_of(since, DAY));
        let days: Vec<String> = days_from(first).map(|day| day.to_string()).collect();
        let id = Count::JobDays.id();
        let sql = format!(
            "SELECT day, '', {OUTCOMES} FROM job_day FORCE INDEX (PRIMARY) WHERE day IN ({}) AND job_id = {job} \
             GROUP BY day UNION ALL SELECT r.due_at DIV {day_ms}, r.status, SUM(r.due_count), 0, 0, 0, 0, 0 FROM \
             (SELECT m.seq FROM run m FORCE INDEX (run_attempt) WHERE m.job_id = {job} ORDER BY m.job_id DESC, \
             m.due_at DESC LIMIT {NOT_COUNTED}) newest STRAIGHT_JOIN run r ON r.seq = newest.seq WHERE \
             newest.seq > COALESCE((SELECT done FROM history_count WHERE id = {id}), 0) AND r.due_at >= {} GROUP BY 1, 2",
            days.join(","),
            first.as_ms()
        );
        let mut found: BTreeMap<i64, OutcomeCounts> = BTreeMap::new();
        for row in self.query(&sql).await? {
            let mut from = Columns::of(row);
            let (day, status): (i64, String) = (from.next()?, from.next()?);
            let counts = from.outcomes()?;
            let day = found.entry(day).or_default();
            match Status::ALL.into_iter().find(|known| known.as_str() == status) {
                Some(status) => day.add(status, counts.succeeded),
                None => day.merge(&counts),
            }
        }
        Ok(found.into_iter().map(|(day, outcomes)| JobDay { begins_at: begin_of_day(day), outcomes }).collect())
    }
}
