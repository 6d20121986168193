//! Routes, facts, incidents and deliveries as maps. Nothing here is fast; it says what the databases must answer.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, ready};
use std::ops::RangeInclusive;

use carillon_domain::id::{JobId, RunId};
use carillon_domain::time::Timestamp;
use carillon_store::StoreResult;
use carillon_store::alerts::DeliveryCounts;
use carillon_store::alerts::port::{
    AlertRows, AlertWrite, Among, DeliveryAsk, DeliveryRow, FactRow, IncidentAsk, IncidentRow, Looks, RouteRow,
    RunHead, WatchRow,
};
use carillon_store::feed::{JournalAsk, Numbered};

use super::data::Data;

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Alerts {
    cursor: Option<String>,
    routes: BTreeMap<String, RouteRow>,
    facts: BTreeMap<u64, FactRow>,
    last_fact: u64,
    incidents: BTreeMap<String, IncidentRow>,
    deliveries: BTreeMap<u64, DeliveryRow>,
    last_delivery: u64,
    watches: BTreeMap<JobId, WatchRow>,
}

/// The rows of a journal that are asked for.
fn numbered<R: Clone>(rows: &BTreeMap<u64, R>, ask: &JournalAsk, wanted: impl Fn(&R) -> bool) -> Numbered<R> {
    let newest = rows.last_key_value().map_or(0, |(number, _)| *number);
    let gaps = ask.gaps.iter().flat_map(|span| rows.range(span.first..=span.last)).filter(|(_, row)| wanted(row));
    let above = rows.iter().filter(|(number, row)| **number > ask.after && wanted(row)).take(ask.limit);
    Numbered { newest, rows: gaps.chain(above).map(|(number, row)| (*number, row.clone())).collect() }
}

impl Alerts {
    pub fn cursor(&self) -> Option<String> {
        self.cursor.clone()
    }

    pub fn route_rows(&self) -> Vec<RouteRow> {
        self.routes.values().cloned().collect()
    }

    pub fn has_watched(&self) -> bool {
        !self.watches.is_empty()
    }

    pub fn facts_numbered(&self, ask: &JournalAsk) -> Numbered<FactRow> {
        numbered(&self.facts, ask, |_| true)
    }

    pub fn incident_rows(&self, ask: &IncidentAsk) -> Vec<IncidentRow> {
        let all = self.incidents.values();
        match ask {
            IncidentAsk::Ids(ids) => all.filter(|row| ids.contains(&row.id)).cloned().collect(),
            IncidentAsk::Due(until, limit) => {
                let mut due: Vec<_> = all.filter(|row| row.next_look.is_some_and(|at| at <= *until)).cloned().collect();
                due.sort_by_key(|row| (row.next_look, row.id.clone()));
                due.truncate(*limit);
                due
            }
            IncidentAsk::Page(query) => {
                let of_route = |row: &&IncidentRow| query.route.as_ref().is_none_or(|route| *route == row.route);
                let seen = |row: &&IncidentRow| {
                    let of = |names: &Vec<String>| row.namespace.as_ref().is_some_and(|name| names.contains(name));
                    query.namespaces.as_ref().is_none_or(of)
                };
                let mut found: Vec<_> = all.filter(of_route).filter(seen).cloned().collect();
                found.sort_by_key(|row| (row.since, row.id.clone()));
                found.truncate(query.limit);
                found
            }
        }
    }

    pub fn among(&self, jobs: &[JobId], which: Among) -> Vec<JobId> {
        let troubled: BTreeSet<JobId> = self.incidents.values().filter_map(|row| row.job).collect();
        let is = |job: &&JobId| match which {
            Among::Troubled => troubled.contains(job),
            Among::Monitored => self.watches.get(job).is_some_and(|row| row.pings),
        };
        jobs.iter().filter(is).copied().collect()
    }

    pub fn first_look(&self, looks: Looks) -> Option<Timestamp> {
        match looks {
            Looks::Incidents => self.incidents.values().filter_map(|row| row.next_look).min(),
            Looks::Expectations => self.watches.values().filter_map(|row| row.look_at).min(),
        }
    }

