//! The writes of one commit, in the order that holds up others least. Every row of a job is matched by the version that was read.

use carillon_domain::firing::JobState;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::run::RunRecord;

use crate::StoreResult;
use crate::cluster::port::{Connection, Database, WriteRows};
use crate::cluster::transaction::Transaction;
use crate::tables::{Write, WriteSet};

/// How many of these writes update, delete and insert.
fn count<R>(writes: &[Write<R>]) -> [u64; 3] {
    let mut count = [0; 3];
    for write in writes {
        match (&write.before, &write.after) {
            (Some(_), Some(_)) => count[0] += 1,
            (Some(_), None) => count[1] += 1,
            (None, Some(_)) => count[2] += 1,
            (None, None) => {}
        }
    }
    count
}

impl<D: Database> Transaction<D> {
    /// The history comes first. It takes as long as the rest, and nobody else waits for its rows. A call that writes to a job's row, such
    /// as a pause, waits from the moment at which that row is written until the COMMIT.
    pub async fn write_all(&mut self, changes: WriteSet) -> StoreResult<()> {
        if !self.unread.are_written(&changes.jobs) {
            return Err(self.connection.moved_on());
        }
        let duplicates = self.write_history(&changes).await?;
        self.write_states(&changes.jobs).await?;
        self.write_concurrent(&changes).await?;
        self.write_definitions(&changes).await?;
        if !changes.run_params.is_empty() {
            self.wrote = true;
            self.connection.insert_run_params(&changes.run_params).await?;
        }
        // After the rows, whose locks are held until the COMMIT: ids of one job ascend in the order of its commits.
        if !changes.audit.is_empty() {
            self.wrote = true;
            self.connection.insert_audit(&changes.audit).await?;
        }
        // Not before the rows have matched: a stale write is tried again, and its record breaks no rule.
        if duplicates > 0 {
            self.report_left_out(&changes.records).await?;
        }
        self.unread.wrote(changes.jobs);
        Ok(())
    }

    /// Answers how many records were there already.
    async fn write_history(&mut self, changes: &WriteSet) -> StoreResult<u64> {
        self.wrote |= !changes.records.is_empty() || !changes.outputs.is_empty();
        let mut duplicates = 0;
        if !changes.records.is_empty() {
            duplicates = self.connection.insert_records(&changes.records).await?;
        }
        if !changes.outputs.is_empty() {
            self.connection.insert_outputs(&changes.outputs).await?;
        }
        Ok(duplicates)
    }

    async fn write_states(&mut self, writes: &[Write<JobState>]) -> StoreResult<()> {
        let [updates, deletes, inserts] = count(writes);
        self.wrote |= updates + deletes + inserts > 0;
        if updates > 0 {
            let matched = self.connection.update_states(writes).await?;
            self.expect(matched, updates, Guard::UpdateMatches)?;
        }
        if deletes > 0 {
            let matched = self.connection.delete_states(writes).await?;
            self.expect(matched, deletes, Guard::DeleteMatches)?;
        }
        if inserts > 0 {
            let partitions = self.shared.partitions;
            let inserted = self.connection.insert_states(writes, partitions).await?;
            self.expect(inserted, inserts, Guard::UpdateMatches)?;
        }
        match writes.iter().filter_map(Write::deleted_version).max() {
            Some(version) => self.connection.raise_highest_version(version).await,
            None => Ok(()),
        }
    }

    async fn write_concurrent(&mut self, changes: &WriteSet) -> StoreResult<()> {
        let writes = &changes.concurrent;
        let [updates, deletes, inserts] = count(writes);
        self.wrote |= updates + deletes + inserts > 0;
        if updates > 0 {
            let matched = self.connection.update_concurrent(writes).await?;
            self.expect(matched, updates, Guard::UpdateMatches)?;
        }
        if deletes > 0 {
            let matched = self.connection.delete_concurrent(writes).await?;
            self.expect(matched, deletes, Guard::DeleteMatches)?;
        }
        if inserts > 0 {
            let inserted = self.connection.insert_concurrent(writes).await?;
            self.expect(inserted, inserts, Guard::UpdateMatches)?;
        }
        Ok(())
    }

    async fn write_definitions(&mut self, changes: &WriteSet) -> StoreResult<()> {
        if !changes.definitions.is_empty() {
            self.wrote = true;
            let matched = self.connection.update_definitions(&changes.definitions).await?;
            self.expect(matched, changes.definitions.len() as u64, Guard::UpdateMatches)?;
        }
        if !changes.deleted.is_empty() {
            self.wrote = true;
            let now = self.now();
            self.connection.free_names(&changes.deleted, now).await?;
        }
        Ok(())
    }

    /// A row that did not match was written by somebody else since it was read.
    fn expect(&mut self, matched: u64, expected: u64, guard: Guard) -> StoreResult<()> {
        if matched != expected && enabled(guard) { Err(self.connection.moved_on()) } else { Ok(()) }
    }

    /// A record whose id is stored is the same fact. A second record of one attempt would break a rule. It must not block the row for
    /// ever, so it is left out and reported.
    async fn report_left_out(&mut self, records: &[RunRecord]) -> StoreResult<()> {
        let stored = self.connection.stored_records(records).await?;
        for record in records.iter().filter(|record| !stored.contains(&record.id)) {
            tracing::error!(run = %record.id, job = %record.job, "a second record of one attempt was left out");
        }
        Ok(())
    }
}
