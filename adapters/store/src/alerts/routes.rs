//! Routes: what people change, and what a change does to incidents and the cursor.

use std::collections::BTreeSet;

use carillon_domain::alert::Route;
use carillon_domain::guard::{Guard, enabled};
use carillon_domain::store::{Action, AuditDocument, AuditEntry, WriteSet};
use carillon_domain::time::Timestamp;

use super::document::{Cursor, problem_of, route_from, route_redacted, route_text};
use super::port::{AlertRows, AlertWrite, RouteRow};
use super::types::{AlertError, StoredRoute};
use crate::feed::JournalAsk;
use crate::tables::Tables;
use crate::{Author, StoreResult};

/// The stored routes.
#[derive(Debug, Default)]
pub(super) struct Routes {
    /// By name.
    pub stored: Vec<StoredRoute>,
    /// The names of those that this binary cannot read. What belongs to them waits.
    pub unreadable: BTreeSet<String>,
}

/// Every route.
pub(super) async fn read_all<T: Tables>(tables: &mut T) -> StoreResult<Routes> {
    let mut routes = Routes::default();
    for row in tables.alerts().route_rows().await? {
        let name = row.name.clone();
        match read(row) {
            Ok(stored) => routes.stored.push(stored),
            Err(_) => _ = routes.unreadable.insert(name),
        }
    }
    Ok(routes)
}

/// See [`super::AlertStore::routes`].
pub(crate) async fn all<T: Tables>(tables: &mut T) -> StoreResult<Vec<StoredRoute>> {
    Ok(read_all(tables).await?.stored)
}

/// The one of that name.
pub(crate) async fn find<T: Tables>(tables: &mut T, name: &str) -> Result<StoredRoute, AlertError> {
    let rows = tables.alerts().route_rows().await?;
    let row = rows.into_iter().find(|row| row.name == name).ok_or_else(|| AlertError::NoRoute(name.to_owned()))?;
    let version = row.version;
    read(row).map_err(|error| AlertError::Unreadable { name: name.to_owned(), version, problem: problem_of(error) })
}

/// See [`super::AlertStore::put_route`]. The cursor is locked first, so a step sees the route with all that follows from it.
pub(crate) async fn put<T: Tables>(
    tables: &mut T,
    route: &Route,
    if_version: Option<u64>,
    author: &Author,
) -> Result<StoredRoute, AlertError> {
    let cursor = lock_cursor(tables).await?;
    let (before, version) = known(find(tables, &route.name).await)?;
    check_version(if_version, version)?;
    if let Some(before) = before.as_ref().filter(|before| before.route == *route) {
        return Ok(before.clone());
    }
    let now = tables.now();
    let after = StoredRoute {
        route: route.clone(),
        version: version + 1,
        created_at: before.as_ref().map_or(now, |before| before.created_at),
        updated_at: now,
    };
    let mut cursor = awake(tables, cursor).await?;
    let row = RouteRow {
        name: route.name.clone(),
        version: after.version,
        created_at: after.created_at,
        updated_at: now,
        document: route_text(route),
    };
    let mut writes = vec![AlertWrite::Route(row)];
    if before.as_ref().is_some_and(|before| !before.route.forgets(route)) {
        writes.push(AlertWrite::LookAtRoute(route.name.clone(), now));
    } else if version > 0 {
        cursor.storms.remove(&route.name);
        writes.push(AlertWrite::IncidentsOfRouteGone(route.name.clone()));
    }
    writes.push(AlertWrite::Cursor(Cursor::text(Some(&cursor))));
    write_all(tables, writes).await?;
    audit(tables, Action::AlertPut, author, before.map(|before| before.route), Some(route.clone())).await?;
    Ok(after)
}

/// See [`super::AlertStore::delete_route`].
pub(crate) async fn delete<T: Tables>(
    tables: &mut T,
    name: &str,
    if_version: Option<u64>,
    author: &Author,
) -> Result<(), AlertError> {
    let cursor = lock_cursor(tables).await?;
    let (before, version) = known(find(tables, name).await)?;
    if version == 0 {
        return Err(AlertError::NoRoute(name.to_owned()));
    }
    check_version(if_version, version)?;
    let mut writes = vec![AlertWrite::RouteGone(name.to_owned())];
    if let Some(mut cursor) = cursor
        && cursor.storms.remove(name).is_some()
    {
        writes.push(AlertWrite::Cursor(Cursor::text(Some(&cursor))));
    }
    write_all(tables, writes).await?;
    Ok(audit(tables, Action::AlertDeleted, author, before.map(|before| before.route), None).await?)
}

/// Locks the cursor: until the commit, nobody else reads and writes what depends on it.
pub(crate) async fn lock_cursor<T: Tables>(tables: &mut T) -> StoreResult<Option<Cursor>> {
    let lock = enabled(Guard::AlertCursorLocks);
    Cursor::read(tables.alerts_to_write().cursor(lock).await?.as_deref())
}

/// The cursor, set behind all that is visible now if nobody was told anything until now.
pub(crate) async fn awake<T: Tables>(tables: &mut T, cursor: Option<Cursor>) -> StoreResult<Cursor> {
    if let Some(cursor) = cursor {
        return Ok(cursor);
    }
    let runs = tables.run_heads(&JournalAsk::newest()).await?.newest;
    let facts = tables.alerts().facts_numbered(&JournalAsk::newest()).await?.newest;
    Ok(Cursor::after(runs, facts, tables.now()))
}

/// Writes in their order.
pub(crate) async fn write_all<T: Tables>(tables: &mut T, writes: Vec<AlertWrite>) -> StoreResult<()> {
    for write in &writes {
        tables.alerts_to_write().write_alert(write).await?;
    }
    Ok(())
}

/// A row as a route.
pub(super) fn read(row: RouteRow) -> StoreResult<StoredRoute> {
    let RouteRow { name, version, created_at, updated_at, document } = row;
    Ok(StoredRoute { route: route_from(&name, &document)?, version, created_at, updated_at })
}

/// A route and its version; 0 if there is none. One that cannot be read has a version, so that a person can replace it.
fn known(found: Result<StoredRoute, AlertError>) -> Result<(Option<StoredRoute>, u64), AlertError> {
    match found {
        Ok(found) => {
            let version = found.version;
            Ok((Some(found), version))
        }
        Err(AlertError::Unreadable { version, .. }) => Ok((None, version)),
        Err(AlertError::NoRoute(_)) => Ok((None, 0)),
        Err(error) => Err(error),
    }
}

fn check_version(expected: Option<u64>, current: u64) -> Result<(), AlertError> {
    match expected.filter(|expected| *expected != current) {
        Some(expected) => Err(AlertError::Stale { expected, current }),
        None => Ok(()),
    }
}

async fn audit<T: Tables>(
    tables: &mut T,
    action: Action,
    author: &Author,
    before: Option<Route>,
    after: Option<Route>,
) -> StoreResult<()> {
    let document = |route: Option<Route>| route.map(|route| AuditDocument::Route(route_redacted(&route).into()));
    note(tables, action, author, document(before), document(after)).await
}

/// An entry of the audit log, in the commit of what it tells.
pub(super) async fn note<T: Tables>(
    tables: &mut T,
    action: Action,
    author: &Author,
    before: Option<AuditDocument>,
    after: Option<AuditDocument>,
) -> StoreResult<()> {
    let at: Timestamp = tables.now();
    let (author, job, generation, run) = (author.clone(), None, None, None);
    let entry = AuditEntry { at, author, action, job, generation, run, before, after };
    tables.write(WriteSet { audit: vec![entry], ..WriteSet::default() }).await
}
