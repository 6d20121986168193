//! What is written: a few statements, whatever the size of the batch. Every row of a state is matched by the version
//! that was read, in the order of the keys.

use std::sync::{Arc, LazyLock};

use carillon_domain::firing::{ActiveRow, JobState};
use carillon_domain::guard::{Guard, stands};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::job::Job;
use carillon_domain::partition::partition_of;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use serde_json::{Value, json};

use super::batch::{Batch, Column, Kind, assignments, batches, hex, names, table, values};
use super::transaction::{Transaction, list};
use crate::store::codec::{ActiveColumns, StateColumns, cancel_name, run_bytes};
use crate::store::definition::{Definition, to_document};
use crate::store::tables::{Changes, Write};
use crate::store::{JobKey, Output, StoreError};

type Answer<T> = Result<T, StoreError>;

const ID: &[Column] = &[Column("id", Kind::Unsigned)];
const GUARD: &[Column] = &[Column("guard", Kind::Unsigned)];
const PLACE: &[Column] = &[Column("partition_id", Kind::Unsigned)];

/// A column that keeps its value costs nothing: its index is not touched.
const STATE: &[Column] = &[
    Column("version", Kind::Unsigned),
    Column("generation", Kind::Unsigned),
    Column("anchor_at", Kind::Signed),
    Column("cursor_at", Kind::Signed),
    Column("armed", Kind::Text),
    Column("manual", Kind::Text),
    Column("manual_run", Kind::Bytes),
    Column("last_manual_at", Kind::Signed),
    Column("catch_up_until", Kind::Signed),
    Column("held", Kind::Text),
    Column("held_run", Kind::Bytes),
    Column("held_session", Kind::Unsigned),
    Column("started_at", Kind::Signed),
    Column("fencing_token", Kind::Unsigned),
    Column("pause_since", Kind::Signed),
    Column("pause_until", Kind::Signed),
    Column("pause_reason", Kind::Text),
    Column("deleted", Kind::Unsigned),
    Column("executor", Kind::Text),
    Column("claim_at", Kind::Signed),
    Column("cancel", Kind::Text),
];

static UPDATE_STATE: LazyLock<String> = LazyLock::new(|| {
    let (rows, set) = (table(&[ID, GUARD, STATE]), assignments("s", STATE));
    let guard = if stands(Guard::UpdateVersion) { "s.version = t.guard" } else { "TRUE" };
    format!("UPDATE {rows} STRAIGHT_JOIN job_state s ON s.id = t.id SET {set} WHERE {guard}")
});
static INSERT_STATE: LazyLock<String> = LazyLock::new(|| insert("job_state", &[ID, PLACE, STATE]));

const FIRING: &[Column] =
    &[Column("job_id", Kind::Unsigned), Column("due_at", Kind::Signed), Column("trigger_name", Kind::Text)];
const ACTIVE: &[Column] = &[
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
    let (rows, set) = (table(&[FIRING, GUARD, ACTIVE]), assignments("a", ACTIVE));
    let guard = if stands(Guard::UpdateBesideVersion) { "a.version = t.guard" } else { "TRUE" };
    format!(
        "UPDATE {rows} STRAIGHT_JOIN active a FORCE INDEX (PRIMARY) ON a.job_id = t.job_id AND a.due_at = t.due_at \
         AND a.trigger_name = t.trigger_name COLLATE utf8mb4_bin SET {set} WHERE {guard}"
    )
});
static INSERT_ACTIVE: LazyLock<String> = LazyLock::new(|| insert("active", &[FIRING, ACTIVE]));

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
    let (rows, set) = (table(&[ID, DEFINITION]), assignments("j", DEFINITION));
    format!("UPDATE {rows} STRAIGHT_JOIN job j ON j.id = t.id SET {set}")
});