    /// Every time at which something is due.
    pub fn looks(&self) -> impl Iterator<Item = Timestamp> {
        let incidents = self.incidents.values().filter_map(|row| row.next_look);
        let watches = self.watches.values().filter_map(|row| row.look_at);
        incidents.chain(watches).chain(self.deliveries.values().filter_map(|row| row.claim_at))
    }

    pub fn watched_due(&self, until: Timestamp, limit: usize) -> Vec<WatchRow> {
        let due = self.watches.values().filter(|row| row.look_at.is_some_and(|at| at <= until));
        let mut due: Vec<WatchRow> = due.copied().collect();
        due.sort_by_key(|row| (row.look_at, row.job));
        due.truncate(limit);
        due
    }

    pub fn delivery_rows(&self, ask: &DeliveryAsk) -> Vec<DeliveryRow> {
        let all = self.deliveries.values();
        match ask {
            DeliveryAsk::Id(id) => self.deliveries.get(id).cloned().into_iter().collect(),
            DeliveryAsk::Due(until, limit) => {
                let mut due: Vec<_> = all.filter(|row| row.claim_at.is_some_and(|at| at <= *until)).cloned().collect();
                due.sort_by_key(|row| (row.claim_at, row.id));
                due.truncate(*limit);
                due
            }
            DeliveryAsk::Message(id) => {
                let mut found: Vec<_> = all.filter(|row| row.message == *id).cloned().collect();
                found.sort_by_key(|row| row.place);
                found
            }
            DeliveryAsk::LastPing(job) => all.rev().filter(|row| row.job == Some(*job)).take(1).cloned().collect(),
            DeliveryAsk::Page(query) => {
                let wanted = |row: &&DeliveryRow| {
                    query.route.as_ref().is_none_or(|route| row.route.as_ref() == Some(route))
                        && query.state.is_none_or(|state| row.state == state)
                        && query.after.is_none_or(|after| row.id < after)
                };
                all.rev().filter(wanted).take(query.limit).cloned().collect()
            }
        }
    }

    pub fn notices_numbered(&self, ask: &JournalAsk) -> Numbered<DeliveryRow> {
        numbered(&self.deliveries, ask, |row| row.place == 0 && row.route.is_some() && row.receiver().is_none())
    }

    pub fn delivery_counts(&self) -> DeliveryCounts {
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        for row in self.deliveries.values() {
            let count = counted.entry(row.state.clone()).or_default();
            *count = DeliveryCounts::MOST.min(*count + 1);
        }
        DeliveryCounts::of(counted)
    }

    /// Draws the numbers of the rows that a write inserts. They are not given back, neither with a rollback nor for a fact that is known.
    pub fn draw(&mut self, write: &AlertWrite) -> RangeInclusive<u64> {
        let mut of_others = 0;
        let (last, rows) = match write {
            AlertWrite::Facts(rows) => (&mut self.last_fact, rows.len()),
            AlertWrite::Deliveries(rows) => (&mut self.last_delivery, rows.len()),
            _ => (&mut of_others, 0),
        };
        let first = *last + 1;
        *last += rows as u64;
        first..=*last
    }

    /// Writes; answers how many rows matched.
    pub fn apply(&mut self, write: &AlertWrite) -> u64 {
        let drawn = self.draw(write);
        self.apply_drawn(write, drawn)
    }

