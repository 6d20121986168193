//! Reports about jobs: several lists as one statement. Each list is read from where it begins in an index.

use std::ops::Range;

use carillon_domain::id::JobId;
use carillon_domain::run::RunRecord;
use carillon_domain::time::Timestamp;
use mysql_async::Row;

use crate::cluster::port::CachedDefinition;
use crate::codec::hex;
use crate::mysql::client::connection::MySqlConnection;
use crate::mysql::encoding::rows::{self, Columns, RECORD, STATE};
use crate::mysql::read::history::newest_due;
use crate::mysql::read::select::{DEFINITION, limit_of};
use crate::reports::namespaces::JobNamespaces;
use crate::reports::port::{JobLists, LOOKED_AT, Reports};
use crate::tables::SeenJob;
use crate::{
    Bounded, JobDay, JobList, JobListQuery, ListedJob, NamespaceScope, Overview, OverviewQuery, RolledUp, StoreError,
    StoreResult,
};

/// A list whose rows are only part of what there is says so by a row at this distance.
const MORE: usize = 1_000;

/// The text of a statement. It has no parameters: the server would keep a prepared statement for each text.
#[derive(Default)]
struct Statement {
    parts: Vec<String>,
}

/// Names as a list of constants that no name can end.
pub(in crate::mysql) fn constants<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let constant = |name: &String| format!("_utf8mb4 x'{}'", hex(name.as_bytes()));
    names.into_iter().map(constant).collect::<Vec<_>>().join(", ")
}

/// The condition that a job `j` is in the scope.
pub(in crate::mysql) fn in_scope(scope: &NamespaceScope) -> String {
    match scope {
        NamespaceScope::All => String::new(),
        NamespaceScope::Only(names) if names.is_empty() => " AND FALSE".to_owned(),
        NamespaceScope::Only(names) => format!(" AND j.namespace IN ({})", constants(names)),
    }
}

impl Statement {
    /// Adds the first rows of `entries`, which answers `at` and `id` in the order of the list. Where a reader sees some namespaces
    /// only, the jobs of others are left out of a bounded number of entries.
    fn add(
        &mut self,
        list: usize,
        entries: &dyn Fn(usize) -> String,
        order: &str,
        scope: &NamespaceScope,
        limit: usize,
    ) {
        if *scope == NamespaceScope::All {
            let first = entries(limit + 1);
            self.parts.push(format!("(SELECT {list} AS list, e.at, e.id FROM ({first}) e)"));
            return;
        }
        let condition = in_scope(scope);
        let (looked_at, limit) = (entries(LOOKED_AT), limit_of(limit + 1));
        self.parts.push(format!(
            "(SELECT {list} AS list, e.at, e.id FROM ({looked_at}) e STRAIGHT_JOIN job j ON j.id = e.id{condition} \
             ORDER BY e.at{order}, e.id{order} LIMIT {limit})"
        ));
        let last = LOOKED_AT - 1;
        self.parts.push(format!(
            "(SELECT {} AS list, e.at, e.id FROM ({looked_at}) e ORDER BY e.at{order}, e.id{order} LIMIT 1 OFFSET {last})",
            list + MORE
        ));
    }

    fn add_list(&mut self, list: usize, query: &JobListQuery, scope: &NamespaceScope, partitions: u16) {
        match query.list {
            JobList::Troubled => {
                let troubled = |limit: usize| {
                    format!(
                        "SELECT troubled_since AS at, id FROM job_state FORCE INDEX (job_state_troubled) \
                         WHERE troubled_since > 0 ORDER BY troubled_since DESC, id DESC LIMIT {}",
                        limit_of(limit)
                    )
                };
                self.add(list, &troubled, " DESC", scope, query.limit);
            }
            JobList::Overdue { since } => {
                self.add(list, &|limit| due(partitions, since, limit), "", scope, query.limit);
                let waiting = |limit: usize| {
                    format!(
                        "SELECT claim_at AS at, job_id AS id FROM concurrent_run FORCE INDEX (concurrent_run_due) \
                         WHERE claim_at <= {} ORDER BY claim_at, job_id LIMIT {}",
                        since.as_ms(),
                        limit_of(limit)
                    )
                };
                self.add(list, &waiting, "", scope, query.limit);
            }
            JobList::Coming { until } => {
                let held = |limit: usize| {
                    format!(
                        "SELECT NULL AS at, id FROM job_state FORCE INDEX (job_state_held) \
                         WHERE held_session IS NOT NULL LIMIT {}",
                        limit_of(limit)
                    )
                };
                self.add(list, &held, "", scope, query.limit);
                self.add(list, &|limit| due(partitions, until, limit), "", scope, query.limit);
            }
        }
    }
}

/// The first rows of all partitions that may be claimed until then.
fn due(partitions: u16, until: Timestamp, limit: usize) -> String {
    let (until, limit) = (until.as_ms(), limit_of(limit));
    let of = |partition: u16| {
        format!(
            "(SELECT claim_at, id FROM job_state FORCE INDEX (job_state_due) WHERE partition_id = {partition} \
             AND claim_at <= {until} ORDER BY claim_at, id LIMIT {limit})"
        )
    };
    let all = (0..partitions).map(of).collect::<Vec<_>>().join(" UNION ALL ");
    format!("SELECT d.claim_at AS at, d.id FROM ({all}) d ORDER BY d.claim_at, d.id LIMIT {limit}")
}

