//! The watch step: both journals behind the cursor, judged and written in one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carillon_domain::alert::watch::{self, Loaded};
use carillon_domain::alert::{
    Fact, HeldCall, HeldCalls, Incident, IncidentKey, Route, SubjectKey, calls, wanted_calls,
};
use carillon_domain::id::JobId;
use carillon_domain::time::Timestamp;

use super::document::{Cursor, StoredFact, UNREADABLE_LATER, held_calls_from, incident_from};
use super::facts::LookedAt;
use super::port::{AlertRows, AlertWrite, DeliveryRow, FactRow, IncidentAsk, IncidentRow, Looks};
use super::routes::Routes;
use super::types::{Stepped, StoredRoute};
use super::{deliveries, facts, held_calls, incidents, routes};
use crate::StoreResult;
use crate::feed::JournalAsk;
use crate::tables::Tables;

/// How many incidents whose look is due one step looks at.
const LOOKS: usize = 500;

/// Whether a step has anything to do. While nobody is to be told anything this reads one row.
pub(crate) async fn has_work<T: Tables>(tables: &mut T) -> StoreResult<Result<(), Stepped>> {
    let now = tables.now();
    let Some(cursor) = Cursor::read(tables.alerts().cursor(false).await?.as_deref())? else {
        return Ok(Err(Stepped::default()));
    };
    let runs = tables.run_heads(&JournalAsk::newest()).await?.newest;
    let facts = tables.alerts().facts_numbered(&JournalAsk::newest()).await?.newest;
    let next_look = first(tables.alerts().first_look(Looks::Incidents).await?, &cursor);
    let is_new = runs != cursor.runs.high() || facts != cursor.facts.high();
    let waits = cursor.runs.gaps() > 0 || cursor.facts.gaps() > 0;
    if is_new || waits || next_look.is_some_and(|at| at <= now) {
        return Ok(Ok(()));
    }
    Ok(Err(Stepped { next_look, ..Stepped::default() }))
}

fn first(look: Option<Timestamp>, cursor: &Cursor) -> Option<Timestamp> {
    look.into_iter().chain(cursor.storms.values().map(carillon_domain::alert::Storm::ends_at)).min()
}

/// See [`super::AlertStore::alert_step`]. `within` is how long after a number was drawn its row may become visible.
pub(crate) async fn step<T: Tables>(tables: &mut T, limit: usize, within: Duration) -> StoreResult<Stepped> {
    let limit = limit.max(1);
    let Some(mut cursor) = routes::lock_cursor(tables).await? else { return Ok(Stepped::default()) };
    let now = tables.now();
    let Routes { stored, unreadable } = routes::read_all(tables).await?;
    let nobody = stored.is_empty() && unreadable.is_empty() && !tables.alerts().has_watched().await?;
    // A call that waits goes with its job's monitor: the step that sees that there is none drops it.
    if nobody && tables.alerts().first_look(Looks::Incidents).await?.is_none() {
        routes::write_all(tables, vec![AlertWrite::Cursor(Cursor::text(None))]).await?;
        return Ok(Stepped::default());
    }
    let known: Vec<Route> = stored.iter().map(|stored| stored.route.clone()).collect();

    let committed_at = Duration::from_millis(u64::try_from(cursor.stepped_at.as_ms()).unwrap_or(0));
    let heads = tables.run_heads(&cursor.runs.ask(limit)).await?;
    let heads_newest = heads.newest;
    cursor.runs.commits(committed_at);
    let heads = facts::fresh(&mut cursor.runs, heads, now, within);
    let rows = tables.alerts().facts_numbered(&cursor.facts.ask(limit)).await?;
    let facts_newest = rows.newest;
    cursor.facts.commits(committed_at);
    let rows = facts::fresh(&mut cursor.facts, rows, now, within);

    let numbers = facts::that_matter(tables, heads, &known).await?;
    // One that cannot be read is passed over: waiting for it would keep all that follow from being told.
    let read = |(_, row): (u64, FactRow)| StoredFact::read(&row.document).ok().map(|fact| (row.at, fact));
    let rows: Vec<(Timestamp, StoredFact)> = rows.into_iter().filter_map(read).collect();
    let due = load(tables, &IncidentAsk::Due(now, LOOKS), &unreadable).await?;
    let is_full = due.rows.len() + due.unusable.len() == LOOKS;
    let put_off = later(&due.unusable, now);
    let looked_at: Vec<LookedAt> = due.looked_at().collect();
    let found = facts::of_journals(tables, &numbers, rows, &looked_at).await?;

    let mut judged = Judged::default();
    judged.take(&stored, due);
    let with_gone = found.with_those_that_are_gone(now);
    let incidents = watch::wanted(&known, &found.facts).into_iter().filter(|key| !judged.loaded.contains_key(key));
    let wanted: Vec<String> = incidents.map(|key| incidents::id_of(&key)).collect();
    let calls = wanted_calls(&with_gone).into_iter().filter(|job| !judged.calls.contains_key(job));
    let wanted: Vec<String> = wanted.into_iter().chain(calls.map(held_calls::id_of)).collect();
    if !wanted.is_empty() {
        // One that cannot be read is replaced where a fact opens it anew.
        let wanted = load(tables, &IncidentAsk::Ids(wanted), &unreadable).await?;
        judged.take(&stored, wanted);
    }
    judged.call(&with_gone, now);
    let known_storm = |route: &String| unreadable.contains(route) || known.iter().any(|known| known.name == *route);
    cursor.storms.retain(|route, _| known_storm(route));
    judged.judge(&mut cursor, &stored, &found.facts, now);
    judged.forget(&found.gone);

    let more = cursor.runs.high() < heads_newest || cursor.facts.high() < facts_newest || is_full;
    let (notices, pings) = (judged.notices, judged.pings);
    cursor.stepped_at = now;
    let mut writes = judged.writes(found.gone.into_iter().collect());
    if !put_off.is_empty() {
        writes.insert(0, AlertWrite::Incidents(put_off));
    }
    writes.push(AlertWrite::Cursor(Cursor::text(Some(&cursor))));
    routes::write_all(tables, writes).await?;
    let next_look = first(tables.alerts().first_look(Looks::Incidents).await?, &cursor);
    Ok(Stepped { facts: found.facts.len(), notices, pings, more, next_look })
}

