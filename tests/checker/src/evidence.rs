//! All that is judged by: the files that a run of the chaos left.
//!
//! `jobs.json` (the plan), `witness` (what the jobs wrote), `runs.json` (the records that the API told, a list),
//! `faults.json` (`{"faults": [...], "ends": [...]}`). `alerts.json` is there where alerts had receivers, `outages.json` where
//! somebody watched when jobs could start.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::alerts::Alerts;
use crate::fault::{End, Fault};
use crate::plan::{Job, Plan};
use crate::record::Record;
use crate::time::SECOND_US;
use crate::witness::{self, Life};

/// All that is judged by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The requests.
    pub plan: Plan,
    /// The runs, as they told of themselves.
    pub lives: Vec<Life>,
    /// Lines that could not be read.
    pub torn: Vec<String>,
    /// The runs, as the API told of them.
    pub records: Vec<Record>,
    /// The faults of the cluster.
    pub faults: Vec<Fault>,
    /// The processes of nodes that ended.
    pub ends: Vec<End>,
    /// The alerts, where there were receivers.
    pub alerts: Alerts,
    /// From when until when no job could start: no server took writes, or a loss of commits was not accepted. In microseconds since 1970.
    pub outages: Vec<(i64, i64)>,
}

/// How long after a fault its effects may come: a frozen node learns that it was given up, a clock is believed again.
const AFTERMATH_US: i64 = 60 * SECOND_US;
/// How far the moment of a fault is known.
const BLUR_US: i64 = 5 * SECOND_US;

impl Evidence {
    /// From the files in a directory.
    ///
    /// # Errors
    /// Says which file cannot be read, or what in it.
    pub fn read(dir: &Path) -> Result<Self, String> {
        let text = |name: &str| fs::read_to_string(dir.join(name)).map_err(|error| format!("{name}: {error}"));
        let json = |name: &str| -> Result<Value, String> {
            serde_json::from_str(&text(name)?).map_err(|error| format!("{name}: {error}"))
        };
        let (runs, faults) = (json("runs.json")?, json("faults.json")?);
        let (lives, torn) = witness::lives(&text("witness")?);
        Ok(Self {
            plan: Plan::from_json(&json("jobs.json")?).map_err(|error| format!("jobs.json: {error}"))?,
            lives,
            torn,
            records: all(&runs, "runs.json", Record::from_json)?,
            faults: all(&faults["faults"], "faults.json: faults", Fault::from_json)?,
            ends: all(&faults["ends"], "faults.json: ends", End::from_json)?,
            alerts: match dir.join("alerts.json").exists() {
                true => Alerts::from_json(&json("alerts.json")?).map_err(|error| format!("alerts.json: {error}"))?,
                false => Alerts::default(),
            },
            outages: match dir.join("outages.json").exists() {
                true => {
                    serde_json::from_value(json("outages.json")?).map_err(|error| format!("outages.json: {error}"))?
                }
                false => Vec::new(),
            },
        })
    }

    /// The text of `faults.json`.
    pub fn faults_json(faults: &[Value], ends: &[End]) -> Value {
        json!({"faults": faults, "ends": ends.iter().map(End::to_json).collect::<Vec<_>>()})
    }

    /// The job of a name.
    pub fn job(&self, name: &str) -> Option<&Job> {
        self.plan.jobs.iter().find(|job| job.name == name)
    }

    /// Whether the process of a node ended while something went on there, or soon after it was given up by the others: a node
    /// that they take for dead ends itself when it notices.
    pub(crate) fn node_ended(&self, node: Option<&str>, from_us: i64, until_us: i64) -> bool {
        let window = from_us - BLUR_US..=until_us + AFTERMATH_US;
        self.ends.iter().any(|end| node == Some(&*end.node) && window.contains(&end.at_us))
    }

    /// Whether a process of a run of that node was killed between two times.
    pub(crate) fn run_killed(&self, node: Option<&str>, from_us: i64, until_us: i64) -> bool {
        let strikes = |fault: &&Fault| fault.kills_runs && fault.node.as_deref() == node;
        self.faults.iter().filter(strikes).any(|fault| fault.touches(from_us, until_us, BLUR_US))
    }

    /// Whether the clock of the database was being moved then.
    pub(crate) fn clock_moved(&self, at_us: i64) -> bool {
        self.faults.iter().any(|fault| fault.moves_clock && fault.touches(at_us, at_us, AFTERMATH_US))
    }

    /// Whether the ends of attempts before this one may have gone with lost commits.
    pub(crate) fn forgot_attempts_before(&self, record: &Record) -> bool {
        record.attempt > 1 && self.commits_lost_between(record.due_us, record.started_us.unwrap_or(record.due_us))
    }

    /// Whether what was acknowledged then was lost later.
    pub(crate) fn commits_lost(&self, at_us: i64) -> bool {
        self.commits_lost_between(at_us, at_us)
    }

    /// Whether anything that was acknowledged between two times was lost later.
    pub(crate) fn commits_lost_between(&self, from_us: i64, until_us: i64) -> bool {
        self.faults.iter().any(|fault| fault.loses_commits && fault.touches(from_us, until_us, BLUR_US))
    }
}

fn all<T>(list: &Value, name: &str, read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    let items = list.as_array().ok_or(format!("{name} is no list"))?;
    items.iter().map(|item| read(item).map_err(|error| format!("{name}: {error}"))).collect()
}
