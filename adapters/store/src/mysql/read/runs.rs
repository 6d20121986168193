//! Runs wherever they are: in a job's own row, beside it, or in history. One statement finds them, as they move from one to the other.

use std::sync::Arc;

use carillon_domain::id::{JobId, RunId};
use mysql_async::{Row, Value};

use crate::codec::{hex, run_bytes};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::list::list;
use crate::mysql::encoding::parts::Parts;
use crate::mysql::encoding::rows::{self, Columns, RECORD};
use crate::mysql::read::history::{HISTORY, from_history, values};
use crate::tables::{GivenParams, RecordQuery};
use crate::views::runs::{held_run, is_only_claimed, of_record, waiting_run};
use crate::views::select::Select;
use crate::{JobKey, RunView, StoreResult};

/// Kinds of rows: the job's own run, one beside it, one that waits under its id, one of history.
const OWN: u8 = 0;
const BESIDE: u8 = 1;
const WAITS: u8 = 2;
const RECORDED: u8 = 3;

/// The columns of a run that a row `s` holds. Among rows of other kinds a column of fixed length would be filled up with zeros, so
/// the id is made one that varies.
pub(in crate::mysql) const HELD: &str = "j.id, j.namespace, j.name, n.node, s.held, CONCAT(s.held_run), s.held_session, s.started_at, \
     s.fencing_token, s.cancel";

/// The two tables: the kind of a run that is held there, the name, and the column with the job. Then the firing and the run that wait,
/// and the index of the latter.
const TABLES: [(u8, &str, &str, [&str; 3]); 2] = [
    (OWN, "job_state", "id", ["manual", "manual_run", "job_state_manual"]),
    (BESIDE, "concurrent_run", "job_id", ["waiting", "waiting_run", "concurrent_run_waiting"]),
];

/// So many columns has a record, with its node, its job, the mark of its output and its params.
const WIDTH: usize = 24;

/// A run that a row holds, from the columns of [`HELD`].
pub(in crate::mysql) fn held(from: &mut Columns) -> StoreResult<Option<RunView>> {
    let (job, node) = (job(from)?, from.next()?);
    let phase = from.held()?.phase();
    Ok(held_run(job, &phase, !from.is_null(), node))
}

fn job(from: &mut Columns) -> StoreResult<(JobId, JobKey)> {
    Ok((JobId(from.next()?), JobKey { namespace: from.next()?, name: from.next()? }))
}

fn waits(from: &mut Columns) -> StoreResult<Option<RunView>> {
    let job = job(from)?;
    let (firing, run) = (from.firing()?, from.maybe_run_id()?);
    Ok(firing.zip(run).map(|(firing, run)| waiting_run(job, run, &firing)))
}

/// A row of any kind, with the params of a record.
fn run(row: Row) -> StoreResult<(u8, Option<RunView>, GivenParams)> {
    let mut from = Columns::of(row);
    let kind: u8 = from.next()?;
    Ok(match kind {
        RECORDED => {
            let view = of_record(rows::recorded_of(&mut from)?);
            (kind, Some(view), GivenParams::Read(from.next::<Option<String>>()?.map(Arc::from)))
        }
        WAITS => (kind, waits(&mut from)?, GivenParams::NotRead),
        _ => (kind, held(&mut from)?, GivenParams::NotRead),
    })
}

impl MySqlConnection {
    /// One run.
    pub(in crate::mysql) async fn select_run(&mut self, id: RunId) -> StoreResult<Option<(RunView, GivenParams)>> {
        let (mut parts, id) = (Parts::of(WIDTH), format!("x'{}'", hex(&run_bytes(id))));
        for (kind, table, job, [firing, run, index]) in TABLES {
            let held = format!(
                "FROM session n STRAIGHT_JOIN {table} s FORCE INDEX ({table}_held) ON s.held_session = n.id \
                 AND s.held_run = {id} STRAIGHT_JOIN job j ON j.id = s.{job}"
            );
            parts.add(kind, HELD, &held);
            let waits = format!(
                "FROM {table} s FORCE INDEX ({index}) STRAIGHT_JOIN job j ON j.id = s.{job} WHERE s.{run} = {id}"
            );
            parts.add(WAITS, &waiting(firing, run), &waits);
        }
        let recorded = format!(
            "FROM run r FORCE INDEX (run_id) {HISTORY} \
             LEFT JOIN run_params p ON p.job_id = r.job_id AND p.due_at = r.due_at AND r.trigger_name = 'manual' WHERE r.id = {id}"
        );
        parts.add(RECORDED, &format!("{}, p.params", recorded_columns()), &recorded);
        for row in self.query(&parts.sql()).await? {
            if let (_, Some(view), params) = run(row)? {
                return Ok(Some((view, params)));
            }
        }
        Ok(None)
    }

    /// The living runs of jobs, and the history that a query asks for.
    pub(in crate::mysql) async fn select_runs_of(
        &mut self,
        jobs: &[JobId],
        query: &RecordQuery,
    ) -> StoreResult<Vec<RunView>> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let (mut parts, mut params, jobs) = (Parts::of(WIDTH), Vec::<Value>::new(), list(jobs));
        for (kind, table, job, [firing, run, _]) in TABLES.into_iter().filter(|_| query.shows_living()) {
            let of_jobs = format!("FORCE INDEX (PRIMARY) STRAIGHT_JOIN job j ON j.id = s.{job}");
            let held = format!(
                "FROM {table} s {of_jobs} LEFT JOIN session n ON n.id = s.held_session \
                 WHERE s.{job} IN ({jobs}) AND s.held_session IS NOT NULL"
            );
            parts.add(kind, HELD, &held);
            let waits = format!("FROM {table} s {of_jobs} WHERE s.{job} IN ({jobs}) AND s.{run} IS NOT NULL");
            parts.add(WAITS, &waiting(firing, run), &waits);
        }
        if query.shows_history() {
            let Select { sql, params: of_history } = from_history(query);
            parts.add(RECORDED, &recorded_columns(), &sql);
            params = values(of_history);
        }
        let mut views = Vec::new();
        for row in self.select(&parts.sql(), params).await? {
            let (kind, view, _) = run(row)?;
            views.extend(view.filter(|view| kind != OWN || !is_only_claimed(&view.stage)));
        }
        Ok(views)
    }
}

/// The columns of [`rows::recorded_of`], among rows of other kinds.
fn recorded_columns() -> String {
    format!("{}, r.node, j.namespace, j.name, o.truncated", RECORD.replacen("r.id", "CONCAT(r.id)", 1))
}

fn waiting(firing: &str, run: &str) -> String {
    format!("j.id, j.namespace, j.name, s.{firing}, CONCAT(s.{run})")
}
