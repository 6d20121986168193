//! Pages of jobs in the order in which they come up. Each partition has a part of the index, and a page is merged from the next entries of
//! all parts.

use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use crate::mysql::read::page::{Conditions, ENDS, Entries};
use crate::mysql::read::select::limit_of;
use crate::{JobQuery, StoreResult};

/// How many jobs are looked at for a page of those that have something that this index does not know.
const LOOKED_AT: usize = 1_000;

/// The next entries of all partitions, as a text that answers `claim_at` and `id`. Rows that a session holds have no time, and stand
/// first.
fn of_partitions(after: Option<(Option<Timestamp>, JobId)>, partitions: u16, most: u64) -> String {
    let (claim_at, id) = after.map_or((None, JobId(0)), |(claim_at, id)| (claim_at.map(Timestamp::as_ms), id));
    let mut parts = Vec::new();
    for partition in 0..partitions {
        let mut add = |condition: &str| {
            parts.push(format!(
                "(SELECT claim_at, id FROM job_state FORCE INDEX (job_state_due) WHERE partition_id = {partition} \
                 AND {condition} ORDER BY claim_at, id LIMIT {most})"
            ));
        };
        match claim_at {
            None => {
                add(&format!("claim_at IS NULL AND id > {id}"));
                add("claim_at IS NOT NULL");
            }
            Some(at) => add(&format!("claim_at >= {at} AND (claim_at > {at} OR id > {id})")),
        }
    }
    parts.join(" UNION ALL ")
}

impl Entries {
    /// The entries of a page. The last one that is looked at is among them, if there are so many.
    pub(in crate::mysql) fn by_next(query: &JobQuery, partitions: u16) -> StoreResult<Self> {
        let (names, rows) = (Conditions::of_names(query), Conditions::of_rows(query)?);
        let is_filtered = !names.sql.is_empty() || !rows.sql.is_empty();
        let most = limit_of(if is_filtered { LOOKED_AT } else { query.limit });
        let all = of_partitions(query.after_next(), partitions, most);
        let sql = format!(
            "SELECT COALESCE(t.matches, 0) + {ENDS} * (t.place = {most}) AS kind, t.id FROM \
             (SELECT part.id, part.place, (j.living <=> 1{}{}) AS matches FROM \
             (SELECT u.id, ROW_NUMBER() OVER (ORDER BY u.claim_at, u.id) AS place FROM ({all}) u ORDER BY place LIMIT {most}) part \
             STRAIGHT_JOIN job_state s ON s.id = part.id STRAIGHT_JOIN job j ON j.id = s.id \
             HAVING matches OR place = {most} ORDER BY place LIMIT {}) t",
            names.sql,
            rows.sql,
            limit_of(query.limit)
        );
        Ok(Self { sql, params: names.params.into_iter().chain(rows.params).collect() })
    }
}
