//! Counting history: a step goes over a bounded part of it, and moves the cursor in the same transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use carillon_domain::run::Status;
use carillon_domain::time::Timestamp;

use crate::cluster::port::Connection;
use crate::codec::named;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::list::list;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::activity::OUTCOME_COLUMNS;
use crate::reports::counting::{BUCKETS_KEPT, Count, Counted, DAY, DAYS_KEPT, Step, day_of};
use crate::reports::namespaces::JobNamespaces;
use crate::reports::tally::{Ended, Tally};
use crate::{RolledUp, StoreResult};

/// How many old counts a step deletes at the most.
const PURGED: usize = 1_000;
/// How many rows one statement writes.
const ROWS: usize = 500;

impl MySqlConnection {
    /// How far each count has come, and the newest record.
    async fn counted(&mut self) -> StoreResult<(BTreeMap<u8, Counted>, u64)> {
        let sql = "SELECT m.newest, c.id, c.done, c.seen, c.seen_at FROM (SELECT MAX(seq) AS newest FROM run) m \
                   LEFT JOIN history_count c ON TRUE";
        let (mut counts, mut newest) = (BTreeMap::new(), 0);
        for row in self.query(sql).await? {
            let mut from = Columns::of(row);
            newest = from.next::<Option<u64>>()?.unwrap_or(0);
            if let Some(id) = from.next::<Option<u8>>()? {
                counts.insert(id, Counted { done: from.next()?, seen: from.next()?, seen_at: from.time()? });
            }
        }
        Ok((counts, newest))
    }

    pub(in crate::mysql) async fn has_to_count(&mut self, now: Timestamp) -> StoreResult<bool> {
        let (counts, newest) = self.counted().await?;
        let counted = |count: &Count| counts.get(&count.id()).copied().unwrap_or_default();
        let has_step = |count: &Count| counted(count).step(self.settles_after(*count), newest, now, u64::MAX).is_some();
        Ok(Count::ALL.iter().any(has_step))
    }

    pub(in crate::mysql) async fn count_history(
        &mut self,
        limit: usize,
        now: Timestamp,
        namespaces: &JobNamespaces,
    ) -> StoreResult<RolledUp> {
        let (counts, newest) = self.counted().await?;
        let mut done = RolledUp::default();
        for count in Count::ALL {
            let from = counts.get(&count.id());
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            let counted = from.copied().unwrap_or_default();
            let Some(step) = counted.step(self.settles_after(count), newest, now, limit) else { continue };
            if from.is_none() {
                self.run(&format!("INSERT IGNORE INTO history_count VALUES ({}, 0, 0, 0)", count.id())).await?;
            }
            self.move_count(count, counted, &step).await?;
            match count {
                Count::Activity => self.count_activity(&step, now, namespaces).await?,
                Count::JobDays => self.count_job_days(&step, now).await?,
            }
            done.passed += step.up_to - step.after;
            done.more |= step.has_more();
        }
        Ok(done)
    }

    /// Twice as long as a statement may take, at least.
    fn settles_after(&self, count: Count) -> Duration {
        count.settles_after().max(self.statement_timeout() * 2)
    }

    /// Of two nodes the second finds the cursor elsewhere, so it counts nothing twice.
    async fn move_count(&mut self, count: Count, from: Counted, step: &Step) -> StoreResult<()> {
        let Counted { done, seen, seen_at } = step.next;
        let sql = format!(
            "UPDATE history_count SET done = {done}, seen = {seen}, seen_at = {} WHERE id = {} AND done = {} AND seen = {} \
             AND seen_at = {}",
            seen_at.as_ms(),
            count.id(),
            from.done,
            from.seen,
            from.seen_at.as_ms()
        );
        if self.run(&sql).await?.matched != 1 {
            return Err(self.moved_on());
        }
        Ok(())
    }

