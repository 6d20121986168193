//! Pages of jobs in the order in which they come up. Each partition has a part of the index, and a page is merged from the next entries of
//! all parts.

use mysql_async::Value;

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use crate::cluster::port::StateRead;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::page::Conditions;
use crate::mysql::read::select::limit_of;
use crate::{JobCursor, JobQuery, StoreResult};

/// How many jobs are looked at for a page of those that have something that this index does not know.
const LOOKED_AT: usize = 1_000;

/// The next entries of all partitions, as a text that answers `claim_at` and `id`, and its parameters. Rows that a session holds have no
/// time, and stand first.
fn entries(after: Option<(Option<Timestamp>, JobId)>, partitions: u16, most: usize) -> (String, Vec<Value>) {
    let (claim_at, id) = after.map_or((None, 0), |(claim_at, id)| (claim_at.map(Timestamp::as_ms), id.0));
    let (mut parts, mut params, most) = (Vec::new(), Vec::<Value>::new(), limit_of(most));
    for partition in 0..partitions {
        let mut add = |condition: &str, values: Vec<Value>| {
            parts.push(format!(
                "(SELECT claim_at, id FROM job_state FORCE INDEX (job_state_due) WHERE partition_id = {partition} \
                 AND {condition} ORDER BY claim_at, id LIMIT {most})"
            ));
            params.extend(values);
        };
        match claim_at {
            None => {
                add("claim_at IS NULL AND id > ?", vec![id.into()]);
                add("claim_at IS NOT NULL", vec![]);
            }
            Some(at) => add("claim_at >= ? AND (claim_at > ? OR id > ?)", vec![at.into(), at.into(), id.into()]),
        }
    }
    (format!("SELECT u.claim_at, u.id FROM ({}) u ORDER BY u.claim_at, u.id", parts.join(" UNION ALL ")), params)
}

impl MySqlConnection {
    pub(in crate::mysql) async fn select_next(
        &mut self,
        query: &JobQuery,
    ) -> StoreResult<(Vec<StateRead>, Option<JobCursor>)> {
        let partitions = self.partitions().await?;
        let (names, rows) = (Conditions::of_names(query), Conditions::of_rows(query)?);
        let is_filtered = !names.sql.is_empty() || !rows.sql.is_empty();
        let most = if is_filtered { LOOKED_AT } else { query.limit };
        let (entries, params) = entries(query.after_next(), partitions, most);
        let from = format!(
            "({entries} LIMIT {}) part STRAIGHT_JOIN job_state s ON s.id = part.id STRAIGHT_JOIN job j ON j.id = s.id \
             WHERE j.living = 1{}{} ORDER BY part.claim_at, part.id LIMIT {}",
            limit_of(most),
            names.sql,
            rows.sql,
            limit_of(query.limit)
        );
        let all = params.iter().chain(&names.params).chain(&rows.params).cloned().collect();
        let found = self.select_states(&from, all).await?;
        if found.len() >= query.limit {
            return Ok((found, None));
        }
        let sql = format!("{entries} LIMIT 1 OFFSET {}", most.saturating_sub(1));
        let last = self.select(&sql, params).await?.pop().map(|row| {
            let mut from = Columns::of(row);
            Ok(JobCursor::Next { claim_at: from.maybe_time()?, id: JobId(from.next()?) })
        });
        Ok((found, last.transpose()?))
    }

    /// How many partitions there are.
    async fn partitions(&mut self) -> StoreResult<u16> {
        let row = self.query("SELECT COUNT(*) - 1 FROM lock_row").await?.pop();
        row.map_or(Ok(1), |row| Columns::of(row).next())
    }
}
