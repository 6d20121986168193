//! Reports about jobs: each list is read from where it begins in an index.

mod activity;
mod roll_up;

use std::collections::BTreeMap;
use std::future::ready;
use std::ops::Range;

use carillon_domain::firing::Phase;
use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use rusqlite::{Connection, Row, params};

use crate::cluster::port::CachedDefinition;
use crate::reports::namespaces::JobNamespaces;
use crate::reports::port::{JobLists, LOOKED_AT, Reports};
use crate::sqlite::client::error::{statement, unreadable};
use crate::sqlite::rows::{self, RECORD, signed};
use crate::sqlite::select::{all, first, names_of};
use crate::sqlite::tables::Transaction;
use crate::tables::{SeenJob, Tables, at_once};
use crate::views::jobs::seen_jobs;
use crate::{
    Bounded, JobDay, JobKey, JobList, JobListQuery, ListedJob, NamespaceScope, Overview, OverviewQuery, RolledUp,
    RunStage, RunView, StoreResult,
};

/// The first rows of all partitions that may be claimed until then.
fn due(partitions: u16, until: Timestamp, limit: usize) -> String {
    let of = |partition: u16| {
        format!(
            "SELECT * FROM (SELECT claim_at AS at, id FROM job_state INDEXED BY job_state_due \
             WHERE partition_id = {partition} AND claim_at <= {} ORDER BY claim_at, id LIMIT {limit})",
            until.as_ms()
        )
    };
    let all = (0..partitions).map(of).collect::<Vec<_>>().join(" UNION ALL ");
    format!("SELECT at, id FROM ({all}) ORDER BY at, id LIMIT {limit}")
}

/// The parts of a list, each as a text that answers its first `at` and `id`.
fn parts_of(list: JobList, partitions: u16, limit: usize) -> Vec<String> {
    match list {
        JobList::Troubled => vec![format!(
            "SELECT troubled_since AS at, id FROM job_state INDEXED BY job_state_troubled WHERE troubled_since > 0 \
             ORDER BY troubled_since DESC, id DESC LIMIT {limit}"
        )],
        JobList::Overdue { since } => vec![
            due(partitions, since, limit),
            format!(
                "SELECT claim_at AS at, job_id AS id FROM concurrent_run INDEXED BY concurrent_run_due \
                 WHERE claim_at <= {} ORDER BY claim_at, job_id LIMIT {limit}",
                since.as_ms()
            ),
        ],
        JobList::Coming { until } => vec![
            format!(
                "SELECT NULL AS at, id FROM job_state INDEXED BY job_state_held WHERE held_session IS NOT NULL LIMIT {limit}"
            ),
            due(partitions, until, limit),
        ],
    }
}

/// The entries of one part of a list, and whether not all were looked at.
fn entries(
    conn: &Connection,
    part: &str,
    list: &JobListQuery,
    names: Option<&String>,
) -> StoreResult<Vec<(Option<i64>, JobId)>> {
    let order = if list.list == JobList::Troubled { " DESC" } else { "" };
    let sql = format!(
        "SELECT e.at, e.id FROM ({part}) e CROSS JOIN job j ON j.id = e.id WHERE j.deleted_at IS NULL \
         AND (?1 IS NULL OR j.namespace IN (SELECT value FROM json_each(?1))) ORDER BY e.at{order}, e.id{order} LIMIT ?2"
    );
    let limit = i64::try_from(list.limit.saturating_add(1)).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| -> rusqlite::Result<_> { Ok((row.get(0)?, JobId(row.get::<_, i64>(1)? as u64))) };
    all(conn, &sql, params![names, limit], |row| read(row).map_err(statement))
}

/// The runs that execute, in one of the two tables.
fn executing(table: &str, job: &str) -> String {
    format!(
        "SELECT j.id, j.namespace, j.name, n.node, s.held, s.held_run, s.held_session, s.started_at, s.fencing_token, \
         s.cancel IS NOT NULL FROM {table} s INDEXED BY {table}_held CROSS JOIN job j ON j.id = s.{job} \
         LEFT JOIN session n ON n.id = s.held_session WHERE s.held_session IS NOT NULL AND s.started_at IS NOT NULL \
         AND (?1 IS NULL OR j.namespace IN (SELECT value FROM json_each(?1)))"
    )
}

fn running(row: &Row<'_>) -> rusqlite::Result<Option<RunView>> {
    let key = JobKey { namespace: row.get(1)?, name: row.get(2)? };
    let Phase::Executing(held) = rows::held(row, 4)?.phase() else { return Ok(None) };
    let stage = RunStage::Running { held, cancelling: row.get(9)? };
    Ok(Some(RunView {
        id: held.run,
        job_id: JobId(row.get::<_, i64>(0)? as u64),
        key,
        node: row.get(3)?,
        params: None,
        stage,
    }))
}