const RUN: &[Column] = &[
    Column("id", Kind::Bytes),
    Column("job_id", Kind::Unsigned),
    Column("due_at", Kind::Signed),
    Column("trigger_name", Kind::Text),
    Column("attempt", Kind::Unsigned),
    Column("status", Kind::Text),
    Column("reason", Kind::Text),
    Column("exit_code", Kind::Signed),
    Column("signal_number", Kind::Signed),
    Column("started_at", Kind::Signed),
    Column("finished_at", Kind::Signed),
    Column("lag_ms", Kind::Signed),
    Column("session", Kind::Unsigned),
    Column("fencing_token", Kind::Unsigned),
    Column("due_count", Kind::Unsigned),
    Column("first_due_at", Kind::Signed),
];

static INSERT_RUN: LazyLock<String> = LazyLock::new(|| {
    let twice = if stands(Guard::RecordTwice) { " ON DUPLICATE KEY UPDATE seq = run.seq" } else { "" };
    format!(
        "INSERT INTO run ({}, node) SELECT {}, s.node FROM {} LEFT JOIN session s ON s.id = t.session{twice}",
        names(&[RUN]),
        values(&[RUN]),
        table(&[RUN])
    )
});

const OUTPUT: &[Column] =
    &[Column("run", Kind::Bytes), Column("truncated", Kind::Unsigned), Column("bytes", Kind::Bytes)];

static INSERT_OUTPUT: LazyLock<String> = LazyLock::new(|| {
    let twice = if stands(Guard::OutputTwice) { " ON DUPLICATE KEY UPDATE run = output.run" } else { "" };
    insert("output", &[OUTPUT]) + twice
});

fn insert(into: &str, columns: &[&[Column]]) -> String {
    format!("INSERT INTO {into} ({}) SELECT {} FROM {}", names(columns), values(columns), table(columns))
}

impl Transaction {
    /// Writes all of it.
    pub(super) async fn write_changes(&mut self, changes: Changes) -> Answer<()> {
        self.write_states(&changes.jobs).await?;
        if let Some(version) = changes.jobs.iter().filter_map(Write::deleted_version).max() {
            self.keep_highest_version(version).await?;
        }
        self.write_active(&changes.active).await?;
        self.write_definitions(&changes.definitions).await?;
        self.free_names(&changes.deleted).await?;
        self.write_records(&changes.records).await?;
        self.write_outputs(&changes.outputs).await
    }

    async fn keep_highest_version(&mut self, version: u64) -> Answer<()> {
        let sql = "INSERT INTO meta (name, value) VALUES ('highest_version', ?) \
                   ON DUPLICATE KEY UPDATE value = GREATEST(CAST(value AS UNSIGNED), ?)";
        self.wrote = true;
        self.line.exec(sql, (version, version)).await.map(|_| ())
    }

    /// The highest version of a deleted job, 0 if there was none.
    pub(super) async fn select_highest_version(&mut self) -> Answer<u64> {
        let sql = "SELECT CAST(value AS UNSIGNED) FROM meta WHERE name = 'highest_version'";
        let row = self.line.select(sql, ()).await?.pop();
        Ok(row.and_then(|mut row| row.take::<u64, _>(0)).unwrap_or(0))
    }

    /// Runs a statement for all rows; each must match.
    pub(super) async fn each(&mut self, sql: &str, batches: Vec<Batch>) -> Answer<()> {
        for Batch { json, rows } in batches {
            self.wrote = true;
            if self.line.exec(sql, (json,)).await?.matched != rows && stands(Guard::UpdateMatches) {
                return Err(self.moved_on());
            }
        }
        Ok(())
    }