    /// Writes under numbers that were drawn before; answers how many rows matched.
    pub fn apply_drawn(&mut self, write: &AlertWrite, drawn: RangeInclusive<u64>) -> u64 {
        let before = (self.incidents.len() + self.deliveries.len() + self.facts.len()) as u64;
        match write {
            AlertWrite::Cursor(document) => self.cursor = Some(document.clone()),
            AlertWrite::Route(row) => _ = self.routes.insert(row.name.clone(), row.clone()),
            AlertWrite::RouteGone(name) => {
                self.routes.remove(name);
                self.incidents.retain(|_, row| row.route != *name);
                self.deliveries.retain(|_, row| row.route.as_ref() != Some(name) || row.state != "waiting");
            }
            AlertWrite::Facts(rows) => rows.iter().zip(drawn).for_each(|(row, number)| self.add_fact(number, row)),
            AlertWrite::FreeKey(key) => {
                let found = self.facts.values_mut().find(|row| row.key.as_ref() == Some(key));
                return u64::from(found.map(|row| (row.key, row.open) = (None, false)).is_some());
            }
            AlertWrite::Incidents(rows) => {
                self.incidents.extend(rows.iter().map(|row| (row.id.clone(), row.clone())));
            }
            AlertWrite::IncidentsGone(ids) => self.incidents.retain(|id, _| !ids.contains(id)),
            AlertWrite::IncidentsOfRouteGone(route) => self.incidents.retain(|_, row| row.route != *route),
            AlertWrite::IncidentsOfJobsGone(jobs) => {
                self.incidents.retain(|_, row| row.job.is_none_or(|job| !jobs.contains(&job)));
            }
            AlertWrite::LookAtRoute(route, at) => {
                let of_route = self.incidents.values_mut().filter(|row| row.route == *route);
                of_route.for_each(|row| row.next_look = Some(*at));
            }
            AlertWrite::LookAtJobs(jobs, at) => {
                let of_jobs = self.incidents.values_mut().filter(|row| row.job.is_some_and(|job| jobs.contains(&job)));
                of_jobs.for_each(|row| row.next_look = Some(*at));
            }
            AlertWrite::Deliveries(rows) => {
                self.deliveries.extend(rows.iter().zip(drawn).map(|(row, id)| (id, DeliveryRow { id, ..row.clone() })));
            }
            AlertWrite::Delivery(row) => return u64::from(self.change_delivery(row)),
            AlertWrite::Watch(rows) => rows.iter().for_each(|row| self.watch(*row)),
            AlertWrite::Watched(before, after) => {
                let found = self.watches.get_mut(&before.job).filter(|row| **row == *before);
                return u64::from(found.map(|row| *row = *after).is_some());
            }
            AlertWrite::WatchGone(jobs) => self.watches.retain(|job, _| !jobs.contains(job)),
            AlertWrite::PurgeDeliveries(before, limit) => {
                let newest = self.deliveries.last_key_value().map_or(0, |(id, _)| *id);
                let old =
                    |(id, row): &(&u64, &DeliveryRow)| **id < newest && row.settled_at.is_some_and(|at| at < *before);
                let old: Vec<u64> = self.deliveries.iter().filter(old).take(*limit).map(|(id, _)| *id).collect();
                old.iter().for_each(|id| _ = self.deliveries.remove(id));
            }
            AlertWrite::PurgeFacts(before, judged, limit) => {
                let newest = self.facts.last_key_value().map_or(0, |(number, _)| *number);
                let old = |(number, row): &(&u64, &FactRow)| {
                    **number < newest && **number <= *judged && !row.open && row.at < *before
                };
                let old: Vec<u64> = self.facts.iter().filter(old).take(*limit).map(|(number, _)| *number).collect();
                old.iter().for_each(|number| _ = self.facts.remove(number));
            }
        }
        let after = (self.incidents.len() + self.deliveries.len() + self.facts.len()) as u64;
        before.abs_diff(after)
    }

    fn add_fact(&mut self, number: u64, row: &FactRow) {
        if row.key.is_none() || self.facts.values().all(|known| known.key != row.key) {
            self.facts.insert(number, row.clone());
        }
    }

    /// How many rows a write would match. The two that come with every look and every answer are answered without a copy.
    pub fn would_match(&self, write: &AlertWrite, drawn: RangeInclusive<u64>) -> u64 {
        match write {
            AlertWrite::Delivery(row) => {
                u64::from(self.deliveries.get(&row.id).is_some_and(|known| known.version == row.version))
            }
            AlertWrite::Watched(before, _) => u64::from(self.watches.get(&before.job) == Some(before)),
            _ => self.clone().apply_drawn(write, drawn),
        }
    }

