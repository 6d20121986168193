//! Statements that write.

use carillon_domain::time::Timestamp;

use super::super::port::{AlertWrite, DeliveryRow, FactRow, IncidentRow, RouteRow, WatchRow};
use super::rows::{DELIVERY, INCIDENT, ROUTE, WATCH};
use super::{Cell, Dialect, Statement, list, places};

/// So many rows are written by one statement.
const ROWS: usize = 100;

/// The statements of a write. Their counts add up to its answer.
pub(crate) fn statements(write: &AlertWrite, dialect: Dialect) -> Vec<Statement> {
    match write {
        AlertWrite::Cursor(document) => {
            vec![Statement::new("UPDATE alert_cursor SET document = ? WHERE id = 1", vec![document.as_str().into()])]
        }
        AlertWrite::Route(row) => vec![replace("alert_route", ROUTE, vec![route(row)])],
        AlertWrite::RouteGone(name) => {
            let name = || vec![Cell::from(name.as_str())];
            vec![
                Statement::new("DELETE FROM alert_route WHERE name = ?", name()),
                Statement::new("DELETE FROM alert_incident WHERE route = ?", name()),
                Statement::new("DELETE FROM alert_delivery WHERE route = ? AND state = 'waiting'", name()),
            ]
        }
        AlertWrite::Facts(rows) => rows.iter().map(|row| fact(row, dialect)).collect(),
        AlertWrite::FreeKey(key) => vec![Statement::new(
            "UPDATE alert_fact SET fact_key = NULL, is_open = 0 WHERE fact_key = ?",
            vec![key.as_str().into()],
        )],
        AlertWrite::Incidents(rows) => {
            let part = |rows: &[IncidentRow]| replace("alert_incident", INCIDENT, rows.iter().map(incident).collect());
            rows.chunks(ROWS).map(part).collect()
        }
        AlertWrite::IncidentsGone(ids) => {
            let part = |ids: &[String]| {
                let sql = format!("DELETE FROM alert_incident WHERE id IN ({})", places(ids.len()));
                Statement::new(sql, ids.iter().map(|id| Cell::from(id.as_str())).collect())
            };
            ids.chunks(ROWS).map(part).collect()
        }
        AlertWrite::IncidentsOfRouteGone(route) => {
            vec![Statement::new("DELETE FROM alert_incident WHERE route = ?", vec![route.as_str().into()])]
        }
        AlertWrite::IncidentsOfJobsGone(jobs) => {
            let ids = list(jobs.iter().map(|job| job.0));
            vec![Statement::new(format!("DELETE FROM alert_incident WHERE job_id IN ({ids})"), vec![])]
        }
        AlertWrite::LookAtRoute(route, at) => vec![Statement::new(
            "UPDATE alert_incident SET next_look = ? WHERE route = ?",
            vec![(*at).into(), route.as_str().into()],
        )],
        AlertWrite::LookAtJobs(jobs, at) => {
            let ids = list(jobs.iter().map(|job| job.0));
            let sql = format!("UPDATE alert_incident SET next_look = ? WHERE job_id IN ({ids})");
            vec![Statement::new(sql, vec![(*at).into()])]
        }
        AlertWrite::Deliveries(rows) => rows.chunks(ROWS).map(deliveries).collect(),
        AlertWrite::Delivery(row) => vec![delivery(row)],
        AlertWrite::Watch(rows) => rows.chunks(ROWS).map(|rows| arm(rows, dialect)).collect(),
        AlertWrite::Watched(before, after) => vec![watched(*before, *after)],
        AlertWrite::WatchGone(jobs) => {
            let ids = list(jobs.iter().map(|job| job.0));
            vec![Statement::new(format!("DELETE FROM alert_watch WHERE job_id IN ({ids})"), vec![])]
        }
        AlertWrite::PurgeDeliveries(before, limit) => {
            let old = Old { table: "alert_delivery", key: "id", which: "settled_at < ?", order: "settled_at" };
            vec![old.deletion(vec![(*before).into()], *limit, dialect)]
        }
        AlertWrite::PurgeFacts(before, judged, limit) => {
            let which = "is_open = 0 AND at < ? AND seq <= ?";
            let old = Old { table: "alert_fact", key: "seq", which, order: "at" };
            let judged = i64::try_from(*judged).unwrap_or(i64::MAX);
            vec![old.deletion(vec![(*before).into(), judged.into()], *limit, dialect)]
        }
    }
}

/// `REPLACE` is the same in all of them: no row has anything that the new one does not.
fn replace(table: &str, columns: &str, rows: Vec<Vec<Cell>>) -> Statement {
    insert("REPLACE", table, columns, rows)
}

fn insert(verb: &str, table: &str, columns: &str, rows: Vec<Vec<Cell>>) -> Statement {
    let row = format!("({})", places(columns.split(',').count()));
    let all = vec![row; rows.len()].join(", ");
    Statement::new(format!("{verb} INTO {table} ({columns}) VALUES {all}"), rows.into_iter().flatten().collect())
}

fn route(row: &RouteRow) -> Vec<Cell> {
    vec![
        row.name.as_str().into(),
        row.version.into(),
        row.created_at.into(),
        row.updated_at.into(),
        row.document.as_str().into(),
    ]
}