    /// Deletes rows named by constants; each must match.
    async fn delete(&mut self, from: &str, columns: &str, rows: &[String]) -> Answer<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.wrote = true;
        let sql = format!("DELETE FROM {from} WHERE ({columns}) IN ({})", rows.join(","));
        if self.line.run(&sql).await?.matched != rows.len() as u64 && stands(Guard::DeleteMatches) {
            return Err(self.moved_on());
        }
        Ok(())
    }

    async fn write_states(&mut self, writes: &[Write<JobState>]) -> Answer<()> {
        let (mut updates, mut inserts, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for write in writes {
            match (&write.before, &write.after) {
                (Some(before), Some(after)) => updates.push(state_row(after, before.version, write)),
                (None, Some(after)) => {
                    let job = &write.definition.job;
                    let partition = partition_of(&job.namespace, &job.name, self.context.partitions);
                    inserts.push(state_row(after, u64::from(partition), write));
                }
                (Some(before), None) => {
                    deletes.push(format!("({},{})", before.id.0, seen(Guard::DeleteVersion, before.version)));
                }
                (None, None) => {}
            }
        }
        self.each(&UPDATE_STATE, batches(updates)).await?;
        self.delete("job_state", "id, version", &deletes).await?;
        self.insert_rows("job_state", &[ID, PLACE, STATE], &INSERT_STATE, &inserts).await
    }

    async fn write_active(&mut self, writes: &[Write<ActiveRow>]) -> Answer<()> {
        let (mut updates, mut inserts, mut deletes) = (Vec::new(), Vec::new(), Vec::new());
        for write in writes {
            match (&write.before, &write.after) {
                (Some(before), Some(after)) => updates.push(active_row(after, Some(before.version))),
                (None, Some(after)) => inserts.push(active_row(after, None)),
                (Some(ActiveRow { key, version, .. }), None) => {
                    let (job, due_at, trigger) = (key.job.0, key.due_at.as_ms(), key.trigger.as_str());
                    let version = seen(Guard::DeleteBesideVersion, *version);
                    deletes.push(format!("({job},{due_at},'{trigger}',{version})"));
                }
                (None, None) => {}
            }
        }
        self.each(&UPDATE_ACTIVE, batches(updates)).await?;
        self.delete("active", "job_id, due_at, trigger_name, version", &deletes).await?;
        self.each(&INSERT_ACTIVE, batches(inserts)).await
    }

    async fn write_definitions(&mut self, definitions: &[(JobId, Arc<Definition>)]) -> Answer<()> {
        let mut rows = Vec::with_capacity(definitions.len());
        for (id, definition) in definitions {
            let Definition { job, generation, anchor_at, updated_at, .. } = definition.as_ref();
            rows.push(json!([id.0, generation, anchor_at.as_ms(), to_document(job)?, updated_at.as_ms()]));
        }
        self.each(&UPDATE_JOB, batches(rows)).await
    }

    async fn free_names(&mut self, jobs: &[JobId]) -> Answer<()> {
        if jobs.is_empty() {
            return Ok(());
        }
        self.wrote = true;
        let now = self.now().as_ms();
        let sql = format!("UPDATE job SET living = NULL, deleted_at = {now} WHERE id IN ({})", list(jobs));
        self.line.run(&sql).await.map(|_| ())
    }

    /// A record whose id is there already is the same fact. A second one for the same attempt would be a broken rule;
    /// it must not wedge the row, so it is told and left out.
    async fn write_records(&mut self, records: &[RunRecord]) -> Answer<()> {
        let mut duplicates = 0;
        for Batch { json, .. } in batches(records.iter().map(record_row)) {
            self.wrote = true;
            duplicates += self.line.exec(INSERT_RUN.as_str(), (json,)).await?.duplicates;
        }
        if duplicates == 0 {
            return Ok(());
        }
        let ids: Vec<String> = records.iter().map(|record| format!("x'{}'", hex(&run_bytes(record.id)))).collect();
        let sql = format!("SELECT id FROM run WHERE id IN ({})", ids.join(","));
        let mut known = Vec::new();
        for row in self.line.query(&sql).await? {
            known.push(super::rows::Columns::of(row).run()?);
        }
        for record in records.iter().filter(|record| !known.contains(&record.id)) {
            tracing::error!(run = %record.id, job = %record.job, "a second record of one attempt was left out");
        }
        Ok(())
    }

    async fn write_outputs(&mut self, outputs: &[(RunId, Output)]) -> Answer<()> {
        let row = |(run, output): &(RunId, Output)| {
            json!([hex(&run_bytes(*run)), u8::from(output.truncated), hex(&output.bytes)])
        };
        for Batch { json, .. } in batches(outputs.iter().map(row)) {
            self.wrote = true;
            self.line.exec(INSERT_OUTPUT.as_str(), (json,)).await?;
        }
        Ok(())
    }

    /// Stores new definitions and answers their numbers.
    pub(super) async fn insert_jobs(&mut self, jobs: &[Arc<Job>]) -> Answer<Vec<JobId>> {
        let now: Timestamp = self.now();
        let mut rows: Vec<Value> = Vec::with_capacity(jobs.len());
        for job in jobs {
            let (now, document) = (now.as_ms(), to_document(job)?);
            rows.push(json!([job.namespace, job.name, 1, now, 1, now, document, now]));
        }
        self.insert_rows("job", &[NAME, DEFINITION], &INSERT_JOB, &rows).await?;
        let keys: Vec<JobKey> = jobs.iter().map(|job| crate::store::work::key_of(job)).collect();
        let ids: Option<Vec<JobId>> = self.ids_by_key(&keys).await?.into_iter().collect();
        ids.ok_or_else(|| StoreError::Permanent("a job that was just stored is not there".to_owned()))
    }
}

