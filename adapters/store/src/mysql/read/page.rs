//! Pages of jobs: each is read from where it begins in an index, however many jobs there are.

use std::collections::BTreeMap;

use carillon_domain::id::JobId;
use carillon_domain::run::Status;
use mysql_async::{Row, Value};

use crate::cluster::port::CachedDefinition;
use crate::codec::end_code;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::{Columns, RECORD, STATE};
use crate::mysql::read::history::newest_due;
use crate::mysql::read::jobs_by_name::last_run_of;
use crate::mysql::read::reports::in_scope;
use crate::mysql::read::select::{DEFINITION, json, limit_of};
use crate::tables::{JobRows, SeenJob};
use crate::views::jobs::cursor_of;
use crate::{JobCursor, JobKey, JobQuery, JobSort, StoreResult};

/// How many jobs are looked at for a page of those that have something that no index knows. A page of few jobs out of very
/// many has fewer items than it may have, and says where the next one begins.
const LOOKED_AT: usize = 5_000;

/// How many names are looked at for a page of those that contain a text. The index of names tells all that is asked.
const NAMES_LOOKED_AT: usize = 20_000;

/// An entry that belongs to the page.
pub(in crate::mysql) const MATCHES: u8 = 1;
/// The last one that was looked at.
pub(in crate::mysql) const ENDS: u8 = 2;
/// There are more than could be looked at, so the answer is none.
const TOO_MANY: u8 = 4;

/// A text that answers the entries of a page: `kind`, of the bits above, and the `id` of a job.
pub(in crate::mysql) struct Entries {
    pub sql: String,
    pub params: Vec<Value>,
}

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
        let mut of_names = Self { sql: in_scope(&query.scope), ..Self::default() };
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
            // Looking for the text is far cheaper than reading the document, and most documents have another one or none.
            Some((label, None)) => {
                let key = json(label)?;
                of_rows.add("LOCATE(?, j.document) > 0", vec![key.clone().into()]);
                of_rows.add("JSON_CONTAINS(JSON_KEYS(j.document, '$.labels'), ?)", vec![key.into()]);
            }
            Some((label, Some(value))) => {
                of_rows.add("LOCATE(?, j.document) > 0", vec![json(value)?.into()]);
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
            // A job whose run was cancelled need not be in trouble.
            _ if query.last_status.is_some_and(|status| !matches!(status, Status::Succeeded | Status::Cancelled)) => {
                Self::Troubled
            }
            _ if query.last_status == Some(Status::Cancelled) => Self::Part,
            // Many jobs have the label as a rule, so the page is full long before all of the part is looked at.
            _ if query.label.is_some() => Self::Names(LOOKED_AT),
            _ if query.paused == Some(true) || in_many_namespaces => Self::Part,
            _ => Self::All,
        }
    }
}

/// The entries in the order of names. Each part of a statement that needs conditions has their parameters once.
fn by_name(query: &JobQuery, names: &Conditions, among: Among) -> StoreResult<Entries> {
    let rows = Conditions::of_rows(query)?;
    let (of_names, of_rows, limit) = (&names.sql, &rows.sql, limit_of(query.limit));
    let mut params: Vec<Value> = names.params.iter().chain(&rows.params).cloned().collect();
    let sql = match among {
        Among::All | Among::Names(_) => {
            let state = if of_rows.is_empty() { "" } else { "STRAIGHT_JOIN job_state s ON s.id = j.id " };
            format!(
                "SELECT {MATCHES} AS kind, j.id FROM job j FORCE INDEX (job_name) {state}\
                 WHERE j.living = 1{of_names}{of_rows} ORDER BY j.namespace, j.name LIMIT {limit}"
            )
        }
        Among::Held => format!(
            "SELECT {MATCHES} AS kind, j.id FROM job_state s FORCE INDEX (job_state_held) \
             STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = s.id \
             WHERE s.held_session IS NOT NULL AND j.living = 1{of_names}{of_rows} \
             ORDER BY j.namespace, j.name LIMIT {limit}"
        ),
        Among::Troubled => {
            let troubled = "FROM job_state FORCE INDEX (job_state_troubled) WHERE troubled_since > 0";
            format!(
                "(SELECT {MATCHES} AS kind, j.id FROM (SELECT id {troubled} LIMIT {LOOKED_AT}) t \
                 STRAIGHT_JOIN job_state s ON s.id = t.id STRAIGHT_JOIN job j FORCE INDEX (PRIMARY) ON j.id = s.id \
                 WHERE j.living = 1{of_names}{of_rows} ORDER BY j.namespace, j.name LIMIT {limit}) UNION ALL \
                 (SELECT {TOO_MANY}, id {troubled} ORDER BY troubled_since LIMIT 1 OFFSET {LOOKED_AT})"
            )
        }
        Among::Part => {
            params.extend(names.params.iter().cloned());
            let part = format!(
                "FROM job j FORCE INDEX (job_name) WHERE j.living = 1{of_names} ORDER BY j.namespace, j.name LIMIT"
            );
            format!(
                "(SELECT {MATCHES} AS kind, j.id FROM (SELECT j.id {part} {LOOKED_AT}) part \
                 STRAIGHT_JOIN job j ON j.id = part.id STRAIGHT_JOIN job_state s ON s.id = j.id WHERE TRUE{of_rows} \
                 ORDER BY j.namespace, j.name LIMIT {limit}) UNION ALL \
                 (SELECT {ENDS}, j.id {part} 1 OFFSET {})",
                LOOKED_AT - 1
            )
        }
    };
    Ok(Entries { sql, params })
}

