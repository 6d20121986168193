//! Forgetting: history that is too old or too much, and what is left of deleted jobs.

use carillon_domain::store::SPENT_KEPT;
use carillon_domain::time::Timestamp;

use crate::StoreResult;
use crate::cluster::port::Purging;
use crate::live_output::kept_since;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::list::list;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::select::limit_of;
use crate::purge_cursor::{Counted, PartOfJob, Purge, PurgePosition, PurgePositions};

/// How many deleted jobs are looked at for each row that may be deleted.
const DELETED_PER_ROW: usize = 10;

impl Purging for MySqlConnection {
    /// Jobs with more records than they may have, as far as a part of the index tells.
    async fn crowded_jobs(&mut self, purge: &Purge, from: PurgePosition) -> StoreResult<Counted> {
        let mut left = purge.looked_at();
        let mut parts: Vec<PartOfJob> = Vec::new();
        let PurgePosition { job, due_at, .. } = from;
        for further in [format!("job_id = {job} AND due_at > {due_at}"), format!("job_id > {job}")] {
            let sql = format!(
                "SELECT job_id, COUNT(*), MAX(due_at) FROM (SELECT job_id, due_at FROM run FORCE INDEX (run_attempt) \
                 WHERE {further} ORDER BY job_id, due_at LIMIT {}) part GROUP BY job_id ORDER BY job_id",
                limit_of(left)
            );
            for row in self.query(&sql).await? {
                let mut from = Columns::of(row);
                let (job, records, last_due_at): (_, usize, _) = (from.next()?, from.next()?, from.next()?);
                left = left.saturating_sub(records);
                parts.push(PartOfJob { job, records, last_due_at });
            }
        }
        Ok(Counted::of(&parts, purge, from))
    }

    async fn purge_audit(&mut self, before: Timestamp, limit: usize) -> StoreResult<usize> {
        self.purge_entries(before, limit).await
    }

    /// Deletes up to `purge.limit` records, and what is left of deleted jobs. Answers how many records, and where the next
    /// call goes on.
    async fn purge(
        &mut self,
        purge: &Purge,
        counted: &Counted,
        from: PurgePositions,
        now: Timestamp,
    ) -> StoreResult<(usize, PurgePositions)> {
        let (mut purged, old_after) = self.purge_old(purge, from.old_after).await?;
        for job in &counted.crowded {
            purged += self.purge_surplus(*job, purge.max_runs_per_job, purge.limit.saturating_sub(purged)).await?;
        }
        let deleted_after = self.purge_definitions(purge.limit, from.deleted_after).await?;
        let (spent, unread) = ((now - SPENT_KEPT).as_ms(), kept_since(now).as_ms());
        self.run(&format!("DELETE FROM spent_session WHERE ended_at < {spent}")).await?;
        self.run(&format!("DELETE FROM live_output WHERE asked_at < {unread}")).await?;
        Ok((purged, PurgePositions { old_after, crowded_after: counted.next_after, deleted_after }))
    }
}

impl MySqlConnection {
    pub(in crate::mysql) async fn numbers(&mut self, sql: &str) -> StoreResult<Vec<u64>> {
        self.query(sql).await?.into_iter().map(|row| Columns::of(row).next()).collect()
    }

    /// Deletes records that ended too long ago. History is stored in the order of writing, which is nearly that in which runs ended. So only
    /// its beginning is read.
    async fn purge_old(&mut self, purge: &Purge, after: u64) -> StoreResult<(usize, u64)> {
        let limit = limit_of(purge.limit);
        let sql = format!("SELECT seq, finished_at FROM run WHERE seq > {after} ORDER BY seq LIMIT {limit}");
        let mut old = Vec::new();
        for row in self.query(&sql).await? {
            let mut from = Columns::of(row);
            let (seq, finished_at): (u64, i64) = (from.next()?, from.next()?);
            if finished_at < purge.before.as_ms() {
                old.push(seq);
            }
        }
        Ok((self.delete_records(&old).await?, old.last().copied().unwrap_or(after)))
    }

