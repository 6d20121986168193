//! The writes of a commit: a few statements, whatever the size of the batch. Every row is matched by the version that was read, in the
//! order of the keys.

use std::sync::{Arc, LazyLock};

use carillon_domain::firing::{ConcurrentRun, FiringKey, JobState};
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::job::Job;
use carillon_domain::partition::partition_of;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use mysql_async::Value as Parameter;
use serde_json::{Value, json};

use crate::cluster::port::{SingleStart, WriteRows};
use crate::codec::{ConcurrentColumns, cancel_name, firing_text, hex, run_bytes};
use crate::definition::{Definition, to_document};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::batch::{Batch, Cell, Column, ColumnType, assignments, batches, names, table, values};
use crate::mysql::encoding::list::list;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::write::record::{self, Insert};
use crate::mysql::write::single_start;
use crate::mysql::write::update::{STATE, StateRow, Update, update};
use crate::tables::Write;
use crate::{AuditEntry, Output, StoreError, StoreResult};

const ID: &[Column] = &[Column("id", ColumnType::Unsigned)];
const GUARD: &[Column] = &[Column("guard", ColumnType::Unsigned)];
const PLACE: &[Column] = &[Column("partition_id", ColumnType::Unsigned)];

static INSERT_STATE: LazyLock<String> = LazyLock::new(|| insert("job_state", &[ID, PLACE, STATE]));

const FIRING: &[Column] = &[
    Column("job_id", ColumnType::Unsigned),
    Column("due_at", ColumnType::Signed),
    Column("trigger_name", ColumnType::Text),
];
const CONCURRENT: &[Column] = &[
    Column("claim_at", ColumnType::Signed),
    Column("version", ColumnType::Unsigned),
    Column("waiting", ColumnType::Text),
    Column("waiting_run", ColumnType::Bytes),
    Column("held", ColumnType::Text),
    Column("held_run", ColumnType::Bytes),
    Column("held_session", ColumnType::Unsigned),
    Column("started_at", ColumnType::Signed),
    Column("fencing_token", ColumnType::Unsigned),
    Column("cancel", ColumnType::Text),
    Column("withdrawn", ColumnType::Unsigned),
];

static UPDATE_CONCURRENT: LazyLock<String> = LazyLock::new(|| {
    let (rows, set) = (table([FIRING, GUARD, CONCURRENT].into_iter().flatten()), assignments("a", CONCURRENT));
    let guard = if enabled(Guard::UpdateConcurrentVersion) { "a.version = t.guard" } else { "TRUE" };
    format!(
        "UPDATE {rows} STRAIGHT_JOIN concurrent_run a FORCE INDEX (PRIMARY) ON a.job_id = t.job_id AND a.due_at = t.due_at \
         AND a.trigger_name = t.trigger_name COLLATE utf8mb4_bin SET {set} WHERE {guard}"
    )
});
static INSERT_CONCURRENT: LazyLock<String> = LazyLock::new(|| insert("concurrent_run", &[FIRING, CONCURRENT]));

const NAME: &[Column] = &[
    Column("namespace", ColumnType::Text),
    Column("name", ColumnType::Text),
    Column("living", ColumnType::Unsigned),
    Column("created_at", ColumnType::Signed),
];
const DEFINITION: &[Column] = &[
    Column("generation", ColumnType::Unsigned),
    Column("anchor_at", ColumnType::Signed),
    Column("document", ColumnType::Text),
    Column("updated_at", ColumnType::Signed),
];

static INSERT_JOB: LazyLock<String> = LazyLock::new(|| insert("job", &[NAME, DEFINITION]));
static UPDATE_JOB: LazyLock<String> = LazyLock::new(|| {
    let (rows, set) = (table([ID, DEFINITION].into_iter().flatten()), assignments("j", DEFINITION));
    format!("UPDATE {rows} STRAIGHT_JOIN job j ON j.id = t.id SET {set}")
});

const RUN_PARAMS: &[Column] =
    &[Column("job_id", ColumnType::Unsigned), Column("due_at", ColumnType::Signed), Column("params", ColumnType::Text)];

static INSERT_RUN_PARAMS: LazyLock<String> = LazyLock::new(|| insert("run_params", &[RUN_PARAMS]));

