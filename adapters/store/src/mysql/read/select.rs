//! Reading jobs and runs in flight, a batch with one statement.
//!
//! Numbers go into the text of a statement, everything else is a parameter.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use carillon_domain::firing::{ConcurrentRun, FiringKey};
use carillon_domain::id::{JobId, RunId};
use carillon_domain::time::Timestamp;
use mysql_async::{Row, Value};

use crate::cluster::port::{ConcurrentQuery, ReadRows, StateQuery, StateRead};
use crate::codec::run_bytes;
use crate::definition::{Definition, from_document};
use crate::feed::{JournalAsk, Span};
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::client::error::unreadable;
use crate::mysql::encoding::list::list;
use crate::mysql::encoding::rows::{self, CONCURRENT, CONCURRENT_ORDER, Columns, STATE};
use crate::mysql::write::update::NOT_STARTED;
use crate::{ClaimRequest, JobKey, StoreError, StoreResult};

/// More than any database holds.
pub(in crate::mysql) fn limit_of(limit: usize) -> u64 {
    u64::try_from(limit).unwrap_or(u64::MAX).min(u64::from(u32::MAX))
}

/// So many gaps are asked for in one statement: its text stays below 64 KiB.
const SPANS_AT_ONCE: usize = 1_000;

/// The conditions and limits that find what is asked of a journal, whose numbers are in `column`.
pub(in crate::mysql) fn conditions(column: &str, ask: &JournalAsk) -> Vec<(String, usize)> {
    let within = |span: &Span| format!("{column} BETWEEN {} AND {}", span.first, span.last);
    let gaps = ask.gaps.chunks(SPANS_AT_ONCE).map(|spans| spans.iter().map(within).collect::<Vec<_>>().join(" OR "));
    let above = (ask.limit > 0).then(|| (format!("{column} > {}", ask.after), ask.limit));
    gaps.map(|condition| (condition, u32::MAX as usize)).chain(above).collect()
}

/// So many parameters for an `IN`.
pub(in crate::mysql) fn marks(count: usize) -> String {
    vec!["?"; count].join(",")
}

pub(in crate::mysql) fn json<T: serde::Serialize + ?Sized>(list: &T) -> StoreResult<String> {
    serde_json::to_string(list).map_err(|error| StoreError::Permanent(error.to_string()))
}

/// A list of texts as a column `value`.
pub(in crate::mysql) const TEXTS: &str =
    "SELECT value FROM JSON_TABLE(?, '$[*]' COLUMNS (value VARCHAR(128) PATH '$')) texts";

/// [`names_of`] jobs, each with its place from 1.
pub(in crate::mysql) const NAMES: &str = "JSON_TABLE(?, '$[*]' COLUMNS (place FOR ORDINALITY, \
     namespace VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[0]', \
     name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[1]'))";

/// The parameter of [`NAMES`].
pub(in crate::mysql) fn names_of(keys: &[JobKey]) -> StoreResult<String> {
    json(&keys.iter().map(|key| [key.namespace.as_str(), key.name.as_str()]).collect::<Vec<_>>())
}

/// The columns of a definition.
pub(in crate::mysql) const DEFINITION: &str =
    "j.namespace, j.name, j.document, j.generation, j.anchor_at, j.created_at, j.updated_at";

/// The columns of [`DEFINITION`].
pub(in crate::mysql) fn definition_of(from: &mut Columns) -> StoreResult<Arc<Definition>> {
    let key = JobKey { namespace: from.next()?, name: from.next()? };
    let (document, generation): (String, u64) = (from.next()?, from.next()?);
    let times: [i64; 3] = [from.next()?, from.next()?, from.next()?];
    let [anchor_at, created_at, updated_at] = times.map(Timestamp::from_ms);
    let job = from_document(key, &document)?;
    let timeline = job.timeline(anchor_at).map_err(|error| unreadable(format!("{}: {error}", job.key())))?;
    let job = Arc::new(job);
    Ok(Arc::new(Definition { job, timeline, generation, anchor_at, created_at, updated_at }))
}

impl MySqlConnection {
    /// Rows of jobs; `rest` begins after FROM.
    pub(in crate::mysql) async fn select_states(
        &mut self,
        rest: &str,
        params: Vec<Value>,
    ) -> StoreResult<Vec<StateRead>> {
        let found = self.select(&format!("SELECT {STATE} FROM {rest}"), params).await?;
        Ok(read_states(found))
    }

    /// The same without parameters, as text: ids go into the text of a statement.
    async fn query_states(&mut self, rest: &str) -> StoreResult<Vec<StateRead>> {
        let found = self.query(&format!("SELECT {STATE} FROM {rest}")).await?;
        Ok(read_states(found))
    }