    /// Deletes up to `limit` records of a job beyond its newest `max`.
    async fn purge_surplus(&mut self, job: u64, max: u32, limit: usize) -> StoreResult<usize> {
        if limit == 0 {
            return Ok(0);
        }
        let sql = format!(
            "SELECT seq FROM run FORCE INDEX (run_attempt) WHERE job_id = {job} \
             ORDER BY job_id DESC, due_at DESC, trigger_name DESC, attempt DESC LIMIT {} OFFSET {max}",
            limit_of(limit)
        );
        let surplus = self.numbers(&sql).await?;
        self.delete_records(&surplus).await
    }

    async fn delete_records(&mut self, records: &[u64]) -> StoreResult<usize> {
        if records.is_empty() {
            return Ok(0);
        }
        let list = list(records);
        let firings = "SELECT DISTINCT p.job_id, p.due_at FROM run r STRAIGHT_JOIN run_params p \
                       ON p.job_id = r.job_id AND p.due_at = r.due_at WHERE r.trigger_name = 'manual' AND r.seq IN";
        let mut with_params = Vec::new();
        for row in self.query(&format!("{firings} ({list})")).await? {
            let mut from = Columns::of(row);
            let (job, due_at): (u64, i64) = (from.next()?, from.next()?);
            with_params.push((job, due_at));
        }
        let outputs = "DELETE o FROM run r STRAIGHT_JOIN output o ON o.run = r.id WHERE r.seq IN";
        self.run(&format!("{outputs} ({list})")).await?;
        let deleted = self.run(&format!("DELETE FROM run WHERE seq IN ({list})")).await?.matched;
        for (job, due_at) in with_params {
            self.forget_run_params(job, due_at).await?;
        }
        Ok(usize::try_from(deleted).unwrap_or(usize::MAX))
    }

    /// Deletes the params of a manual run of which nothing is left. An attempt of it may still wait or execute.
    async fn forget_run_params(&mut self, job: u64, due_at: i64) -> StoreResult<()> {
        let this = format!("job_id = {job} AND due_at = {due_at}");
        let sql = format!(
            "DELETE FROM run_params WHERE {this} \
             AND NOT EXISTS (SELECT 1 FROM run FORCE INDEX (run_attempt) WHERE {this} AND trigger_name = 'manual') \
             AND NOT EXISTS (SELECT 1 FROM concurrent_run WHERE {this} AND trigger_name = 'manual') \
             AND NOT EXISTS (SELECT 1 FROM job_state WHERE id = {job} \
             AND (manual LIKE '{due_at} %' OR held LIKE '{due_at} % manual %'))"
        );
        self.run(&sql).await.map(|_| ())
    }

    /// Deletes definitions of deleted jobs that have neither rows nor history, among the next that were deleted.
    async fn purge_definitions(&mut self, limit: usize, (deleted_at, id): (i64, u64)) -> StoreResult<(i64, u64)> {
        let most = limit.saturating_mul(DELETED_PER_ROW);
        let sql = format!(
            "SELECT j.id, j.deleted_at, NOT EXISTS (SELECT 1 FROM job_state s WHERE s.id = j.id) \
             AND NOT EXISTS (SELECT 1 FROM concurrent_run a WHERE a.job_id = j.id) \
             AND NOT EXISTS (SELECT 1 FROM run r FORCE INDEX (run_attempt) WHERE r.job_id = j.id) FROM \
             (SELECT id, deleted_at FROM job FORCE INDEX (job_tombstone) WHERE deleted_at >= {deleted_at} \
             AND (deleted_at > {deleted_at} OR id > {id}) ORDER BY deleted_at, id LIMIT {}) j",
            limit_of(most)
        );
        let (mut looked_at, mut last, mut gone) = (0, (0, 0), Vec::new());
        for row in self.query(&sql).await? {
            let mut from = Columns::of(row);
            let (id, deleted_at, is_gone): (u64, i64, bool) = (from.next()?, from.next()?, from.next()?);
            (looked_at, last) = (looked_at + 1, last.max((deleted_at, id)));
            gone.extend(is_gone.then_some(id));
        }
        if !gone.is_empty() {
            self.run(&format!("DELETE FROM job WHERE id IN ({})", list(&gone))).await?;
        }
        Ok(if looked_at < most { (0, 0) } else { last })
    }
}
