//! The lock-free reads of a node: a peek, and the rows that a session holds.

use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::node::port::{RowKey, RunRef, UNCLAIMED_PER_PARTITION, Unclaimed, WantedOutput};
use carillon_domain::time::Timestamp;
use mysql_async::Value;

use crate::cluster::port::Peeking;
use crate::live_output::wanted_since;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::{self, CONCURRENT, CONCURRENT_ORDER, Columns};
use crate::mysql::read::select::marks;
use crate::{PeekRequest, StoreResult};

impl Peeking for MySqlConnection {
    /// One statement for all partitions and both tables: of each partition the first entries in the index.
    async fn unclaimed(&mut self, request: &PeekRequest, partitions: u16) -> StoreResult<Vec<Unclaimed>> {
        let places = if request.executors.is_empty() { "NULL".to_owned() } else { marks(request.executors.len()) };
        let first_of = |partition: u16| {
            format!(
                "(SELECT partition_id, executor, claim_at, id FROM job_state FORCE INDEX (job_state_due) \
                 WHERE partition_id = {partition} AND claim_at <= ? AND executor IN ({places}) \
                 ORDER BY claim_at, id LIMIT {UNCLAIMED_PER_PARTITION})"
            )
        };
        let sql = format!(
            "SELECT t.partition_id, t.executor, t.claim_at, s.version, t.id, NULL, NULL FROM ({}) t \
             STRAIGHT_JOIN job_state s ON s.id = t.id UNION ALL \
             SELECT partition_id, executor, claim_at, version, job_id, due_at, trigger_name FROM \
             (SELECT s.partition_id, s.executor, a.claim_at, a.version, a.job_id, a.due_at, a.trigger_name, \
             ROW_NUMBER() OVER (PARTITION BY s.partition_id ORDER BY a.claim_at, {CONCURRENT_ORDER}) AS place \
             FROM concurrent_run a STRAIGHT_JOIN job_state s ON s.id = a.job_id WHERE a.claim_at <= ? \
             AND s.executor IN ({places})) beside WHERE place <= {UNCLAIMED_PER_PARTITION}",
            (0..partitions).map(first_of).collect::<Vec<_>>().join(" UNION ALL ")
        );
        let mut params: Vec<Value> = Vec::new();
        for _ in 0..=partitions {
            params.push(request.until.as_ms().into());
            params.extend(request.executors.iter().map(Value::from));
        }
        self.select(&sql, params).await?.into_iter().map(rows::unclaimed).collect()
    }

    async fn news(&mut self, session: SessionId) -> StoreResult<(Vec<SessionId>, Vec<RunId>)> {
        let me = session.as_u64();
        let news = format!(
            "SELECT id, NULL FROM session WHERE state = 'live' UNION ALL \
             SELECT NULL, held_run FROM job_state FORCE INDEX (job_state_cancelled) WHERE cancel IS NOT NULL AND held_session = {me} UNION ALL \
             SELECT NULL, held_run FROM concurrent_run FORCE INDEX (concurrent_run_cancelled) WHERE cancel IS NOT NULL AND held_session = {me}"
        );
        let (mut claimants, mut cancels) = (Vec::new(), Vec::new());
        for row in self.query(&news).await? {
            let mut from = Columns::of(row);
            match from.next::<Option<u64>>()? {
                Some(session) => claimants.push(SessionId::from_random(session)),
                None => cancels.push(from.run()?),
            }
        }
        Ok((claimants, cancels))
    }

    /// The table is nearly always empty: it is read first.
    async fn wanted_outputs(&mut self, session: SessionId, now: Timestamp) -> StoreResult<Vec<WantedOutput>> {
        let (session, since) = (session.as_u64(), wanted_since(now).as_ms());
        let sql = format!(
            "SELECT l.run, l.written FROM live_output l WHERE l.asked_at >= {since} AND (\
             EXISTS (SELECT 1 FROM job_state s FORCE INDEX (job_state_held) \
             WHERE s.held_session = {session} AND s.held_run = l.run) OR \
             EXISTS (SELECT 1 FROM concurrent_run a FORCE INDEX (concurrent_run_held) \
             WHERE a.held_session = {session} AND a.held_run = l.run))"
        );
        let rows = self.query(&sql).await?.into_iter();
        let wanted = rows.map(|row| {
            let mut from = Columns::of(row);
            Ok(WantedOutput { run: from.run()?, published: from.next()? })
        });
        wanted.collect()
    }

    async fn rows_held_by(&mut self, session: SessionId) -> StoreResult<Vec<RunRef>> {
        let session = session.as_u64();
        let jobs = format!(
            "SELECT id, held_run, version FROM job_state FORCE INDEX (job_state_held) \
             WHERE held_session = {session} ORDER BY id"
        );
        let mut held = Vec::new();
        for row in self.query(&jobs).await? {
            let mut from = Columns::of(row);
            let row = RowKey::Job(JobId(from.next()?));
            held.push(RunRef { row, run: from.run()?, version: from.next()? });
        }
        let concurrent = format!(
            "SELECT {CONCURRENT} FROM concurrent_run a FORCE INDEX (concurrent_run_held) \
             WHERE a.held_session = {session} ORDER BY {CONCURRENT_ORDER}"
        );
        for row in self.query(&concurrent).await? {
            let row = rows::concurrent(row)?;
            let run = row.phase.held().map(|held| held.run);
            held.extend(run.map(|run| RunRef { row: RowKey::Concurrent(row.key), run, version: row.version }));
        }
        Ok(held)
    }
}