    async fn select_concurrent(&mut self, rest: &str, params: Vec<Value>) -> StoreResult<Vec<ConcurrentRun>> {
        let found = self.select(&format!("SELECT {CONCURRENT} FROM {rest}"), params).await?;
        found.into_iter().map(rows::concurrent).collect()
    }
}

fn read_states(found: Vec<Row>) -> Vec<StateRead> {
    let read = |row: Row| (JobId(row.get_opt(0).and_then(Result::ok).unwrap_or(0)), rows::state(row));
    found.into_iter().map(read).collect()
}

fn bytes(run: RunId) -> Value {
    Value::Bytes(run_bytes(run).to_vec())
}

impl ReadRows for MySqlConnection {
    async fn states(&mut self, query: StateQuery<'_>) -> StoreResult<Vec<StateRead>> {
        match query {
            StateQuery::Ids(ids) => {
                let rest = format!("job_state s FORCE INDEX (PRIMARY) WHERE s.id IN ({})", list(ids));
                self.query_states(&rest).await
            }
            StateQuery::HeldRun(run) => {
                let rest = "session n STRAIGHT_JOIN job_state s FORCE INDEX (job_state_held) \
                            ON s.held_session = n.id AND s.held_run = ?";
                self.select_states(rest, vec![bytes(run)]).await
            }
            StateQuery::WaitingRun(run) => {
                let rest = "job_state s FORCE INDEX (job_state_manual) WHERE s.manual_run = ?";
                self.select_states(rest, vec![bytes(run)]).await
            }
            // Most rows have NULL here, so the optimizer would scan the primary key.
            StateQuery::HeldBy(session, limit) => {
                let held = "job_state s FORCE INDEX (job_state_held) WHERE s.held_session = ?";
                let rest = format!("{held} ORDER BY s.id LIMIT {}", limit_of(limit));
                self.select_states(&rest, vec![session.as_u64().into()]).await
            }
            // Now and then the optimizer would read the whole table, as its statistics come from a random sample.
            StateQuery::Live(None) => {
                let rest = "(SELECT id FROM job_state FORCE INDEX (job_state_held) WHERE held_session IS NOT NULL UNION \
                            SELECT id FROM job_state FORCE INDEX (job_state_manual) WHERE manual_run IS NOT NULL) live \
                            STRAIGHT_JOIN job_state s ON s.id = live.id";
                self.select_states(rest, Vec::new()).await
            }
            StateQuery::Executing => {
                let rest = format!(
                    "job_state s FORCE INDEX (job_state_held) WHERE s.held_session IS NOT NULL \
                     AND s.started_at IS NOT NULL AND s.started_at <> {NOT_STARTED}"
                );
                self.query_states(&rest).await
            }
            StateQuery::Live(Some(ids)) => {
                let rest = format!(
                    "job_state s FORCE INDEX (PRIMARY) WHERE s.id IN ({}) \
                     AND (s.held_session IS NOT NULL OR s.manual_run IS NOT NULL)",
                    list(ids)
                );
                self.select_states(&rest, Vec::new()).await
            }
        }
    }

    async fn definitions(&mut self, ids: &[JobId]) -> StoreResult<BTreeMap<JobId, StoreResult<Arc<Definition>>>> {
        // After many jobs were created at once, the statistics still show a small table, and a full scan would look cheaper.
        let ids = list(ids);
        let sql = format!("SELECT j.id, {DEFINITION} FROM job j FORCE INDEX (PRIMARY) WHERE j.id IN ({ids})");
        let mut found = BTreeMap::new();
        for row in self.query(&sql).await? {
            let mut from = Columns::of(row);
            found.insert(JobId(from.next()?), definition_of(&mut from));
        }
        Ok(found)
    }

    async fn ids_by_name(&mut self, keys: &[JobKey]) -> StoreResult<Vec<Option<JobId>>> {
        let sql = format!(
            "SELECT t.place, j.id FROM {NAMES} t STRAIGHT_JOIN job j FORCE INDEX (job_name) \
             ON j.namespace = t.namespace AND j.name = t.name AND j.living = 1"
        );
        let mut ids = vec![None; keys.len()];
        for row in self.select(&sql, (names_of(keys)?,)).await? {
            let mut from = Columns::of(row);
            let (place, id): (usize, u64) = (from.next()?, from.next()?);
            if let Some(at) = ids.get_mut(place.wrapping_sub(1)) {
                *at = Some(JobId(id));
            }
        }
        Ok(ids)
    }

    async fn ids_ever_named(&mut self, key: &JobKey) -> StoreResult<Vec<JobId>> {
        let sql = "SELECT id FROM job FORCE INDEX (job_name) WHERE namespace = ? AND name = ? ORDER BY id";
        let rows = self.select(sql, (&key.namespace, &key.name)).await?;
        rows.into_iter().map(|row| Columns::of(row).next().map(JobId)).collect()
    }

