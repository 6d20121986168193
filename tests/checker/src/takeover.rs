//! How long it takes until others do what a node had to do that died or froze.

use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::fault::{End, Fault};
use crate::record::Record;
use crate::time::SECOND_US;
use crate::witness::Life;

/// The fate of the jobs of one node after one fault. Times are milliseconds from the fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Takeover {
    /// The fault.
    pub class: String,
    /// The node.
    pub node: String,
    /// Until each job that its session had been running started in another session, ascending.
    pub waits_ms: Vec<i64>,
}

/// A job belongs to the session that ran it last, if that was so long ago at the most.
const OF_LATE_US: i64 = 5 * SECOND_US;
/// Later starts have other reasons.
const UNTIL_US: i64 = 120 * SECOND_US;

/// Of each fault that ended a node, in order of the ends.
pub fn takeovers(evidence: &Evidence, life_of: &BTreeMap<&str, &Life>) -> Vec<Takeover> {
    let mut ran: BTreeMap<&str, Vec<(i64, &Record)>> = BTreeMap::new();
    for record in &evidence.records {
        if let Some(life) = life_of.get(&*record.id) {
            ran.entry(&record.job).or_default().push((life.first_us, record));
        }
    }
    for runs in ran.values_mut() {
        runs.sort_by_key(|(at, _)| *at);
    }
    let ended = evidence.ends.iter().filter_map(|end| culprit(evidence, end));
    ended.filter_map(|fault| after(fault, &ran)).collect()
}

/// The fault that ended a node: the last that began before, if it was not over for long.
fn culprit<'a>(evidence: &'a Evidence, end: &End) -> Option<&'a Fault> {
    let counters = |fault: &&Fault| fault.node.as_deref() == Some(&*end.node) && fault.from_us <= end.at_us;
    let last = evidence.faults.iter().filter(counters).max_by_key(|fault| fault.from_us);
    last.filter(|fault| end.at_us <= fault.until_us + OF_LATE_US)
}

fn after(fault: &Fault, ran: &BTreeMap<&str, Vec<(i64, &Record)>>) -> Option<Takeover> {
    let node = fault.node.as_deref()?;
    let mut waits_ms = Vec::new();
    for runs in ran.values() {
        let (before, later) = runs.split_at(runs.partition_point(|(at, _)| *at <= fault.from_us));
        let Some((at, had)) = before.last() else { continue };
        let Some(session) = had.session.as_deref().filter(|_| had.node.as_deref() == Some(node)) else { continue };
        if fault.from_us - at > OF_LATE_US {
            continue;
        }
        let other = later.iter().find(|(_, record)| record.session.as_deref().is_some_and(|by| by != session));
        let wait = other.map(|(at, _)| at - fault.from_us).filter(|wait| *wait <= UNTIL_US);
        waits_ms.extend(wait.map(|wait| wait / 1_000));
    }
    waits_ms.sort_unstable();
    let class = fault.class.clone();
    (!waits_ms.is_empty()).then(|| Takeover { class, node: node.to_owned(), waits_ms })
}