impl Transaction<'_> {
    fn read_records_of_jobs(
        &self,
        jobs: &[JobId],
        due: Option<Range<Timestamp>>,
        per_job: usize,
    ) -> StoreResult<Vec<RunRecord>> {
        let sql = format!(
            "SELECT {RECORD} FROM run r WHERE r.job_id = ?1 AND r.due_at >= ?2 AND r.due_at < ?3 \
             ORDER BY r.due_at DESC, r.trigger DESC, r.attempt DESC LIMIT ?4"
        );
        let due = due.map_or((i64::MIN, i64::MAX), |due| (due.start.as_ms(), due.end.as_ms()));
        let per_job = i64::try_from(per_job).unwrap_or(i64::MAX);
        let mut records = Vec::new();
        for job in jobs {
            records.extend(all(self.conn, &sql, params![signed(job.0), due.0, due.1, per_job], rows::record)?);
        }
        Ok(records)
    }

    fn read_job_lists(
        &mut self,
        scope: &NamespaceScope,
        queries: &[JobListQuery],
        partitions: u16,
    ) -> StoreResult<Vec<Bounded<ListedJob>>> {
        let (mut lists, names) = (JobLists::of(queries), names_of(scope)?);
        for (list, query) in queries.iter().enumerate() {
            let looked_at = if names.is_some() { LOOKED_AT } else { query.limit.saturating_add(1) };
            for part in parts_of(query.list, partitions, looked_at) {
                let found = entries(self.conn, &part, query, names.as_ref())?;
                if names.is_some() && found.len() <= query.limit && is_full(self.conn, &part, looked_at)? {
                    lists.note_more(list);
                }
                let ids: Vec<JobId> = found.iter().map(|(_, id)| *id).collect();
                let rows = at_once(self.jobs_by_id(&ids))?.into_iter().flatten().collect();
                let seen = at_once(seen_jobs(self, rows))?.into_iter().map(|seen| (seen.row.state.id, seen));
                let mut seen: BTreeMap<JobId, SeenJob> = seen.collect();
                for (at, id) in found {
                    if let Some(seen) = seen.remove(&id) {
                        lists.add(list, ListedJob { view: seen.into(), at: at.map(Timestamp::from_ms) });
                    }
                }
            }
        }
        Ok(lists.done())
    }

    fn read_running(&self, scope: &NamespaceScope, limit: usize) -> StoreResult<Bounded<RunView>> {
        if limit == 0 {
            return Ok(Bounded::default());
        }
        let names = names_of(scope)?;
        let (own, beside) = (executing("job_state", "id"), executing("concurrent_run", "job_id"));
        let sql = format!("SELECT * FROM (SELECT * FROM ({own} LIMIT ?2) UNION ALL SELECT * FROM ({beside} LIMIT ?2))");
        let most = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
        let found = all(self.conn, &sql, params![names, most], |row| running(row).map_err(statement))?;
        Ok(Bounded::of_running(found.into_iter().flatten().collect(), limit))
    }

    fn read_overview(&mut self, OverviewQuery { scope, running, since }: &OverviewQuery) -> StoreResult<Overview> {
        let any = "SELECT 1 FROM job WHERE deleted_at IS NULL AND (?1 IS NULL OR namespace IN (SELECT value FROM json_each(?1))) LIMIT 1";
        Ok(Overview {
            running: self.read_running(scope, *running)?,
            activity: activity::activity(self.conn, scope, *since)?,
            sessions: at_once(self.sessions(false))?,
            losses: at_once(self.windows(*since))?,
            any_job: first(self.conn, any, [names_of(scope)?], |_| Ok(()))?.is_some(),
        })
    }
}

impl Reports for Transaction<'_> {
    fn records_of_jobs(
        &mut self,
        jobs: &[JobId],
        due: Option<Range<Timestamp>>,
        per_job: usize,
    ) -> impl Future<Output = StoreResult<Vec<RunRecord>>> + Send {
        ready(self.read_records_of_jobs(jobs, due, per_job))
    }

    fn job_lists(
        &mut self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
        partitions: u16,
        _cached: CachedDefinition<'_>,
    ) -> impl Future<Output = StoreResult<Vec<Bounded<ListedJob>>>> + Send {
        ready(self.read_job_lists(scope, lists, partitions))
    }

    fn overview(&mut self, query: &OverviewQuery) -> impl Future<Output = StoreResult<Overview>> + Send {
        ready(self.read_overview(query))
    }

    fn days_of_job(&mut self, job: JobId, since: Timestamp) -> impl Future<Output = StoreResult<Vec<JobDay>>> + Send {
        ready(activity::days_of_job(self.conn, job, since))
    }

    fn has_to_roll_up(&mut self, now: Timestamp) -> impl Future<Output = StoreResult<bool>> + Send {
        ready(roll_up::has_to_count(self.conn, now))
    }

    fn roll_up(
        &mut self,
        limit: usize,
        now: Timestamp,
        _namespaces: &JobNamespaces,
    ) -> impl Future<Output = StoreResult<RolledUp>> + Send {
        ready(roll_up::count_history(self.conn, limit, now))
    }
}

/// Whether a part has as many entries as are looked at.
fn is_full(conn: &Connection, part: &str, looked_at: usize) -> StoreResult<bool> {
    let counted =
        all(conn, &format!("SELECT count(*) FROM ({part})"), [], |row| row.get::<_, i64>(0).map_err(statement))?;
    let count = counted.first().copied().ok_or_else(|| unreadable("a count has no row".to_owned()))?;
    Ok(usize::try_from(count).unwrap_or(0) >= looked_at)
}
