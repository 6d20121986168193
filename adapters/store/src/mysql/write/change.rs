//! What is written: a few statements, whatever the size of the batch. Every row of a state is matched by the version
//! that was read, in the order of the keys.

use std::sync::{Arc, LazyLock};

use carillon_domain::firing::{ConcurrentRun, JobState};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::job::Job;
use carillon_domain::partition::partition_of;
use carillon_domain::run::RunRecord;
use mysql_async::Value as Parameter;
use serde_json::{Value, json};

use crate::codec::{ConcurrentColumns, cancel_name, firing_text, run_bytes};
use crate::definition::{Definition, to_document};
use crate::mysql::encoding::batch::{Batch, Cell, Column, Kind, assignments, batches, hex, names, table, values};
use crate::mysql::transaction::{Transaction, list};
use crate::mysql::write::record::{self, Insert};
use crate::mysql::write::update::{STATE, StateRow, Update, update};
use crate::tables::{Write, WriteSet};
use crate::{JobKey, Output, StoreError, StoreResult};

const ID: &[Column] = &[Column("id", Kind::Unsigned)];
const GUARD: &[Column] = &[Column("guard", Kind::Unsigned)];
const PLACE: &[Column] = &[Column("partition_id", Kind::Unsigned)];

static INSERT_STATE: LazyLock<String> = LazyLock::new(|| insert("job_state", &[ID, PLACE, STATE]));

const FIRING: &[Column] =
    &[Column("job_id", Kind::Unsigned), Column("due_at", Kind::Signed), Column("trigger_name", Kind::Text)];
const CONCURRENT: &[Column] = &[
    Column("claim_at", Kind::Signed),
    Column("version", Kind::Unsigned),
    Column("waiting", Kind::Text),
    Column("waiting_run", Kind::Bytes),
    Column("held", Kind::Text),
    Column("held_run", Kind::Bytes),
    Column("held_session", Kind::Unsigned),
    Column("started_at", Kind::Signed),
    Column("fencing_token", Kind::Unsigned),
    Column("cancel", Kind::Text),
    Column("withdrawn", Kind::Unsigned),
];

static UPDATE_ACTIVE: LazyLock<String> = LazyLock::new(|| {
    let (rows, set) = (table([FIRING, GUARD, CONCURRENT].into_iter().flatten()), assignments("a", CONCURRENT));
    let guard = if enabled(Guard::UpdateConcurrentVersion) { "a.version = t.guard" } else { "TRUE" };
    format!(
        "UPDATE {rows} STRAIGHT_JOIN concurrent_run a FORCE INDEX (PRIMARY) ON a.job_id = t.job_id AND a.due_at = t.due_at \
         AND a.trigger_name = t.trigger_name COLLATE utf8mb4_bin SET {set} WHERE {guard}"
    )
});
static INSERT_CONCURRENT: LazyLock<String> = LazyLock::new(|| insert("concurrent_run", &[FIRING, CONCURRENT]));

const NAME: &[Column] = &[
    Column("namespace", Kind::Text),
    Column("name", Kind::Text),
    Column("living", Kind::Unsigned),
    Column("created_at", Kind::Signed),
];
const DEFINITION: &[Column] = &[
    Column("generation", Kind::Unsigned),
    Column("anchor_at", Kind::Signed),
    Column("document", Kind::Text),
    Column("updated_at", Kind::Signed),
];

static INSERT_JOB: LazyLock<String> = LazyLock::new(|| insert("job", &[NAME, DEFINITION]));
static UPDATE_JOB: LazyLock<String> = LazyLock::new(|| {
    let (rows, set) = (table([ID, DEFINITION].into_iter().flatten()), assignments("j", DEFINITION));
    format!("UPDATE {rows} STRAIGHT_JOIN job j ON j.id = t.id SET {set}")
});

const OUTPUT: &[Column] =
    &[Column("run", Kind::Bytes), Column("truncated", Kind::Unsigned), Column("bytes", Kind::Bytes)];

static INSERT_OUTPUT: LazyLock<String> = LazyLock::new(|| {
    let twice = if enabled(Guard::OutputTwice) { " ON DUPLICATE KEY UPDATE run = output.run" } else { "" };
    insert("output", &[OUTPUT]) + twice
});

fn insert(into: &str, columns: &[&[Column]]) -> String {
    format!(
        "INSERT INTO {into} ({}) SELECT {} FROM {}",
        names(columns),
        values(columns),
        table(columns.iter().copied().flatten())
    )
}