/// Incidents from the store.
#[derive(Default)]
struct FoundIncidents {
    rows: Vec<(IncidentRow, Incident)>,
    /// Calls of monitors that wait.
    calls: Vec<(IncidentRow, JobId, Vec<HeldCall>)>,
    /// Those that this binary cannot read, and those of routes that it cannot read.
    unusable: Vec<IncidentRow>,
}

impl FoundIncidents {
    fn looked_at(&self) -> impl Iterator<Item = LookedAt> {
        let incidents = self.rows.iter().filter_map(|(_, incident)| LookedAt::incident(incident));
        incidents.chain(self.calls.iter().map(|(_, job, calls)| LookedAt::calls(*job, calls)))
    }
}

async fn load<T: Tables>(
    tables: &mut T,
    ask: &IncidentAsk,
    unreadable: &BTreeSet<String>,
) -> StoreResult<FoundIncidents> {
    let mut found = FoundIncidents::default();
    for row in tables.alerts().incident_rows(ask).await? {
        if held_calls::is_one(&row) {
            match (row.job, held_calls_from(&row.document)) {
                (Some(job), Ok(calls)) => found.calls.push((row, job, calls)),
                _ => found.unusable.push(row),
            }
            continue;
        }
        match incident_from(&row.document) {
            Ok(incident) if !unreadable.contains(&row.route) => found.rows.push((row, incident)),
            _ => found.unusable.push(row),
        }
    }
    Ok(found)
}

/// The same rows with a later look, so that they do not take the places of others. They may be mended by then.
fn later(rows: &[IncidentRow], now: Timestamp) -> Vec<IncidentRow> {
    rows.iter().map(|row| IncidentRow { next_look: Some(now + UNREADABLE_LATER), ..row.clone() }).collect()
}

/// The incidents of a step, and what becomes of them.
#[derive(Default)]
struct Judged {
    loaded: BTreeMap<IncidentKey, (Option<Timestamp>, Incident)>,
    changed: BTreeMap<IncidentKey, Option<IncidentRow>>,
    /// Calls of monitors that wait, by job, and when they are to be looked at as stored.
    calls: BTreeMap<JobId, (Option<Timestamp>, Vec<HeldCall>)>,
    changed_calls: BTreeMap<JobId, Option<IncidentRow>>,
    deliveries: Vec<DeliveryRow>,
    notices: usize,
    pings: usize,
}