impl MySqlConnection {
    /// A page of living jobs, by one statement. Two are needed where a name is to contain a text or a label is
    /// asked for, or where very many jobs are in trouble.
    pub(in crate::mysql) async fn select_page(
        &mut self,
        query: &JobQuery,
        partitions: u16,
        cached: CachedDefinition<'_>,
    ) -> StoreResult<JobRows> {
        if query.sort == JobSort::Next {
            let entries = Entries::by_next(query, partitions)?;
            return Ok(self.entries(query, entries, cached).await?.unwrap_or_default());
        }
        let (mut names, among) = (Conditions::of_names(query), Among::of(query));
        let mut looked_until = None;
        if let Among::Names(looked_at) = among {
            looked_until = self.end_of_names(Conditions::of_names(&query.of_any_name()), looked_at).await?;
            if let Some(JobCursor::Name(JobKey { namespace, name })) = &looked_until {
                let until = vec![namespace.into(), namespace.into(), name.into()];
                names.add("(j.namespace < ? OR (j.namespace = ? AND j.name <= ?))", until);
            }
        }
        let page = match self.entries(query, by_name(query, &names, among)?, cached).await? {
            Some(page) => page,
            None => self.entries(query, by_name(query, &names, Among::Part)?, cached).await?.unwrap_or_default(),
        };
        let looked_until = page.looked_until.or(looked_until.filter(|_| page.rows.len() < query.limit));
        Ok(JobRows { looked_until, ..page })
    }

    /// The jobs of these entries with everything that people see of them; `None` if there are too many to look at.
    async fn entries(
        &mut self,
        query: &JobQuery,
        Entries { sql, params }: Entries,
        cached: CachedDefinition<'_>,
    ) -> StoreResult<Option<JobRows>> {
        let sql = format!(
            "SELECT e.kind, {STATE}, n.node, {RECORD}, {DEFINITION} FROM ({sql}) e \
             STRAIGHT_JOIN job_state s ON s.id = e.id STRAIGHT_JOIN job j ON j.id = e.id \
             LEFT JOIN session n ON n.id = s.held_session \
             LEFT JOIN run r FORCE INDEX (run_attempt) ON r.job_id = j.id AND r.due_at = {}",
            newest_due("j.id")
        );
        // A text without parameters is not worth a prepared statement, which the server would keep.
        let found: Vec<Row> =
            if params.is_empty() { self.query(&sql).await? } else { self.select(&sql, params).await? };
        let (mut jobs, mut looked_until): (BTreeMap<JobId, SeenJob>, _) = (BTreeMap::new(), None);
        for row in found {
            let mut from = Columns::of(row);
            let kind: u8 = from.next()?;
            if kind == TOO_MANY {
                return Ok(None);
            }
            let seen = self.seen_of(from, cached)?;
            if kind & ENDS != 0 {
                looked_until = Some(cursor_of(&seen.row, query.sort));
            }
            if kind & MATCHES == 0 {
                continue;
            }
            // There is a row for each attempt at the newest due time.
            let known = jobs.entry(seen.row.state.id).or_insert_with(|| seen.clone());
            if last_run_of(&seen) > last_run_of(known) {
                known.last_run = seen.last_run;
            }
        }
        let mut rows: Vec<SeenJob> = jobs.into_values().collect();
        match query.sort {
            JobSort::Name => rows.sort_by_cached_key(|seen| seen.row.definition.key()),
            JobSort::Next => rows.sort_by_key(|seen| (seen.row.state.claim_at(), seen.row.state.id)),
        }
        let looked_until = looked_until.filter(|_| rows.len() < query.limit);
        Ok(Some(JobRows { rows, looked_until }))
    }

    /// The last name that is looked at, unless there are no more.
    async fn end_of_names(&mut self, names: Conditions, looked_at: usize) -> StoreResult<Option<JobCursor>> {
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