impl Transaction {
    /// Writes all of it. The history comes first: it takes as long as the rest, nobody else waits for its rows, and who wants
    /// to write to a job's row, as a pause does, waits from when it is written until the COMMIT.
    pub(in crate::mysql) async fn write_changes(&mut self, changes: WriteSet) -> StoreResult<()> {
        if !self.known.are_written(&changes.jobs) {
            return Err(self.moved_on());
        }
        let duplicates = self.insert_records(&changes.records).await?;
        self.write_outputs(&changes.outputs).await?;
        self.write_states(&changes.jobs).await?;
        if let Some(version) = changes.jobs.iter().filter_map(Write::deleted_version).max() {
            self.keep_highest_version(version).await?;
        }
        self.write_concurrent(&changes.concurrent).await?;
        self.write_definitions(&changes.definitions).await?;
        self.free_names(&changes.deleted).await?;
        // Not before the rows have matched: a stale write is tried again, and its record breaks no rule.
        if duplicates > 0 {
            self.tell_left_out(&changes.records).await?;
        }
        self.known.wrote(changes.jobs);
        Ok(())
    }

    async fn keep_highest_version(&mut self, version: u64) -> StoreResult<()> {
        let sql = "INSERT INTO meta (name, value) VALUES ('highest_version', ?) \
                   ON DUPLICATE KEY UPDATE value = GREATEST(CAST(value AS UNSIGNED), ?)";
        self.wrote = true;
        self.line.exec(sql, (version, version)).await.map(|_| ())
    }

    /// The highest version of a deleted job, 0 if there was none.
    pub(in crate::mysql) async fn select_highest_version(&mut self) -> StoreResult<u64> {
        let sql = "SELECT CAST(value AS UNSIGNED) FROM meta WHERE name = 'highest_version'";
        let row = self.line.select(sql, ()).await?.pop();
        Ok(row.and_then(|mut row| row.take::<u64, _>(0)).unwrap_or(0))
    }

    /// Runs a statement for all rows; each must match.
    pub(in crate::mysql) async fn each(&mut self, sql: &str, batches: Vec<Batch>) -> StoreResult<()> {
        self.each_with(sql, batches, &[]).await
    }

    /// The same with parameters behind that of the rows.
    async fn each_with(&mut self, sql: &str, batches: Vec<Batch>, scalars: &[Parameter]) -> StoreResult<()> {
        for Batch { json, rows } in batches {
            self.wrote = true;
            let params: Vec<Parameter> = std::iter::once(json.into()).chain(scalars.iter().cloned()).collect();
            if self.line.exec(sql, params).await?.matched != rows && enabled(Guard::UpdateMatches) {
                return Err(self.moved_on());
            }
        }
        Ok(())
    }