/// A key that is there is the same fact.
fn fact(row: &FactRow, dialect: Dialect) -> Statement {
    let verb = match dialect {
        Dialect::MySql => "INSERT IGNORE",
        Dialect::Sqlite => "INSERT OR IGNORE",
    };
    let cells =
        vec![row.key.as_deref().into(), i64::from(row.open).into(), row.at.into(), row.document.as_str().into()];
    insert(verb, "alert_fact", "fact_key, is_open, at, document", vec![cells])
}

fn incident(row: &IncidentRow) -> Vec<Cell> {
    vec![
        row.id.as_str().into(),
        row.route.as_str().into(),
        row.job.map(|job| job.0).into(),
        row.namespace.as_deref().into(),
        row.since.into(),
        row.next_look.into(),
        row.document.as_str().into(),
    ]
}

/// How a delivery stands: the columns that its attempts move.
fn standing(row: &DeliveryRow) -> [Cell; 8] {
    [
        row.state.as_str().into(),
        row.claim_at.into(),
        row.session.map(|session| session.as_u64()).into(),
        i64::from(row.tries).into(),
        i64::from(row.refusals).into(),
        row.first_try_at.into(),
        row.settled_at.into(),
        row.answer.as_deref().into(),
    ]
}

/// All columns but the number, which the database draws.
fn cells(row: &DeliveryRow) -> Vec<Cell> {
    let made: [Cell; 8] = [
        row.version.into(),
        row.message.as_str().into(),
        row.route.as_deref().into(),
        row.job.map(|job| job.0).into(),
        i64::from(row.place).into(),
        row.kind.as_str().into(),
        row.host.as_str().into(),
        row.made_at.into(),
    ];
    made.into_iter().chain(standing(row)).chain([row.document.as_str().into()]).collect()
}

fn deliveries(rows: &[DeliveryRow]) -> Statement {
    let columns = DELIVERY.trim_start_matches("id, ");
    insert("INSERT", "alert_delivery", columns, rows.iter().map(cells).collect())
}

fn delivery(row: &DeliveryRow) -> Statement {
    let sql = "UPDATE alert_delivery SET version = version + 1, state = ?, claim_at = ?, session = ?, tries = ?, \
               refusals = ?, first_try_at = ?, settled_at = ?, answer = ? WHERE id = ? AND version = ?";
    let params = standing(row).into_iter().chain([row.id.into(), row.version.into()]).collect();
    Statement::new(sql, params)
}

fn watch(row: &WatchRow) -> Vec<Cell> {
    vec![row.job.0.into(), row.starts.into(), row.ends.into(), row.look_at.into(), i64::from(row.pings).into()]
}

/// A job that nothing was expected of until now is judged from now on.
fn arm(rows: &[WatchRow], dialect: Dialect) -> Statement {
    let Statement { mut sql, params } = insert("INSERT", "alert_watch", WATCH, rows.iter().map(watch).collect());
    let (conflict, new): (&str, fn(&str) -> String) = match dialect {
        Dialect::MySql => (" ON DUPLICATE KEY UPDATE ", |column| format!("VALUES({column})")),
        Dialect::Sqlite => (" ON CONFLICT (job_id) DO UPDATE SET ", |column| format!("excluded.{column}")),
    };
    // The old look is asked for before it is replaced: one of them assigns from left to right.
    let from = |column: &str| {
        format!("{column} = CASE WHEN alert_watch.look_at IS NULL THEN {} ELSE alert_watch.{column} END", new(column))
    };
    let sets =
        [from("starts"), from("ends"), format!("look_at = {}", new("look_at")), format!("pings = {}", new("pings"))];
    sql.push_str(conflict);
    sql.push_str(&sets.join(", "));
    Statement { sql, params }
}

fn watched(before: WatchRow, after: WatchRow) -> Statement {
    let at = |at: Option<Timestamp>| at.map_or(i64::MIN, Timestamp::as_ms);
    Statement::new(
        "UPDATE alert_watch SET starts = ?, ends = ?, look_at = ? \
         WHERE job_id = ? AND starts = ? AND ends = ? AND COALESCE(look_at, ?) = ?",
        vec![
            after.starts.into(),
            after.ends.into(),
            after.look_at.into(),
            before.job.0.into(),
            before.starts.into(),
            before.ends.into(),
            i64::MIN.into(),
            at(before.look_at).into(),
        ],
    )
}

/// Old rows of a table, but for the newest: its number is not to be used again.
struct Old {
    table: &'static str,
    key: &'static str,
    which: &'static str,
    order: &'static str,
}

impl Old {
    /// One of the databases deletes with a limit, the other one by the keys of a subquery; neither does both well.
    fn deletion(&self, params: Vec<Cell>, limit: usize, dialect: Dialect) -> Statement {
        let Self { table, key, which, order } = self;
        let limit = limit.min(u32::MAX as usize);
        let newest = format!("(SELECT newest FROM (SELECT MAX({key}) AS newest FROM {table}) one)");
        let old = format!("FROM {table} WHERE {which} AND {key} < {newest} ORDER BY {order} LIMIT {limit}");
        let sql = match dialect {
            Dialect::MySql => format!("DELETE {old}"),
            Dialect::Sqlite => format!("DELETE FROM {table} WHERE {key} IN (SELECT {key} {old})"),
        };
        Statement::new(sql, params)
    }
}