/// The version that a deletion must find; where the guard is removed, whichever is there.
fn seen(guard: Guard, version: u64) -> String {
    if stands(guard) { version.to_string() } else { "version".to_owned() }
}

fn run_hex(run: Option<[u8; 16]>) -> Option<String> {
    run.map(|bytes| hex(&bytes))
}

/// In the order of [`ID`], [`GUARD`] or [`PLACE`], [`STATE`].
fn state_row(state: &JobState, second: u64, write: &Write<JobState>) -> Value {
    let row = StateColumns::of(state);
    json!([
        row.id,
        second,
        row.version,
        row.generation,
        row.anchor_at,
        row.cursor_at,
        row.armed,
        row.manual,
        run_hex(row.manual_run),
        row.last_manual_at,
        row.catch_up_until,
        row.held.firing,
        run_hex(row.held.run),
        row.held.session,
        row.held.started_at,
        row.held.fencing_token,
        row.pause_since,
        row.pause_until,
        row.pause_reason,
        u8::from(row.deleted),
        write.definition.job.executor,
        row.claim_at,
        row.cancel.map(cancel_name),
    ])
}

/// In the order of [`FIRING`], [`GUARD`] where there is one, [`ACTIVE`].
fn active_row(row: &ActiveRow, guard: Option<u64>) -> Value {
    let row = ActiveColumns::of(row);
    let mut values = vec![json!(row.job_id), json!(row.due_at), json!(row.trigger.as_str())];
    values.extend(guard.map(Value::from));
    values.extend([
        json!(row.claim_at),
        json!(row.version),
        json!(row.waiting),
        json!(run_hex(row.waiting_run)),
        json!(row.held.firing),
        json!(run_hex(row.held.run)),
        json!(row.held.session),
        json!(row.held.started_at),
        json!(row.held.fencing_token),
        json!(row.cancel.map(cancel_name)),
        json!(u8::from(row.withdrawn)),
    ]);
    Value::Array(values)
}

/// In the order of [`RUN`].
fn record_row(record: &RunRecord) -> Value {
    json!([
        hex(&run_bytes(record.id)),
        record.job.0,
        record.due_at.as_ms(),
        record.trigger.as_str(),
        record.attempt,
        record.status.as_str(),
        record.reason.as_ref().map(ToString::to_string),
        record.exit_code,
        record.signal,
        record.started_at.map(Timestamp::as_ms),
        record.finished_at.as_ms(),
        record.lag_ms,
        record.session.map(carillon_domain::id::SessionId::as_u64),
        record.fencing_token,
        record.count,
        record.first_due_at.as_ms(),
    ])
}
