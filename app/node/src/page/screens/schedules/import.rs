//! Storing the jobs of a crontab.

use std::collections::BTreeMap;

use carillon_domain::crontab::{self, Line, LineKind};
use carillon_store::{Change, JobQuery, JobView, PutIf, PutJob};
use serde_json::Value;

use super::crontab::{Fate, Given};
use crate::http::problem::Problem;
use crate::http::routes::alerts::allowed;
use crate::page::visit::{Fault, Visit};
use carillon_json::crontab_jobs::{LABEL, MailRoute, definition_of, merged};
use carillon_json::{Definition, DefinitionContext, definition, job_json, route_json, route_of};

/// How many jobs one transaction stores.
const IN_ONE_TRANSACTION: usize = 1_000;
/// How many stored jobs are read at once.
const READ_AT_ONCE: usize = 1_000;

/// Compares the lines with what is stored. A job of that name that came from elsewhere is not overwritten.
pub(super) async fn planned(visit: &Visit, given: &Given, lines: Vec<Line>) -> Result<Vec<Fate>, Fault> {
    let stem = crontab::stem(&given.file);
    let stored = stored(visit, &given.namespace, &stem).await?;
    let fate = |line: Line| {
        let LineKind::Job(job) = &line.what else {
            return Fate {
                line,
                change: None,
                refused: None,
                mail: None,
                put: None,
                namespace: given.namespace.clone(),
            };
        };
        let before = stored.get(&job.name);
        let was = before.map(|view| definition_of(&job_json(view)));
        let after = merged(was.clone(), job, &given.namespace, &stem);
        let (change, when) = match (before, was) {
            (Some(_), Some(was)) if was == after => ("unchanged", None),
            (Some(view), _) => ("updated", Some(PutIf::Generation(view.state.generation))),
            (None, _) => ("created", Some(PutIf::Absent)),
        };
        let put = when.map(|when| (Value::Object(after), when));
        Fate { line, change: Some(change), refused: None, mail: None, put, namespace: given.namespace.clone() }
    };
    Ok(lines.into_iter().map(fate).map(|fate| checked(visit, fate)).collect())
}

/// Makes the routes that mail what the jobs write, or tells which ones it would make, at their lines.
pub(super) async fn mail(visit: &Visit, namespace: &str, fates: &mut [Fate], imports: bool) -> Result<(), Fault> {
    let wanted = MailRoute::wanted(fates.iter().map(|fate| &fate.line), namespace);
    if wanted.is_empty() {
        return Ok(());
    }
    let stored = visit.api.store.routes().await?;
    for (place, route) in wanted {
        let fate = &mut fates[place];
        let does = match stored.iter().find(|stored| stored.route.name == route.name) {
            Some(stored) if route.is_done_by(&route_json(&stored.route)) => "mails already",
            Some(_) => MailRoute::CHANGED,
            None if !imports => "would mail",
            None => match make(visit, &route).await {
                Ok(()) => "mails",
                Err(problem) => {
                    fate.refused = Some(format!("no route mails what the jobs below write: {}", told(problem)));
                    continue;
                }
            },
        };
        fate.mail = Some(route.told(does));
    }
    if imports {
        visit.api.alerts.wake();
    }
    Ok(())
}

async fn make(visit: &Visit, wanted: &MailRoute) -> Result<(), Problem> {
    let route = route_of(wanted.body(), &wanted.name, None).map_err(Problem::fields)?;
    allowed(&visit.caller, &route)?;
    visit.api.store.put_route(&route, Some(0), &visit.author).await?;
    Ok(())
}

/// The jobs that came from a file of this name, by name.
async fn stored(visit: &Visit, namespace: &str, stem: &str) -> Result<BTreeMap<String, JobView>, Fault> {
    let label = Some((LABEL.to_owned(), Some(stem.to_owned())));
    let namespace = Some(namespace.to_owned());
    let mut query = JobQuery { namespace, label, limit: READ_AT_ONCE, ..JobQuery::default() };
    let mut found = BTreeMap::new();
    loop {
        let page = visit.api.store.jobs(&query).await?;
        found.extend(page.items.into_iter().map(|view| (view.job.name.clone(), view)));
        query.after = page.next;
        if query.after.is_none() {
            return Ok(found);
        }
    }
}

/// A line whose job this server would refuse says so before it is stored.
fn checked(visit: &Visit, mut fate: Fate) -> Fate {
    if let Some((body, _)) = &fate.put
        && let Err(problem) = read(visit, body.clone())
    {
        fate = Fate { change: None, refused: Some(told(problem)), put: None, ..fate };
    }
    fate
}

fn read(visit: &Visit, body: Value) -> Result<Definition, Problem> {
    let executors = visit.api.engine.executors();
    let place = DefinitionContext { namespace: None, name: None, executors: Some(&executors), stored: None };
    definition(body, &place).map_err(Problem::fields)
}

fn told(problem: Problem) -> String {
    let faults = problem.into_errors().into_iter();
    let sentences =
        faults.map(
            |fault| if fault.field.is_empty() { fault.message } else { format!("{}: {}", fault.field, fault.message) },
        );
    sentences.collect::<Vec<_>>().join("; ")
}

/// Stores what is new or differs, with the author, and notes each answer in its line.
pub(super) async fn store(visit: &Visit, fates: &mut [Fate]) -> Result<(), Fault> {
    let (mut places, mut puts) = (Vec::new(), Vec::new());
    for (place, fate) in fates.iter_mut().enumerate() {
        let Some((body, when)) = fate.put.take() else { continue };
        match read(visit, body) {
            Ok(Definition { job, paused }) => {
                places.push(place);
                puts.push(PutJob { job, paused, when, author: visit.author.clone() });
            }
            Err(problem) => (fate.change, fate.refused) = (None, Some(told(problem))),
        }
    }
    for (places, puts) in places.chunks(IN_ONE_TRANSACTION).zip(puts.chunks(IN_ONE_TRANSACTION)) {
        for (place, answer) in places.iter().zip(visit.api.store.put_jobs(puts).await?) {
            let fate = &mut fates[*place];
            match answer {
                Ok(saved) => fate.change = Some(word(saved.change)),
                Err(error) => (fate.change, fate.refused) = (None, Some(told(Problem::from(error)))),
            }
        }
    }
    visit.api.engine.look();
    Ok(())
}

fn word(change: Change) -> &'static str {
    change.as_str()
}
