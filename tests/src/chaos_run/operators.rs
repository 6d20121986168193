//! People who pause, resume, change, trigger, cancel and delete jobs while all goes wrong, and note what they were answered.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use carillon_checker::plan::{Act, Deed};
use serde_json::{Value, json};

use super::caller::{Caller, now};
use crate::chaos::Dice;

/// How long people wait between two acts, in milliseconds.
const PAUSE_MS: (u64, u64) = (100, 900);
/// One job of so many is theirs; of the others nobody changes anything.
const SHARE: usize = 8;

/// One act of so many deletes a job, for good, until half of theirs are left.
const DELETES: u64 = 25;

/// Acts until it is over; all that was done, in order.
pub fn act(caller: &Caller, definitions: &[Value], mut dice: Dice, over: &AtomicBool) -> Vec<Act> {
    let mut theirs: Vec<&Value> = definitions.iter().step_by(SHARE).collect();
    let least = theirs.len().div_ceil(2);
    let (mut acts, mut paused) = (Vec::new(), BTreeSet::new());
    while !over.load(Ordering::Relaxed) {
        let definition = *dice.pick(&theirs);
        let name = definition["name"].as_str().unwrap_or_default();
        let deletes = dice.between(1, DELETES) == DELETES && theirs.len() > least;
        let deed = match (dice.between(0, 9), paused.contains(name)) {
            _ if deletes => Deed::Delete,
            (0..=3, true) => Deed::Resume,
            (0..=1, false) => Deed::Pause,
            (2..=3, false) | (4, _) => Deed::Update,
            (5..=7, _) => Deed::Trigger,
            _ => Deed::Cancel,
        };
        if let Some(act) = once(caller, deed, name, definition, &mut dice) {
            match deed {
                Deed::Pause => paused.insert(name.to_owned()),
                Deed::Resume if act.done() => paused.remove(name),
                _ => false,
            };
            if deed == Deed::Delete {
                theirs.retain(|other| other["name"] != name);
            }
            acts.push(act);
        }
        std::thread::park_timeout(dice.ms(PAUSE_MS.0, PAUSE_MS.1));
    }
    acts
}

fn once(caller: &Caller, deed: Deed, name: &str, definition: &Value, dice: &mut Dice) -> Option<Act> {
    let act = Act { job: name.to_owned(), deed, run: None, asked_us: 0, answered_us: None, status: 0 };
    let (n, path) = (usize::try_from(dice.between(0, 99)).unwrap_or(0), format!("/v1/jobs/{name}"));
    let post = |what: &str, act: Act| caller.act(n, "POST", &format!("{path}/{what}"), &json!({}), act);
    Some(match deed {
        Deed::Pause => post("pause", act).0,
        Deed::Resume => post("resume", act).0,
        Deed::Update => {
            let mut changed = definition.clone();
            // Params of plugins are their own business.
            let (place, name) = if changed["executor"].is_null() { ("params", "env") } else { ("labels", "changed") };
            changed[place][name] = match place {
                "params" => json!({"CHANGED_AT": now().to_string()}),
                _ => json!(now().to_string()),
            };
            caller.act(n, "PUT", &path, &changed, act).0
        }
        Deed::Delete => caller.act(n, "DELETE", &path, &json!({}), act).0,
        Deed::Trigger => {
            let (act, said) = post("run", act);
            Act { run: said["id"].as_str().map(str::to_owned), ..act }
        }
        Deed::Cancel => {
            let (_, running) = caller.call(n, "GET", "/v1/runs?status=running&limit=50", None)?;
            let running = running["items"].as_array().filter(|items| !items.is_empty())?;
            let run = dice.pick(running);
            let (id, job) = (run["id"].as_str()?.to_owned(), run["job"].as_str()?.to_owned());
            let path = format!("/v1/runs/{id}/cancel");
            caller.act(n, "POST", &path, &json!({}), Act { job, run: Some(id), ..act }).0
        }
    })
}

/// Resumes every job that may still be paused, asking until it is answered.
pub fn resume_all(caller: &Caller, acts: &mut Vec<Act>, patience: Duration) -> Result<(), String> {
    let those = |deed: Deed, acts: &[Act]| -> BTreeSet<String> {
        acts.iter().filter(|act| act.deed == deed).map(|act| act.job.clone()).collect()
    };
    let (jobs, deleted) = (those(Deed::Pause, acts), those(Deed::Delete, acts));
    let until = now() + i64::try_from(patience.as_micros()).unwrap_or(0);
    for job in jobs {
        let mut n = 0;
        loop {
            let act =
                Act { job: job.clone(), deed: Deed::Resume, run: None, asked_us: 0, answered_us: None, status: 0 };
            let (act, said) = caller.act(n, "POST", &format!("/v1/jobs/{job}/resume"), &json!({}), act);
            let (done, status) = (act.done(), act.status);
            acts.push(act);
            if done || (status == 404 && deleted.contains(&job)) {
                break;
            }
            if now() > until {
                return Err(format!("{job} cannot be resumed: {status} {said}"));
            }
            n += 1;
            std::thread::park_timeout(Duration::from_millis(200));
        }
    }
    Ok(())
}