const OUTPUT: &[Column] =
    &[Column("run", ColumnType::Bytes), Column("truncated", ColumnType::Unsigned), Column("bytes", ColumnType::Bytes)];

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

impl MySqlConnection {
    /// Runs a statement for all batches, each with the same parameters behind that of its rows; answers how many rows matched.
    pub(in crate::mysql) async fn each(
        &mut self,
        sql: &str,
        batches: Vec<Batch>,
        scalars: &[Parameter],
    ) -> StoreResult<u64> {
        let mut matched = 0;
        for Batch { json, .. } in batches {
            let params: Vec<Parameter> = std::iter::once(json.into()).chain(scalars.iter().cloned()).collect();
            matched += self.exec(sql, params).await?.matched;
        }
        Ok(matched)
    }

    /// Deletes rows named by constants.
    async fn delete(&mut self, from: &str, columns: &str, rows: &[String]) -> StoreResult<u64> {
        let sql = format!("DELETE FROM {from} WHERE ({columns}) IN ({})", rows.join(","));
        Ok(self.run(&sql).await?.matched)
    }
}

impl WriteRows for MySqlConnection {
    async fn insert_records(&mut self, records: &[RunRecord]) -> StoreResult<u64> {
        let mut duplicates = 0;
        for Insert { sql, scalars, batches } in record::inserts(records) {
            for Batch { json, .. } in batches {
                let params: Vec<Parameter> = scalars.iter().cloned().chain([json.into()]).collect();
                duplicates += self.exec(&sql, params).await?.duplicates;
            }
        }
        Ok(duplicates)
    }

    async fn stored_records(&mut self, records: &[RunRecord]) -> StoreResult<Vec<RunId>> {
        let ids: Vec<String> = records.iter().map(|record| format!("x'{}'", hex(&run_bytes(record.id)))).collect();
        let sql = format!("SELECT id FROM run FORCE INDEX (run_id) WHERE id IN ({})", ids.join(","));
        self.query(&sql).await?.into_iter().map(|row| Columns::of(row).run()).collect()
    }

    async fn insert_outputs(&mut self, outputs: &[(RunId, Arc<Output>)]) -> StoreResult<()> {
        let row = |(run, output): &(RunId, Arc<Output>)| {
            json!([hex(&run_bytes(*run)), u8::from(output.truncated), hex(&output.bytes)]).to_string()
        };
        self.each(&INSERT_OUTPUT, batches(outputs.iter().map(row)), &[]).await.map(|_| ())
    }

    async fn update_states(&mut self, writes: &[Write<JobState>]) -> StoreResult<u64> {
        match update(writes) {
            Some(Update { sql, scalars, batches }) => self.each(&sql, batches, &scalars).await,
            None => Ok(0),
        }
    }

    async fn delete_states(&mut self, writes: &[Write<JobState>]) -> StoreResult<u64> {
        let gone = writes.iter().filter(|write| write.after.is_none()).filter_map(|write| write.before.as_ref());
        let row = |before: &Arc<JobState>| format!("({},{})", before.id.0, seen(Guard::DeleteVersion, before.version));
        self.delete("job_state", "id, version", &gone.map(row).collect::<Vec<_>>()).await
    }

    async fn insert_states(&mut self, writes: &[Write<JobState>], partitions: u16) -> StoreResult<u64> {
        let mut new = Vec::new();
        for write in writes.iter().filter(|write| write.before.is_none()) {
            let job = &write.definition.job;
            let partition = partition_of(&job.namespace, &job.name, partitions);
            let row = |after: &Arc<JobState>| (after.id.0, u64::from(partition), StateRow::of(after, &job.executor));
            new.extend(write.after.as_ref().map(row));
        }
        let mut rows: Vec<Vec<Cell<'_>>> = Vec::with_capacity(new.len());
        for (id, partition, state) in &new {
            rows.push([Cell::from(*id), Cell::from(*partition)].into_iter().chain(state.cells()).collect());
        }
        self.insert_rows("job_state", &[ID, PLACE, STATE], &INSERT_STATE, &rows).await
    }