impl Judged {
    /// Takes in rows. Those of a route that is gone go too.
    fn take(&mut self, stored: &[StoredRoute], found: FoundIncidents) {
        self.calls.extend(found.calls.into_iter().map(|(row, job, calls)| (job, (row.next_look, calls))));
        for (row, incident) in found.rows {
            if stored.iter().any(|stored| stored.route.name == incident.key.route) {
                self.loaded.insert(incident.key.clone(), (row.next_look, incident));
            } else {
                self.changed.insert(incident.key.clone(), None);
            }
        }
    }

    /// Makes the calls of monitors, and keeps those that wait.
    fn call(&mut self, facts: &[Fact], now: Timestamp) {
        let before: HeldCalls = self.calls.iter().map(|(job, (_, held))| (*job, held.clone())).collect();
        let calls = calls(&before, facts, now);
        self.pings = calls.made.len();
        self.deliveries.extend(calls.made.into_iter().map(|call| deliveries::of_ping(call, now)));
        for (job, (look, held)) in &self.calls {
            let row = held_calls::row_of(*job, held);
            // One that stays as it is may have to be looked at later.
            if row.as_ref().is_some_and(|row| row.next_look != *look) {
                self.changed_calls.insert(*job, row);
            }
        }
        let changed = calls.held.into_iter().map(|(job, held)| (job, held_calls::row_of(job, &held)));
        self.changed_calls.extend(changed);
    }

    /// Judges facts for each route by itself, as none is told of what was before it.
    fn judge(&mut self, cursor: &mut Cursor, stored: &[StoredRoute], facts: &[Fact], now: Timestamp) {
        for StoredRoute { route, created_at, .. } in stored {
            let of_route = self.loaded.iter().filter(|(key, _)| key.route == route.name);
            let loaded: BTreeMap<IncidentKey, Incident> =
                of_route.map(|(key, (_, incident))| (key.clone(), incident.clone())).collect();
            let storms: BTreeMap<_, _> = cursor.storms.remove_entry(&route.name).into_iter().collect();
            let since: Vec<Fact> = facts.iter().filter(|fact| fact.at >= *created_at).cloned().collect();
            let mut writes = watch::step(
                std::slice::from_ref(route),
                Loaded { incidents: loaded.clone(), storms: storms.clone() },
                &since,
                now,
            );
            let storm = writes.storms.remove(&route.name).unwrap_or_else(|| storms.get(&route.name).cloned());
            cursor.storms.extend(storm.map(|storm| (route.name.clone(), storm)));
            for (key, incident) in loaded {
                // One that stays as it is may have to be looked at later.
                writes.incidents.entry(key).or_insert(Some(incident));
            }
            for (key, incident) in writes.incidents {
                self.note(route, key, incident);
            }
            self.notices += writes.notices.len();
            let rows = writes.notices.into_iter().flat_map(|notice| deliveries::of_notice(notice, route, now));
            self.deliveries.extend(rows);
        }
    }

    fn note(&mut self, route: &Route, key: IncidentKey, after: Option<Incident>) {
        let before = self.loaded.get(&key);
        let row = after.as_ref().map(|incident| incidents::row_of(incident, route));
        let is_same = match (before, &after, &row) {
            (Some((look, before)), Some(after), Some(row)) => before == after && *look == row.next_look,
            (None, None, _) => true,
            _ => false,
        };
        if !is_same {
            self.changed.insert(key, row);
        }
    }

    /// Nothing new is written of jobs that are gone.
    fn forget(&mut self, gone: &BTreeSet<JobId>) {
        self.changed.retain(|key, _| !matches!(key.subject, SubjectKey::Job(job) if gone.contains(&job)));
    }

    fn writes(self, gone: Vec<JobId>) -> Vec<AlertWrite> {
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        let of_routes = self.changed.into_iter().map(|(key, row)| (incidents::id_of(&key), row));
        let of_monitors = self.changed_calls.into_iter().map(|(job, row)| (held_calls::id_of(job), row));
        for (id, row) in of_routes.chain(of_monitors) {
            match row {
                Some(row) => rows.push(row),
                None => ids.push(id),
            }
        }
        let mut writes = Vec::new();
        if !rows.is_empty() {
            writes.push(AlertWrite::Incidents(rows));
        }
        if !ids.is_empty() {
            writes.push(AlertWrite::IncidentsGone(ids));
        }
        if !gone.is_empty() {
            writes.push(AlertWrite::IncidentsOfJobsGone(gone));
        }
        if !self.deliveries.is_empty() {
            writes.push(AlertWrite::Deliveries(self.deliveries));
        }
        writes
    }
}
