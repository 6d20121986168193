//! Pages of jobs: each is read from where it begins in an index, however many jobs there are.

use std::collections::BTreeMap;

use mysql_async::Value;

use crate::cluster::port::StateRead;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::select::{json, limit_of};
use crate::{JobCursor, JobKey, JobQuery, StoreResult};

/// How many jobs are looked at for a page of those that have something that no index knows. A page of few jobs out of very
/// many has fewer items than it may have, and says where the next one begins.
const LOOKED_AT: usize = 5_000;

/// Conditions and their parameters.
#[derive(Default)]
struct Conditions {
    sql: String,
    params: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, condition: &str, values: Vec<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.params.extend(values);
    }

    /// The answer of the index of names.
    fn of_names(query: &JobQuery) -> Self {
        let mut of_names = Self::default();
        if let Some(JobKey { namespace, name }) = query.after_name() {
            let after = vec![namespace.into(), name.into(), namespace.into()];
            of_names.add("((j.namespace = ? AND j.name > ?) OR j.namespace > ?)", after);
        }
        if let Some(namespace) = &query.namespace {
            of_names.add("j.namespace = ?", vec![namespace.into()]);
        }
        if let Some(prefix) = &query.prefix {
            let beyond = format!("{prefix}{}", char::MAX);
            of_names.add("j.name >= ? AND j.name < ?", vec![prefix.into(), beyond.into()]);
        }
        of_names
    }

    /// The answer of the rows.
    fn of_rows(query: &JobQuery) -> StoreResult<Self> {
        let mut of_rows = Self::default();
        match query.state.as_deref() {
            None => {}
            Some("idle") => of_rows.add("s.held_session IS NULL", vec![]),
            Some("prepared") => of_rows.add("s.held_session IS NOT NULL AND COALESCE(s.started_at, 0) = 0", vec![]),
            Some("executing") => of_rows.add("s.started_at <> 0", vec![]),
            Some(_) => of_rows.add("FALSE", vec![]),
        }
        if let Some(paused) = query.paused {
            of_rows.add(if paused { "s.pause_since IS NOT NULL" } else { "s.pause_since IS NULL" }, vec![]);
        }
        match &query.label {
            None => {}
            Some((label, None)) => {
                of_rows.add("JSON_CONTAINS(JSON_KEYS(j.document, '$.labels'), ?)", vec![json(label)?.into()]);
            }
            Some((label, Some(value))) => {
                let wanted = json(&BTreeMap::from([(label, value)]))?;
                of_rows.add("JSON_CONTAINS(j.document, ?, '$.labels')", vec![wanted.into()]);
            }
        }
        Ok(of_rows)
    }
}

/// Where the jobs of a page are looked for.
enum Among {
    /// In the order of their names, until there are enough.
    All,
    /// Those that are held, of which there are few.
    Held,
    /// The next so many in the order of their names.
    Part,
}

impl Among {
    fn of(query: &JobQuery) -> Self {
        let in_many_namespaces = query.prefix.is_some() && query.namespace.is_none();
        match query.state.as_deref() {
            Some("prepared" | "executing") => Self::Held,
            _ if query.label.is_some() || query.paused == Some(true) || in_many_namespaces => Self::Part,
            _ => Self::All,
        }
    }
}

impl MySqlConnection {
    /// A page of living jobs in the order of their names.
    pub(in crate::mysql) async fn select_page(
        &mut self,
        query: &JobQuery,
    ) -> StoreResult<(Vec<StateRead>, Option<JobCursor>)> {
        let (names, rows) = (Conditions::of_names(query), Conditions::of_rows(query)?);
        let (of_names, of_rows, limit) = (&names.sql, &rows.sql, limit_of(query.limit));
        let among = Among::of(query);
        let from = match among {
            Among::All => format!(
                "job j FORCE INDEX (job_name) STRAIGHT_JOIN job_state s ON s.id = j.id \
                 WHERE j.living = 1{of_names}{of_rows}"
            ),
            Among::Held => format!(
                "job_state s FORCE INDEX (job_state_held) STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = s.id \
                 WHERE s.held_session IS NOT NULL AND j.living = 1{of_names}{of_rows}"
            ),
            Among::Part => format!(
                "(SELECT j.id FROM job j FORCE INDEX (job_name) WHERE j.living = 1{of_names} \
                 ORDER BY j.namespace, j.name LIMIT {LOOKED_AT}) part STRAIGHT_JOIN job j ON j.id = part.id \
                 STRAIGHT_JOIN job_state s ON s.id = j.id WHERE TRUE{of_rows}"
            ),
        };
        let params = names.params.iter().chain(&rows.params).cloned().collect();
        let rows = self.select_states(&format!("{from} ORDER BY j.namespace, j.name LIMIT {limit}"), params).await?;
        let looked_until = match among {
            Among::Part if rows.len() < query.limit => self.end_of_part(names).await?,
            Among::All | Among::Held | Among::Part => None,
        };
        Ok((rows, looked_until))
    }

    /// The last job that was looked at, unless there are no more.
    async fn end_of_part(&mut self, names: Conditions) -> StoreResult<Option<JobCursor>> {
        let sql = format!(
            "SELECT j.namespace, j.name FROM job j FORCE INDEX (job_name) WHERE j.living = 1{} \
             ORDER BY j.namespace, j.name LIMIT 1 OFFSET {}",
            names.sql,
            LOOKED_AT - 1
        );
        let row = self.select(&sql, names.params).await?.pop();
        row.map(|row| {
            let mut from = Columns::of(row);
            Ok(JobCursor::Name(JobKey { namespace: from.next()?, name: from.next()? }))
        })
        .transpose()
    }
}