    async fn update_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> StoreResult<u64> {
        let row = |write: &Write<ConcurrentRun>| {
            let (before, after) = (write.before.as_ref()?, write.after.as_ref()?);
            Some(concurrent_row(after, Some(before.version)))
        };
        self.each(&UPDATE_CONCURRENT, batches(writes.iter().filter_map(row)), &[]).await
    }

    async fn delete_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> StoreResult<u64> {
        let gone = writes.iter().filter(|write| write.after.is_none()).filter_map(|write| write.before.as_ref());
        let row = |before: &Arc<ConcurrentRun>| {
            let ConcurrentRun { key, version, .. } = before.as_ref();
            let (job, due_at, trigger) = (key.job.0, key.due_at.as_ms(), key.trigger.as_str());
            format!("({job},{due_at},'{trigger}',{})", seen(Guard::DeleteConcurrentVersion, *version))
        };
        let rows: Vec<String> = gone.map(row).collect();
        self.delete("concurrent_run", "job_id, due_at, trigger_name, version", &rows).await
    }

    async fn insert_concurrent(&mut self, writes: &[Write<ConcurrentRun>]) -> StoreResult<u64> {
        let new = writes.iter().filter(|write| write.before.is_none()).filter_map(|write| write.after.as_ref());
        self.each(&INSERT_CONCURRENT, batches(new.map(|after| concurrent_row(after, None))), &[]).await
    }

    async fn insert_run_params(&mut self, params: &[(FiringKey, Arc<str>)]) -> StoreResult<()> {
        let row = |(firing, params): &(FiringKey, Arc<str>)| {
            json!([firing.job.0, firing.due_at.as_ms(), params.as_ref()]).to_string()
        };
        self.each(&INSERT_RUN_PARAMS, batches(params.iter().map(row)), &[]).await.map(|_| ())
    }

    async fn raise_highest_version(&mut self, version: u64) -> StoreResult<()> {
        let sql = "INSERT INTO meta (name, value) VALUES ('highest_version', ?) \
                   ON DUPLICATE KEY UPDATE value = GREATEST(CAST(value AS UNSIGNED), ?)";
        self.exec(sql, (version, version)).await.map(|_| ())
    }

    async fn update_definitions(&mut self, definitions: &[(JobId, Arc<Definition>)]) -> StoreResult<u64> {
        let mut rows = Vec::with_capacity(definitions.len());
        for (id, definition) in definitions {
            let Definition { job, generation, anchor_at, updated_at, .. } = definition.as_ref();
            rows.push(json!([id.0, generation, anchor_at.as_ms(), to_document(job)?, updated_at.as_ms()]).to_string());
        }
        self.each(&UPDATE_JOB, batches(rows), &[]).await
    }

    async fn free_names(&mut self, jobs: &[JobId], now: Timestamp) -> StoreResult<()> {
        let (now, ids) = (now.as_ms(), list(jobs));
        let sql = format!("UPDATE job SET living = NULL, deleted_at = {now} WHERE id IN ({ids})");
        self.run(&sql).await.map(|_| ())
    }

    async fn insert_jobs(&mut self, jobs: &[Arc<Job>], now: Timestamp) -> StoreResult<u64> {
        let now = Cell::from(now.as_ms());
        let documents = jobs.iter().map(|job| to_document(job)).collect::<StoreResult<Vec<String>>>()?;
        let first = Cell::from(1_u64);
        let mut rows: Vec<Vec<Cell<'_>>> = Vec::with_capacity(jobs.len());
        for (job, document) in jobs.iter().zip(&documents) {
            let [namespace, name, document] = [&job.namespace, &job.name, document].map(|text| Cell::Text(text));
            rows.push(vec![namespace, name, first, now, first, now, document, now]);
        }
        self.insert_rows("job", &[NAME, DEFINITION], &INSERT_JOB, &rows).await
    }

    async fn insert_audit(&mut self, entries: &[AuditEntry]) -> StoreResult<()> {
        self.insert_entries(entries).await
    }

    async fn start_alone(&mut self, start: &SingleStart<'_>) -> StoreResult<u64> {
        let nothing = || StoreError::Permanent("a start that changes no row".to_owned());
        let sql = single_start::statement(start).ok_or_else(nothing)?;
        Ok(self.run_alone(&sql).await?.matched)
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
