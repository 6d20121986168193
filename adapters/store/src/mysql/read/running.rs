//! The runs that execute.

use std::fmt::Write as _;

use carillon_domain::firing::Phase;
use carillon_domain::id::JobId;
use mysql_async::Row;

use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::reports::in_scope;
use crate::mysql::read::select::limit_of;
use crate::{Bounded, JobKey, NamespaceScope, RunStage, RunView, StoreResult};

impl MySqlConnection {
    /// A session's rows stand in the index in the order in which their runs were drawn. Those that execute come before those that are
    /// prepared, so the limit is soon reached.
    pub(in crate::mysql) async fn select_running(
        &mut self,
        scope: &NamespaceScope,
        limit: usize,
    ) -> StoreResult<Bounded<RunView>> {
        let condition = in_scope(scope);
        let (mut sql, most) = (String::new(), limit_of(limit + 1));
        for (table, job) in [("job_state", "id"), ("concurrent_run", "job_id")] {
            let union = if sql.is_empty() { "" } else { " UNION ALL " };
            let _infallible = write!(
                sql,
                "{union}(SELECT j.id, j.namespace, j.name, n.node, s.held, s.held_run, s.held_session, s.started_at, \
                 s.fencing_token, s.cancel FROM session n STRAIGHT_JOIN {table} s FORCE INDEX ({table}_held) \
                 ON s.held_session = n.id STRAIGHT_JOIN job j ON j.id = s.{job} \
                 WHERE s.started_at <> 0{condition} LIMIT {most})"
            );
        }
        let found = self.query(&sql).await?;
        let items = found.into_iter().filter_map(|row| running(row).transpose()).collect::<StoreResult<Vec<_>>>()?;
        Ok(Bounded::of_running(items, limit))
    }
}

fn running(row: Row) -> StoreResult<Option<RunView>> {
    let mut from = Columns::of(row);
    let job_id = JobId(from.next()?);
    let key = JobKey { namespace: from.next()?, name: from.next()? };
    let node = from.next()?;
    let Phase::Executing(held) = from.held()?.phase() else { return Ok(None) };
    let cancelling = !from.is_null();
    Ok(Some(RunView { id: held.run, job_id, key, node, params: None, stage: RunStage::Running { held, cancelling } }))
}
