//! Pages of jobs: each is read from where it begins in an index, however many jobs there are.

use std::collections::BTreeMap;

use carillon_domain::run::Status;
use mysql_async::Value;

use crate::cluster::port::StateRead;
use crate::codec::end_code;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::Columns;
use crate::mysql::read::select::{json, limit_of};
use crate::{JobCursor, JobKey, JobQuery, JobSort, StoreResult};

/// How many jobs are looked at for a page of those that have something that no index knows. A page of few jobs out of very
/// many has fewer items than it may have, and says where the next one begins.
const LOOKED_AT: usize = 5_000;

/// How many names are looked at for a page of those that contain a text. The index of names tells all that is asked.
const NAMES_LOOKED_AT: usize = 20_000;

/// Conditions and their parameters.
#[derive(Default)]
pub(in crate::mysql) struct Conditions {
    pub sql: String,
    pub params: Vec<Value>,
}

impl Conditions {
    fn add(&mut self, condition: &str, values: Vec<Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.params.extend(values);
    }

    /// The answer of the index of names.
    pub fn of_names(query: &JobQuery) -> Self {
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
        if let Some(text) = &query.contains {
            of_names.add("LOCATE(?, LOWER(j.name)) > 0", vec![text.to_lowercase().into()]);
        }
        of_names
    }

    /// The answer of the rows.
    pub fn of_rows(query: &JobQuery) -> StoreResult<Self> {
        let mut of_rows = Self::default();
        match query.state.as_deref() {
            None => {}
            Some("idle") => of_rows.add("s.held_session IS NULL", vec![]),
            Some("prepared") => of_rows.add("s.held_session IS NOT NULL AND COALESCE(s.started_at, 0) = 0", vec![]),
            Some("executing") => of_rows.add("s.started_at <> 0", vec![]),
            Some(_) => of_rows.add("FALSE", vec![]),
        }
        if let Some(status) = query.last_status {
            of_rows.add(&format!("s.last_status = {} AND s.last_status > 0", end_code(status)), vec![]);
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
    /// Those in trouble, if there are few.
    Troubled,
    /// Among so many names, which the index alone tells.
    Names(usize),
}

impl Among {
    fn of(query: &JobQuery) -> Self {
        let in_many_namespaces = query.prefix.is_some() && query.namespace.is_none();
        match query.state.as_deref() {
            Some("prepared" | "executing") => Self::Held,
            _ if query.contains.is_some() => {
                let plain = query.label.is_none() && query.paused.is_none() && query.last_status.is_none();
                Self::Names(if plain { NAMES_LOOKED_AT } else { LOOKED_AT })
            }
            _ if query.last_status.is_some_and(|status| status != Status::Succeeded) => Self::Troubled,
            _ if query.label.is_some() || query.paused == Some(true) || in_many_namespaces => Self::Part,
            _ => Self::All,
        }
    }
}

impl MySqlConnection {
    /// A page of living jobs.
    pub(in crate::mysql) async fn select_page(
        &mut self,
        query: &JobQuery,
    ) -> StoreResult<(Vec<StateRead>, Option<JobCursor>)> {
        if query.sort == JobSort::Next {
            return self.select_next(query).await;
        }
        let (mut names, rows) = (Conditions::of_names(query), Conditions::of_rows(query)?);
        let mut among = Among::of(query);
        let mut looked_until = None;
        if let Among::Names(looked_at) = among {
            looked_until = self.end_of_part(Conditions::of_names(&query.of_any_name()), looked_at).await?;
            if let Some(JobCursor::Name(JobKey { namespace, name })) = &looked_until {
                let until = vec![namespace.into(), namespace.into(), name.into()];
                names.add("(j.namespace < ? OR (j.namespace = ? AND j.name <= ?))", until);
            }
        }
        if matches!(among, Among::Troubled) && !self.has_few_troubled(query).await? {
            among = Among::Part;
        }
        let (of_names, of_rows, limit) = (&names.sql, &rows.sql, limit_of(query.limit));
        let from = match among {
            Among::All | Among::Names(_) => format!(
                "job j FORCE INDEX (job_name) STRAIGHT_JOIN job_state s ON s.id = j.id \
                 WHERE j.living = 1{of_names}{of_rows}"
            ),
            Among::Held => format!(
                "job_state s FORCE INDEX (job_state_held) STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = s.id \
                 WHERE s.held_session IS NOT NULL AND j.living = 1{of_names}{of_rows}"
            ),
            Among::Troubled => format!(
                "job_state s FORCE INDEX (job_state_troubled) STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = s.id \
                 WHERE s.troubled_since > 0 AND j.living = 1{of_names}{of_rows}"
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
            Among::Part if rows.len() < query.limit => self.end_of_part(names, LOOKED_AT).await?,
            Among::Names(_) if rows.len() < query.limit => looked_until,
            Among::All | Among::Held | Among::Part | Among::Troubled | Among::Names(_) => None,
        };
        Ok((rows, looked_until))
    }

    /// Whether all jobs that ended so can be looked at. A job whose run was cancelled need not be in trouble.
    async fn has_few_troubled(&mut self, query: &JobQuery) -> StoreResult<bool> {
        if query.last_status == Some(Status::Cancelled) {
            return Ok(false);
        }
        let sql = format!(
            "SELECT troubled_since FROM job_state FORCE INDEX (job_state_troubled) WHERE troubled_since > 0 \
             ORDER BY troubled_since LIMIT 1 OFFSET {LOOKED_AT}"
        );
        Ok(self.query(&sql).await?.is_empty())
    }

    /// The last job that was looked at, unless there are no more.
    async fn end_of_part(&mut self, names: Conditions, looked_at: usize) -> StoreResult<Option<JobCursor>> {
        let sql = format!(
            "SELECT j.namespace, j.name FROM job j FORCE INDEX (job_name) WHERE j.living = 1{} \
             ORDER BY j.namespace, j.name LIMIT 1 OFFSET {}",
            names.sql,
            looked_at - 1
        );
        let row = self.select(&sql, names.params).await?.pop();
        row.map(|row| {
            let mut from = Columns::of(row);
            Ok(JobCursor::Name(JobKey { namespace: from.next()?, name: from.next()? }))
        })
        .transpose()
    }
}