    /// Deletes rows named by constants; each must match.
    async fn delete(&mut self, from: &str, columns: &str, rows: &[String]) -> StoreResult<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.wrote = true;
        let sql = format!("DELETE FROM {from} WHERE ({columns}) IN ({})", rows.join(","));
        if self.line.run(&sql).await?.matched != rows.len() as u64 && enabled(Guard::DeleteMatches) {
            return Err(self.moved_on());
        }
        Ok(())
    }

    async fn write_states(&mut self, writes: &[Write<JobState>]) -> StoreResult<()> {
        let (mut new, mut deletes) = (Vec::new(), Vec::new());
        for write in writes {
            match (&write.before, &write.after) {
                (None, Some(after)) => {
                    let job = &write.definition.job;
                    let partition = partition_of(&job.namespace, &job.name, self.context.partitions);
                    new.push((after.id.0, u64::from(partition), StateRow::of(after, &job.executor)));
                }
                (Some(before), None) => {
                    deletes.push(format!("({},{})", before.id.0, seen(Guard::DeleteVersion, before.version)));
                }
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        if let Some(Update { sql, scalars, batches }) = update(writes) {
            self.each_with(&sql, batches, &scalars).await?;
        }
        self.delete("job_state", "id, version", &deletes).await?;
        let mut inserts: Vec<Vec<Cell<'_>>> = Vec::with_capacity(new.len());
        for (id, partition, state) in &new {
            inserts.push([Cell::from(*id), Cell::from(*partition)].into_iter().chain(state.cells()).collect());
        }
        self.insert_rows("job_state", &[ID, PLACE, STATE], &INSERT_STATE, &inserts).await
    }

    async fn write_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> StoreResult<()> {
        let (mut updates, mut inserts, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for write in writes {
            match (&write.before, &write.after) {
                (Some(before), Some(after)) => updates.push(concurrent_row(after, Some(before.version))),
                (None, Some(after)) => inserts.push(concurrent_row(after, None)),
                (Some(before), None) => {
                    let ConcurrentRun { key, version, .. } = before.as_ref();
                    let (job, due_at, trigger) = (key.job.0, key.due_at.as_ms(), key.trigger.as_str());
                    let version = seen(Guard::DeleteConcurrentVersion, *version);
                    deletes.push(format!("({job},{due_at},'{trigger}',{version})"));
                }
                (None, None) => {}
            }
        }
        self.each(&UPDATE_ACTIVE, batches(updates)).await?;
        self.delete("concurrent_run", "job_id, due_at, trigger_name, version", &deletes).await?;
        self.each(&INSERT_CONCURRENT, batches(inserts)).await
    }

    async fn write_definitions(&mut self, definitions: &[(JobId, Arc<Definition>)]) -> StoreResult<()> {
        let mut rows = Vec::with_capacity(definitions.len());
        for (id, definition) in definitions {
            let Definition { job, generation, anchor_at, updated_at, .. } = definition.as_ref();
            rows.push(json!([id.0, generation, anchor_at.as_ms(), to_document(job)?, updated_at.as_ms()]).to_string());
        }
        self.each(&UPDATE_JOB, batches(rows)).await
    }

    async fn free_names(&mut self, jobs: &[JobId]) -> StoreResult<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        self.wrote = true;
        let now = self.now().as_ms();
        let sql = format!("UPDATE job SET living = NULL, deleted_at = {now} WHERE id IN ({})", list(jobs));
        self.line.run(&sql).await.map(|_| ())
    }

    /// Answers how many were there already.
    async fn insert_records(&mut self, records: &[RunRecord]) -> StoreResult<u64> {
        let mut duplicates = 0;
        for Insert { sql, scalars, batches } in record::inserts(records) {
            for Batch { json, .. } in batches {
                self.wrote = true;
                let params: Vec<Parameter> = scalars.iter().cloned().chain([json.into()]).collect();
                duplicates += self.line.exec(&sql, params).await?.duplicates;
            }
        }
        Ok(duplicates)
    }

    /// A record whose id is there already is the same fact. A second one for the same attempt would be a broken rule;
    /// it must not wedge the row, so it is told and left out.
    async fn tell_left_out(&mut self, records: &[RunRecord]) -> StoreResult<()> {
        let ids: Vec<String> = records.iter().map(|record| format!("x'{}'", hex(&run_bytes(record.id)))).collect();
        let sql = format!("SELECT id FROM run FORCE INDEX (run_id) WHERE id IN ({})", ids.join(","));
        let mut known = Vec::new();
        for row in self.line.query(&sql).await? {
            known.push(crate::mysql::encoding::rows::Columns::of(row).run()?);
        }
        for record in records.iter().filter(|record| !known.contains(&record.id)) {
            tracing::error!(run = %record.id, job = %record.job, "a second record of one attempt was left out");
        }
        Ok(())
    }

    async fn write_outputs(&mut self, outputs: &[(RunId, Arc<Output>)]) -> StoreResult<()> {
        let row = |(run, output): &(RunId, Arc<Output>)| {
            json!([hex(&run_bytes(*run)), u8::from(output.truncated), hex(&output.bytes)]).to_string()
        };
        for Batch { json, .. } in batches(outputs.iter().map(row)) {
            self.wrote = true;
            self.line.exec(INSERT_OUTPUT.as_str(), (json,)).await?;
        }
        Ok(())
    }

    /// Stores new definitions and answers their numbers.
    pub(in crate::mysql) async fn insert_jobs(&mut self, jobs: &[Arc<Job>]) -> StoreResult<Vec<JobId>> {
        let now = Cell::from(self.now().as_ms());
        let documents = jobs.iter().map(|job| to_document(job)).collect::<StoreResult<Vec<String>>>()?;
        let first = Cell::from(1_u64);
        let mut rows: Vec<Vec<Cell<'_>>> = Vec::with_capacity(jobs.len());
        for (job, document) in jobs.iter().zip(&documents) {
            let [namespace, name, document] = [&job.namespace, &job.name, document].map(|text| Cell::Text(text));
            rows.push(vec![namespace, name, first, now, first, now, document, now]);
        }
        self.insert_rows("job", &[NAME, DEFINITION], &INSERT_JOB, &rows).await?;
        let keys: Vec<JobKey> = jobs.iter().map(|job| JobKey::of(job)).collect();
        let ids: Option<Vec<JobId>> = self.ids_by_key(&keys).await?.into_iter().collect();
        ids.ok_or_else(|| StoreError::Permanent("a job that was just stored is not there".to_owned()))
    }
}

/// The version that a deletion must find; where the guard is removed, whichever is there.
fn seen(guard: Guard, version: u64) -> String {
    if enabled(guard) { version.to_string() } else { "version".to_owned() }
}

fn run_hex(run: Option<[u8; 16]>) -> Option<String> {
    run.map(|bytes| hex(&bytes))
}

/// In the order of [`FIRING`], [`GUARD`] where there is one, [`CONCURRENT`].
fn concurrent_row(row: &ConcurrentRun, guard: Option<u64>) -> String {
    let row = ConcurrentColumns::of(row);
    let mut values = vec![json!(row.job_id), json!(row.due_at), json!(row.trigger.as_str())];
    values.extend(guard.map(Value::from));
    values.extend([
        json!(row.claim_at),
        json!(row.version),
        json!(row.waiting.map(firing_text)),
        json!(run_hex(row.waiting_run)),
        json!(row.held.firing.map(firing_text)),
        json!(run_hex(row.held.run)),
        json!(row.held.session),
        json!(row.held.started_at),
        json!(row.held.fencing_token),
        json!(row.cancel.map(cancel_name)),
        json!(u8::from(row.withdrawn)),
    ]);
    Value::Array(values).to_string()
}
