//! Who is told of what, when and how often; and how soon a due time should have run.

mod clock_changes;
mod deliveries;
mod expecting;
mod incidents;
mod monitors;
mod properties;
mod routes;
mod sentences;
mod storms;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use carillon_domain::alert::watch::{self, Loaded, WriteSet};
use carillon_domain::alert::{
    Ended, Fact, Incident, IncidentKey, JobSubject, Notice, Part, Route, Selection, Storm, Subject, Target, What, When,
};
use carillon_domain::id::{JobId, RunId, SessionId};
use carillon_domain::run::{DueRange, Reason, RunRecord, Status, Trigger};
use carillon_domain::time::Timestamp;

/// A time of 24 November 2026, UTC.
fn at(clock: &str) -> Timestamp {
    let seconds = if clock.len() == 5 { ":00" } else { "" };
    Timestamp::parse_rfc3339(&format!("2026-11-24T{clock}{seconds}Z")).unwrap()
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn run(number: u64) -> RunId {
    RunId::drawn(SessionId::from_random(1), number)
}

/// A job's record, due and started at `due`, that ended 7 s later.
fn record(job: u64, due: Timestamp, status: Status) -> RunRecord {
    let range = DueRange { count: 1, first: due, last: due };
    let skipped = RunRecord::skipped(JobId(job), range, Reason::Overlap, due);
    if status == Status::Skipped {
        return skipped;
    }
    let number = due.as_ms().cast_unsigned();
    RunRecord {
        id: run(number),
        status,
        reason: (status == Status::Lost).then_some(Reason::SessionEnded),
        exit_code: (status == Status::Failed).then_some(3),
        started_at: Some(due),
        finished_at: due + secs(7),
        ..skipped
    }
}

fn invoice(id: u64) -> JobSubject {
    JobSubject {
        id: JobId(id),
        namespace: "billing".into(),
        name: if id == 1 { "invoice".into() } else { format!("invoice-{id}") },
        labels: BTreeMap::from([("team".into(), "data".into())]),
        zone: "UTC".into(),
        executor: "shell".into(),
        ping: None,
        cron: None,
    }
}

fn fact(job: u64, at: Timestamp, what: What) -> Fact {
    Fact { at, subject: Subject::Job(invoice(job)), what }
}

fn of_node(name: &str, at: Timestamp, what: What) -> Fact {
    Fact { at, subject: Subject::Cluster(Part::node(name)), what }
}

fn ended(record: RunRecord) -> Fact {
    let JobId(job) = record.job;
    let what = What::Ended(Ended { has_output: false, retry_at: None, record });
    fact(job, at_end(&what), what)
}

/// The end of a run whose next attempt starts at `retry_at`.
fn tried_again(record: RunRecord, retry_at: Timestamp) -> Fact {
    let JobId(job) = record.job;
    let what = What::Ended(Ended { has_output: false, retry_at: Some(retry_at), record });
    fact(job, at_end(&what), what)
}

fn at_end(what: &What) -> Timestamp {
    match what {
        What::Ended(ended) => ended.record.finished_at,
        _ => Timestamp::EPOCH,
    }
}

/// A route for everything, to one webhook.
fn route(name: &str) -> Route {
    Route {
        name: name.into(),
        when: When::ALL.into(),
        only: Selection::default(),
        after: 1,
        repeat: None,
        to: vec![Target::Webhook { url: "https://example.org/hook".into(), secret: None }],
    }
}

/// A store of incidents and storms that steps.
#[derive(Debug, Default, Clone)]
struct World {
    routes: Vec<Route>,
    incidents: BTreeMap<IncidentKey, Incident>,
    storms: BTreeMap<String, Storm>,
}

impl World {
    fn new(routes: Vec<Route>) -> Self {
        Self { routes, ..Self::default() }
    }

    /// One step, which loads no more than a store would.
    fn write(&mut self, now: Timestamp, facts: &[Fact]) -> WriteSet {
        let mut keys: BTreeSet<IncidentKey> = watch::wanted(&self.routes, facts);
        keys.extend(self.incidents.values().filter(|incident| self.is_due(incident, now)).map(|one| one.key.clone()));
        let some = self.incidents.iter().filter(|(key, _)| keys.contains(*key));
        let incidents: BTreeMap<_, _> = some.map(|(key, incident)| (key.clone(), incident.clone())).collect();
        let writes = watch::step(&self.routes, Loaded { incidents, storms: self.storms.clone() }, facts, now);
        let all = Loaded { incidents: self.incidents.clone(), storms: self.storms.clone() };
        let with_all = watch::step(&self.routes, all, facts, now);
        assert_eq!(
            (&writes.incidents, &writes.notices),
            (&with_all.incidents, &with_all.notices),
            "too few are loaded"
        );
        for (key, incident) in writes.incidents.clone() {
            match incident {
                Some(incident) => drop(self.incidents.insert(key, incident)),
                None => drop(self.incidents.remove(&key)),
            }
        }
        for (route, storm) in writes.storms.clone() {
            match storm {
                Some(storm) => drop(self.storms.insert(route, storm)),
                None => drop(self.storms.remove(&route)),
            }
        }
        writes
    }

    fn step(&mut self, now: Timestamp, facts: &[Fact]) -> Vec<Notice> {
        self.write(now, facts).notices
    }

    /// The kinds and states that a step tells.
    fn told(&mut self, now: Timestamp, facts: &[Fact]) -> Vec<String> {
        self.step(now, facts)
            .iter()
            .map(|notice| format!("{} {}", notice.when.as_str(), notice.state.as_str()))
            .collect()
    }

    fn is_due(&self, incident: &Incident, now: Timestamp) -> bool {
        let route = self.routes.iter().find(|route| route.name == incident.key.route);
        route.and_then(|route| incident.next_look(route)).is_some_and(|look| look <= now)
    }
}

/// A manual run's record.
fn manual(record: RunRecord) -> RunRecord {
    RunRecord { trigger: Trigger::Manual, ..record }
}