    /// The index answers all of it. Few different limits are used, as each is a statement of its own to a server.
    async fn first_due(&mut self, request: &ClaimRequest, of_each: usize) -> StoreResult<Vec<(i64, JobId, u16)>> {
        let limit = limit_of(of_each.checked_next_power_of_two().unwrap_or(of_each));
        let places = marks(request.executors.len());
        let (mut sql, mut params) = (String::new(), Vec::new());
        for partition in &request.partitions {
            let union = if sql.is_empty() { "" } else { " UNION ALL " };
            let _infallible = write!(
                sql,
                "{union}(SELECT claim_at, id, partition_id FROM job_state FORCE INDEX (job_state_due) \
                 WHERE partition_id = {partition} AND claim_at <= ? AND executor IN ({places}) \
                 ORDER BY claim_at, id LIMIT {limit})"
            );
            params.push(Value::from(request.until.as_ms()));
            params.extend(request.executors.iter().map(Value::from));
        }
        let mut due: Vec<(i64, JobId, u16)> = Vec::new();
        for row in self.select(&sql, params).await? {
            let mut from = Columns::of(row);
            due.push((from.next()?, JobId(from.next()?), from.next()?));
        }
        due.sort_unstable();
        Ok(due)
    }

    async fn concurrent_runs(&mut self, query: ConcurrentQuery<'_>) -> StoreResult<Vec<ConcurrentRun>> {
        match query {
            ConcurrentQuery::Keys(keys) => {
                let place =
                    |key: &FiringKey| format!("({},{},'{}')", key.job.0, key.due_at.as_ms(), key.trigger.as_str());
                let places: Vec<String> = keys.iter().map(place).collect();
                let columns = "(a.job_id, a.due_at, a.trigger_name)";
                let rest = format!("concurrent_run a WHERE {columns} IN ({})", places.join(","));
                self.select_concurrent(&rest, Vec::new()).await
            }
            ConcurrentQuery::HeldRun(run) => {
                let rest = "session n STRAIGHT_JOIN concurrent_run a FORCE INDEX (concurrent_run_held) \
                            ON a.held_session = n.id AND a.held_run = ?";
                self.select_concurrent(rest, vec![bytes(run)]).await
            }
            ConcurrentQuery::WaitingRun(run) => {
                let rest = "concurrent_run a FORCE INDEX (concurrent_run_waiting) WHERE a.waiting_run = ?";
                self.select_concurrent(rest, vec![bytes(run)]).await
            }
            ConcurrentQuery::HeldBy(session, limit) => {
                let held = "concurrent_run a FORCE INDEX (concurrent_run_held) WHERE a.held_session = ?";
                let rest = format!("{held} ORDER BY {CONCURRENT_ORDER} LIMIT {}", limit_of(limit));
                self.select_concurrent(&rest, vec![session.as_u64().into()]).await
            }
            ConcurrentQuery::Due(request) => {
                let rest = format!(
                    "concurrent_run a STRAIGHT_JOIN job_state s ON s.id = a.job_id WHERE a.claim_at <= ? \
                     AND s.partition_id IN ({}) AND s.executor IN ({TEXTS}) ORDER BY a.claim_at, {CONCURRENT_ORDER} \
                     LIMIT {}",
                    list(&request.partitions),
                    limit_of(request.runs.len())
                );
                self.select_concurrent(&rest, vec![request.until.as_ms().into(), json(&request.executors)?.into()])
                    .await
            }
            ConcurrentQuery::All => self.select_concurrent("concurrent_run a", Vec::new()).await,
            ConcurrentQuery::OfJobs(jobs) => {
                let rest = format!("concurrent_run a WHERE a.job_id IN ({})", list(jobs));
                self.select_concurrent(&rest, Vec::new()).await
            }
        }
    }

    async fn run_params(&mut self, firings: &[FiringKey]) -> StoreResult<Vec<Option<Arc<str>>>> {
        let place = |firing: &FiringKey| format!("({},{})", firing.job.0, firing.due_at.as_ms());
        let places: Vec<String> = firings.iter().map(place).collect();
        let sql =
            format!("SELECT job_id, due_at, params FROM run_params WHERE (job_id, due_at) IN ({})", places.join(","));
        let mut found = BTreeMap::new();
        for row in self.query(&sql).await? {
            let mut from = Columns::of(row);
            let firing = (JobId(from.next()?), from.time()?);
            found.insert(firing, Arc::from(from.next::<String>()?));
        }
        Ok(firings.iter().map(|firing| found.get(&(firing.job, firing.due_at)).cloned()).collect())
    }

    async fn highest_version(&mut self) -> StoreResult<u64> {
        let sql = "SELECT CAST(value AS UNSIGNED) FROM meta WHERE name = 'highest_version'";
        let row = self.select(sql, ()).await?.pop();
        Ok(row.and_then(|mut row| row.take::<u64, _>(0)).unwrap_or(0))
    }
}