    async fn count_activity(&mut self, step: &Step, now: Timestamp, namespaces: &JobNamespaces) -> StoreResult<()> {
        let tally = self.tally(step, namespaces).await?;
        let rows: Vec<_> = tally.rows().collect();
        for rows in rows.chunks(ROWS) {
            let (places, values) = rows
                .iter()
                .map(|(namespace, bucket)| {
                    let outcomes = &bucket.outcomes;
                    let numbers = [
                        outcomes.succeeded,
                        outcomes.failed,
                        outcomes.timed_out,
                        outcomes.cancelled,
                        outcomes.lost,
                        outcomes.skipped,
                        bucket.started,
                        bucket.lag_total_ms,
                        bucket.lag_max_ms,
                    ];
                    let numbers = numbers.map(|number| number.to_string()).join(", ");
                    (format!("(?, {}, {numbers})", bucket.begins_at.as_ms()), mysql_async::Value::from(*namespace))
                })
                .unzip::<_, _, Vec<_>, Vec<_>>();
            let add = |column: &str| format!("{column} = activity.{column} + VALUES({column})");
            let sums: Vec<String> = OUTCOME_COLUMNS.into_iter().chain(["started", "lag_total_ms"]).map(add).collect();
            let sql = format!(
                "INSERT INTO activity (namespace, begins_at, {}, started, lag_total_ms, lag_max_ms) VALUES {} \
                 ON DUPLICATE KEY UPDATE {}, lag_max_ms = GREATEST(activity.lag_max_ms, VALUES(lag_max_ms))",
                OUTCOME_COLUMNS.join(", "),
                places.join(", "),
                sums.join(", ")
            );
            self.exec(&sql, values).await?;
        }
        if step.up_to > step.after {
            let oldest = (now - BUCKETS_KEPT).as_ms();
            self.run(&format!("DELETE FROM activity WHERE begins_at < {oldest} LIMIT {PURGED}")).await?;
        }
        Ok(())
    }

    /// The sums of a part of history. The locks make it wait for the COMMIT of every record that is there.
    async fn tally(&mut self, step: &Step, namespaces: &JobNamespaces) -> StoreResult<Tally> {
        let mut tally = Tally::default();
        if step.up_to == step.after {
            return Ok(tally);
        }
        let sql = format!(
            "SELECT job_id, finished_at, status, due_count, lag_ms FROM run FORCE INDEX (PRIMARY) WHERE seq > {} AND seq <= {} \
             LOCK IN SHARE MODE",
            step.after, step.up_to
        );
        let mut records = Vec::new();
        for row in self.query(&sql).await? {
            let mut from = Columns::of(row);
            let (job, finished_at): (u64, _) = (from.next()?, from.time()?);
            let status = named(&Status::ALL, Status::as_str, &from.next::<String>()?).map_err(unreadable)?;
            let (count, lag): (u64, Option<i64>) = (from.next()?, from.next()?);
            records.push((job, Ended::one(finished_at, status, count, lag)));
        }
        let jobs = records.iter().map(|(job, _)| *job).collect();
        let names = self.namespaces_of(&jobs, namespaces).await?;
        for (job, ended) in &records {
            tally.add(names.get(job).and_then(Option::as_deref), ended);
        }
        Ok(tally)
    }

    /// The namespace of each job, `None` if nothing but its history is left.
    async fn namespaces_of(
        &mut self,
        jobs: &BTreeSet<u64>,
        namespaces: &JobNamespaces,
    ) -> StoreResult<BTreeMap<u64, Option<Arc<str>>>> {
        let (mut known, unknown) = namespaces.of(jobs);
        for unknown in unknown.chunks(ROWS) {
            let mut looked_up: BTreeMap<u64, Option<Arc<str>>> = unknown.iter().map(|job| (*job, None)).collect();
            let sql = format!("SELECT id, namespace FROM job FORCE INDEX (PRIMARY) WHERE id IN ({})", list(unknown));
            for row in self.query(&sql).await? {
                let mut from = Columns::of(row);
                looked_up.insert(from.next()?, Some(from.next::<String>()?.into()));
            }
            namespaces.learn(&looked_up);
            known.append(&mut looked_up);
        }
        Ok(known)
    }

    async fn count_job_days(&mut self, step: &Step, now: Timestamp) -> StoreResult<()> {
        if step.up_to == step.after {
            return Ok(());
        }
        let count = |column: &str| format!("SUM(IF(status = '{column}', due_count, 0)) AS {column}");
        let add = |column: &str| format!("{column} = job_day.{column} + VALUES({column})");
        let sql = format!(
            "INSERT INTO job_day (day, job_id, {}) SELECT * FROM (SELECT GREATEST(due_at, 0) DIV {} AS day, job_id, {} \
             FROM run FORCE INDEX (PRIMARY) WHERE seq > {} AND seq <= {} GROUP BY day, job_id LOCK IN SHARE MODE) e \
             ON DUPLICATE KEY UPDATE {}",
            OUTCOME_COLUMNS.join(", "),
            DAY.as_millis(),
            OUTCOME_COLUMNS.map(count).join(", "),
            step.after,
            step.up_to,
            OUTCOME_COLUMNS.map(add).join(", ")
        );
        self.run(&sql).await?;
        let oldest = day_of(now - DAYS_KEPT).max(0);
        self.run(&format!("DELETE FROM job_day WHERE day < {oldest} LIMIT {PURGED}")).await.map(|_| ())
    }
}