    fn change_delivery(&mut self, row: &DeliveryRow) -> bool {
        let found = self.deliveries.get_mut(&row.id).filter(|known| known.version == row.version);
        found.map(|known| *known = DeliveryRow { version: row.version + 1, ..row.clone() }).is_some()
    }

    fn watch(&mut self, new: WatchRow) {
        let row = self.watches.entry(new.job).or_insert(new);
        if row.look_at.is_none() {
            (row.starts, row.ends) = (new.starts, new.ends);
        }
        (row.look_at, row.pings) = (new.look_at, new.pings);
    }
}

impl Data {
    /// History by its numbers, as far as a step needs it at first.
    pub fn run_heads(&self, ask: &JournalAsk) -> Numbered<RunHead> {
        self.runs_numbered(ask).map(|row| RunHead {
            run: row.record.id,
            job: row.record.job,
            status: row.record.status,
        })
    }

    /// Those of these runs that have a record.
    pub fn recorded_runs(&self, runs: &[RunId]) -> Vec<RunId> {
        let recorded = |run: &RunId| self.records.values().any(|(record, _)| record.id == *run);
        runs.iter().filter(|run| recorded(run)).copied().collect()
    }

    /// Those of these runs that have output.
    pub fn runs_with_output(&self, runs: &[RunId]) -> Vec<RunId> {
        runs.iter().filter(|run| self.outputs.contains_key(run)).copied().collect()
    }
}

fn done<T: Send>(value: T) -> impl Future<Output = StoreResult<T>> + Send {
    ready(Ok(value))
}

impl AlertRows for Alerts {
    fn cursor(&mut self, _lock: bool) -> impl Future<Output = StoreResult<Option<String>>> + Send {
        done(Alerts::cursor(self))
    }

    fn route_rows(&mut self) -> impl Future<Output = StoreResult<Vec<RouteRow>>> + Send {
        done(Alerts::route_rows(self))
    }

    fn has_watched(&mut self) -> impl Future<Output = StoreResult<bool>> + Send {
        done(Alerts::has_watched(self))
    }

    fn facts_numbered(&mut self, ask: &JournalAsk) -> impl Future<Output = StoreResult<Numbered<FactRow>>> + Send {
        done(Alerts::facts_numbered(self, ask))
    }

    fn incident_rows(&mut self, ask: &IncidentAsk) -> impl Future<Output = StoreResult<Vec<IncidentRow>>> + Send {
        done(Alerts::incident_rows(self, ask))
    }

    fn among(&mut self, jobs: &[JobId], which: Among) -> impl Future<Output = StoreResult<Vec<JobId>>> + Send {
        done(Alerts::among(self, jobs, which))
    }

    fn first_look(&mut self, looks: Looks) -> impl Future<Output = StoreResult<Option<Timestamp>>> + Send {
        done(Alerts::first_look(self, looks))
    }

    fn watched_due(
        &mut self,
        until: Timestamp,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<WatchRow>>> + Send {
        done(Alerts::watched_due(self, until, limit))
    }

    fn delivery_rows(&mut self, ask: &DeliveryAsk) -> impl Future<Output = StoreResult<Vec<DeliveryRow>>> + Send {
        done(Alerts::delivery_rows(self, ask))
    }

    fn notices_numbered(
        &mut self,
        ask: &JournalAsk,
    ) -> impl Future<Output = StoreResult<Numbered<DeliveryRow>>> + Send {
        done(Alerts::notices_numbered(self, ask))
    }

    fn delivery_counts(&mut self) -> impl Future<Output = StoreResult<DeliveryCounts>> + Send {
        done(Alerts::delivery_counts(self))
    }

    fn write_alert(&mut self, write: &AlertWrite) -> impl Future<Output = StoreResult<u64>> + Send {
        done(self.apply(write))
    }
}
