//! Statements that read.

use carillon_domain::alert::DeliveryState;
use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use super::super::port::{Among, DeliveryAsk, IncidentAsk, Looks};
use super::super::types::DeliveryCounts;
use super::rows::{DELIVERY, FACT, INCIDENT, WATCH};
use super::{Cell, Statement, list, places};
use crate::feed::{JournalAsk, Span};

/// The document of the cursor.
pub(crate) const CURSOR: &str = "SELECT document FROM alert_cursor WHERE id = 1";
/// Written, so that it also conflicts on servers where a locking read blocks nobody.
pub(crate) const LOCK_CURSOR: &str = "UPDATE alert_cursor SET epoch = epoch + 1 WHERE id = 1";
/// Whether any job is watched, as a number.
pub(crate) const HAS_WATCHED: &str = "SELECT COUNT(*) FROM (SELECT job_id FROM alert_watch LIMIT 1) one";
/// The highest number of a fact.
pub(crate) const NEWEST_FACT: &str = "SELECT COALESCE(MAX(seq), 0) FROM alert_fact";
/// The highest number of a delivery.
pub(crate) const NEWEST_NOTICE: &str = "SELECT COALESCE(MAX(id), 0) FROM alert_delivery";
/// Every route.
pub(crate) const ROUTES: &str = "SELECT name, version, created_at, updated_at, document FROM alert_route ORDER BY name";

/// So many gaps are asked for in one statement.
const SPANS: usize = 500;

fn at_most(limit: usize) -> u64 {
    u64::try_from(limit).unwrap_or(u64::MAX).min(u64::from(u32::MAX))
}

/// The statements that answer a question to a journal; `rest` is a further condition.
fn journal(columns: &str, from: &str, number: &str, rest: &str, ask: &JournalAsk) -> Vec<Statement> {
    let within = |span: &Span| format!("{number} BETWEEN {} AND {}", span.first, span.last);
    let gaps = ask.gaps.chunks(SPANS).map(|spans| {
        let condition = spans.iter().map(within).collect::<Vec<_>>().join(" OR ");
        Statement::new(format!("SELECT {columns} FROM {from} WHERE ({condition}){rest} ORDER BY {number}"), vec![])
    });
    let above = (ask.limit > 0).then(|| {
        let (after, limit) = (ask.after.min(i64::MAX as u64), at_most(ask.limit));
        let sql =
            format!("SELECT {columns} FROM {from} WHERE {number} > {after}{rest} ORDER BY {number} LIMIT {limit}");
        Statement::new(sql, vec![])
    });
    gaps.chain(above).collect()
}

pub(crate) fn facts(ask: &JournalAsk) -> Vec<Statement> {
    journal(FACT, "alert_fact", "seq", "", ask)
}

pub(crate) fn notices(ask: &JournalAsk) -> Vec<Statement> {
    // Not the one of a receiver who was refused among others.
    let first = " AND place = 0 AND route IS NOT NULL AND (kind <> 'mail' OR host = 'mail')";
    journal(DELIVERY, "alert_delivery", "id", first, ask)
}

/// So many incidents are asked for in one statement.
const IDS: usize = 1_000;

pub(crate) fn incidents(ask: &IncidentAsk) -> Vec<Statement> {
    match ask {
        IncidentAsk::Ids(ids) => {
            let part = |ids: &[String]| {
                let sql = format!("SELECT {INCIDENT} FROM alert_incident WHERE id IN ({})", places(ids.len()));
                Statement::new(sql, ids.iter().map(|id| Cell::from(id.as_str())).collect())
            };
            ids.chunks(IDS).map(part).collect()
        }
        IncidentAsk::Due(until, limit) => {
            let limit = at_most(*limit);
            let sql = format!(
                "SELECT {INCIDENT} FROM alert_incident WHERE next_look <= ? ORDER BY next_look, id LIMIT {limit}"
            );
            vec![Statement::new(sql, vec![(*until).into()])]
        }
        IncidentAsk::Page(query) => {
            let (mut conditions, mut params) = (String::new(), Vec::new());
            if let Some(route) = &query.route {
                conditions.push_str(" AND route = ?");
                params.push(Cell::from(route.as_str()));
            }
            match query.namespaces.as_deref() {
                None => {}
                Some([]) => return Vec::new(),
                Some(names) => {
                    conditions.push_str(&format!(" AND namespace IN ({})", places(names.len())));
                    params.extend(names.iter().map(|name| Cell::from(name.as_str())));
                }
            }
            let limit = at_most(query.limit);
            let sql = format!(
                "SELECT {INCIDENT} FROM alert_incident WHERE TRUE{conditions} ORDER BY since, id LIMIT {limit}"
            );
            vec![Statement::new(sql, params)]
        }
    }
}

