//! Forgetting: history that is too old or too much, and what is left of deleted jobs.

use carillon_domain::time::Timestamp;

use super::rows::Columns;
use super::select::limit_of;
use super::transaction::{Transaction, list};
use crate::store::StoreError;

type Answer<T> = Result<T, StoreError>;

impl Transaction {
    async fn numbers(&mut self, sql: &str) -> Answer<Vec<u64>> {
        self.line.query(sql).await?.into_iter().map(|row| Columns::of(row).next()).collect()
    }

    /// Jobs with more records than `max`. Reads an index from end to end: not for a transaction that writes.
    pub(super) async fn crowded_jobs(&mut self, max: u32) -> Answer<Vec<u64>> {
        self.numbers(&format!("SELECT job_id FROM run GROUP BY job_id HAVING COUNT(*) > {max}")).await
    }

    /// Deletes up to `limit` records, and what is left of deleted jobs.
    pub(super) async fn purge(&mut self, before: Timestamp, max: u32, crowded: &[u64], limit: usize) -> Answer<usize> {
        let mut purged = self.purge_old(before, limit).await?;
        for job in crowded {
            purged += self.purge_surplus(*job, max, limit.saturating_sub(purged)).await?;
        }
        self.purge_tombstones(limit).await?;
        self.purge_spent().await?;
        self.purge_live().await?;
        Ok(purged)
    }

    /// Deletes up to `limit` records that ended before `before`. History stands in the order in which it was written,
    /// which is very nearly that in which runs ended, so only its beginning is looked at.
    async fn purge_old(&mut self, before: Timestamp, limit: usize) -> Answer<usize> {
        let sql = format!("SELECT seq, finished_at FROM run ORDER BY seq LIMIT {}", limit_of(limit));
        let mut old = Vec::new();
        for row in self.line.query(&sql).await? {
            let mut from = Columns::of(row);
            let (seq, finished_at): (u64, i64) = (from.next()?, from.next()?);
            if finished_at < before.as_ms() {
                old.push(seq);
            }
        }
        self.delete_records(&old).await
    }

    /// Deletes up to `limit` of the oldest records of a job beyond its newest `max`.
    async fn purge_surplus(&mut self, job: u64, max: u32, limit: usize) -> Answer<usize> {
        let limit = limit_of(limit);
        let sql = format!(
            "SELECT seq FROM run WHERE job_id = {job} ORDER BY due_at DESC, attempt DESC, id DESC \
             LIMIT {limit} OFFSET {max}"
        );
        let surplus = self.numbers(&sql).await?;
        self.delete_records(&surplus).await
    }

    async fn delete_records(&mut self, records: &[u64]) -> Answer<usize> {
        if records.is_empty() {
            return Ok(0);
        }
        self.wrote = true;
        let list = list(records);
        let outputs = "DELETE o FROM run r STRAIGHT_JOIN output o ON o.run = r.id WHERE r.seq IN";
        self.line.run(&format!("{outputs} ({list})")).await?;
        let deleted = self.line.run(&format!("DELETE FROM run WHERE seq IN ({list})")).await?.matched;
        Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
    }

    /// Deletes up to `limit` definitions of deleted jobs that have neither rows nor history.
    async fn purge_tombstones(&mut self, limit: usize) -> Answer<()> {
        let sql = format!(
            "SELECT j.id FROM job j WHERE j.deleted_at IS NOT NULL \
             AND NOT EXISTS (SELECT 1 FROM job_state s WHERE s.id = j.id) \
             AND NOT EXISTS (SELECT 1 FROM active a WHERE a.job_id = j.id) \
             AND NOT EXISTS (SELECT 1 FROM run r WHERE r.job_id = j.id) LIMIT {}",
            limit_of(limit)
        );
        let ids = self.numbers(&sql).await?;
        if !ids.is_empty() {
            self.wrote = true;
            self.line.run(&format!("DELETE FROM job WHERE id IN ({})", list(&ids))).await?;
        }
        Ok(())
    }
}