/// The places of the lists that tell records; a place that no list has, if there are none.
fn with_records(queries: &[JobListQuery]) -> String {
    let place = |(place, query): (usize, &JobListQuery)| query.list.tells_records().then(|| place.to_string());
    let places: Vec<String> = queries.iter().enumerate().filter_map(place).collect();
    if places.is_empty() { "-1".to_owned() } else { places.join(", ") }
}

impl MySqlConnection {
    /// The newest records of each job, from the end of its part of the index.
    pub(in crate::mysql) async fn select_records_of_jobs(
        &mut self,
        jobs: &[JobId],
        due: Option<Range<Timestamp>>,
        per_job: usize,
    ) -> StoreResult<Vec<RunRecord>> {
        if jobs.is_empty() || per_job == 0 {
            return Ok(Vec::new());
        }
        let range = due.map_or(String::new(), |due| {
            format!(" AND r.due_at >= {} AND r.due_at < {}", due.start.as_ms(), due.end.as_ms())
        });
        let of_job = |job: &JobId| {
            format!(
                "(SELECT {RECORD} FROM run r FORCE INDEX (run_attempt) WHERE r.job_id = {job}{range} ORDER BY r.job_id DESC, \
                 r.due_at DESC, r.trigger_name DESC, r.attempt DESC LIMIT {})",
                limit_of(per_job)
            )
        };
        let sql = jobs.iter().map(of_job).collect::<Vec<_>>().join(" UNION ALL ");
        self.query(&sql).await?.into_iter().map(rows::record).collect()
    }

    pub(in crate::mysql) async fn select_job_lists(
        &mut self,
        scope: &NamespaceScope,
        queries: &[JobListQuery],
        partitions: u16,
        cached: CachedDefinition<'_>,
    ) -> StoreResult<Vec<Bounded<ListedJob>>> {
        let mut lists = JobLists::of(queries);
        let mut statement = Statement::default();
        for (list, query) in queries.iter().enumerate() {
            statement.add_list(list, query, scope, partitions);
        }
        if statement.parts.is_empty() {
            return Ok(lists.done());
        }
        let sql = format!(
            "SELECT t.list, t.at, {STATE}, n.node, {RECORD}, {DEFINITION} FROM ({}) t \
             STRAIGHT_JOIN job_state s ON s.id = t.id STRAIGHT_JOIN job j ON j.id = t.id AND j.living = 1 \
             LEFT JOIN session n ON n.id = s.held_session \
             LEFT JOIN run r FORCE INDEX (run_attempt) ON r.job_id = j.id AND r.due_at = IF(t.list IN ({}), {}, NULL)",
            statement.parts.join(" UNION ALL "),
            with_records(queries),
            newest_due("j.id")
        );
        for row in self.query(&sql).await? {
            let (list, at, seen) = match self.listed(row, cached) {
                // One row of a newer binary must not keep a reader from all the others.
                Err(StoreError::Permanent(problem)) => {
                    tracing::error!(problem, "a job cannot be read and is left out of a list");
                    continue;
                }
                listed => listed?,
            };
            match list.checked_sub(MORE) {
                Some(list) => lists.note_more(list),
                None => lists.add(list, ListedJob { view: seen.into(), at }),
            }
        }
        Ok(lists.done())
    }

    fn listed(&mut self, row: Row, cached: CachedDefinition<'_>) -> StoreResult<(usize, Option<Timestamp>, SeenJob)> {
        let mut from = Columns::of(row);
        let (list, at) = (from.next()?, from.maybe_time()?);
        Ok((list, at, self.seen_of(from, cached)?))
    }
}

impl Reports for MySqlConnection {
    async fn records_of_jobs(
        &mut self,
        jobs: &[JobId],
        due: Option<Range<Timestamp>>,
        per_job: usize,
    ) -> StoreResult<Vec<RunRecord>> {
        self.select_records_of_jobs(jobs, due, per_job).await
    }

    async fn job_lists(
        &mut self,
        scope: &NamespaceScope,
        lists: &[JobListQuery],
        partitions: u16,
        cached: CachedDefinition<'_>,
    ) -> StoreResult<Vec<Bounded<ListedJob>>> {
        self.select_job_lists(scope, lists, partitions, cached).await
    }

    async fn overview(&mut self, query: &OverviewQuery) -> StoreResult<Overview> {
        self.select_overview(query).await
    }

    async fn days_of_job(&mut self, job: JobId, since: Timestamp) -> StoreResult<Vec<JobDay>> {
        self.select_days_of_job(job, since).await
    }

    async fn has_to_roll_up(&mut self, now: Timestamp) -> StoreResult<bool> {
        self.has_to_count(now).await
    }

    async fn roll_up(&mut self, limit: usize, now: Timestamp, namespaces: &JobNamespaces) -> StoreResult<RolledUp> {
        self.count_history(limit, now, namespaces).await
    }
}