pub(crate) fn among(jobs: &[JobId], which: Among) -> Statement {
    let ids = list(jobs.iter().map(|job| job.0));
    let sql = match which {
        Among::Troubled => format!("SELECT DISTINCT job_id FROM alert_incident WHERE job_id IN ({ids})"),
        Among::Monitored => format!("SELECT job_id FROM alert_watch WHERE job_id IN ({ids}) AND pings = 1"),
    };
    Statement::new(sql, vec![])
}

pub(crate) const fn first_look(looks: Looks) -> &'static str {
    match looks {
        Looks::Incidents => "SELECT MIN(next_look) FROM alert_incident",
        Looks::Expectations => "SELECT MIN(look_at) FROM alert_watch",
    }
}

pub(crate) fn watched_due(until: Timestamp, limit: usize) -> Statement {
    let limit = at_most(limit);
    let sql = format!("SELECT {WATCH} FROM alert_watch WHERE look_at <= ? ORDER BY look_at, job_id LIMIT {limit}");
    Statement::new(sql, vec![until.into()])
}

pub(crate) fn deliveries(ask: &DeliveryAsk) -> Statement {
    let (rest, params): (String, Vec<Cell>) = match ask {
        DeliveryAsk::Id(id) => ("id = ?".into(), vec![(*id).into()]),
        DeliveryAsk::Due(until, limit) => {
            (format!("claim_at <= ? ORDER BY claim_at, id LIMIT {}", at_most(*limit)), vec![(*until).into()])
        }
        DeliveryAsk::Message(id) => ("message = ? ORDER BY place".into(), vec![id.as_str().into()]),
        DeliveryAsk::LastPing(job) => ("job_id = ? ORDER BY id DESC LIMIT 1".into(), vec![job.0.into()]),
        DeliveryAsk::Page(query) => {
            let (mut rest, mut params) = ("TRUE".to_owned(), Vec::new());
            let mut add = |condition: &str, param: Option<Cell>| {
                if let Some(param) = param {
                    rest.push_str(condition);
                    params.push(param);
                }
            };
            add(" AND route = ?", query.route.as_deref().map(Cell::from));
            add(" AND state = ?", query.state.map(Cell::from));
            add(" AND id < ?", query.after.map(Cell::from));
            (format!("{rest} ORDER BY id DESC LIMIT {}", at_most(query.limit)), params)
        }
    };
    Statement::new(format!("SELECT {DELIVERY} FROM alert_delivery WHERE {rest}"), params)
}

/// The number of deliveries in each state, from its own part of the index. `GROUP BY` would read all of it.
pub(crate) fn counts() -> Statement {
    let most = DeliveryCounts::MOST;
    let of = |state: &str| {
        format!(
            "SELECT '{state}', COUNT(*) FROM (SELECT 1 FROM alert_delivery WHERE state = '{state}' LIMIT {most}) {state}_ones"
        )
    };
    Statement::new(DeliveryState::NAMES.map(of).join(" UNION ALL "), vec![])
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROUTE;
    use super::*;

    #[test]
    fn the_columns_of_a_route_are_those_that_are_read() {
        assert_eq!(ROUTES, format!("SELECT {ROUTE} FROM alert_route ORDER BY name"));
    }

    #[test]
    fn a_question_to_a_journal_is_as_few_statements_as_it_may_be() {
        let gaps: Vec<Span> = (1..=SPANS as u64 + 1).map(|n| Span { first: n * 2, last: n * 2 }).collect();
        assert_eq!(facts(&JournalAsk { after: 7, limit: 9, gaps }).len(), 3);
        assert!(facts(&JournalAsk::newest()).is_empty());
    }
}
