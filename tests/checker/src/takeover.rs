//! How long it takes until others do what a node had to do that died or froze.

use std::collections::BTreeMap;

use crate::evidence::Evidence;
use crate::fault::{End, Fault};
use crate::plan::{Act, Deed};
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
    /// The same without the time in which the job could not start, whatever the nodes did: no server took writes or a loss was not accepted
    /// ([`Evidence::outages`]), it was not due, or a person had paused it. Ascending.
    pub able_ms: Vec<i64>,
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
    ended.filter_map(|fault| after(evidence, fault, &ran)).collect()
}

/// The fault that ended a node: the last that began before, if it was not over for long.
fn culprit<'a>(evidence: &'a Evidence, end: &End) -> Option<&'a Fault> {
    let strikes = |fault: &&Fault| fault.node.as_deref() == Some(&*end.node) && fault.from_us <= end.at_us;
    let last = evidence.faults.iter().filter(strikes).max_by_key(|fault| fault.from_us);
    last.filter(|fault| end.at_us <= fault.until_us + OF_LATE_US)
}

fn after(evidence: &Evidence, fault: &Fault, ran: &BTreeMap<&str, Vec<(i64, &Record)>>) -> Option<Takeover> {
    let node = fault.node.as_deref()?;
    let (mut waits_ms, mut able_ms) = (Vec::new(), Vec::new());
    for runs in ran.values() {
        let (before, later) = runs.split_at(runs.partition_point(|(at, _)| *at <= fault.from_us));
        let Some((at, had)) = before.last() else { continue };
        let Some(session) = had.session.as_deref().filter(|_| had.node.as_deref() == Some(node)) else { continue };
        if fault.from_us - at > OF_LATE_US {
            continue;
        }
        let other = later.iter().find(|(_, record)| record.session.as_deref().is_some_and(|by| by != session));
        let Some((at, _)) = other.filter(|(at, _)| at - fault.from_us <= UNTIL_US) else { continue };
        waits_ms.push((at - fault.from_us) / 1_000);
        let unable = lasted(&unable(evidence, had, fault.from_us), fault.from_us, *at);
        able_ms.push((at - fault.from_us - unable) / 1_000);
    }
    waits_ms.sort_unstable();
    able_ms.sort_unstable();
    let class = fault.class.clone();
    (!waits_ms.is_empty()).then(|| Takeover { class, node: node.to_owned(), waits_ms, able_ms })
}

/// When a job could not start that had this run before a fault.
fn unable(evidence: &Evidence, had: &Record, from_us: i64) -> Vec<(i64, i64)> {
    let mut all = evidence.outages.clone();
    if let Some(job) = evidence.job(&had.job) {
        let next = job.schedule.due(had.due_us + 1, from_us + UNTIL_US).first().copied();
        all.push((from_us, next.unwrap_or(from_us)));
    }
    let mut acts: Vec<&Act> = evidence.plan.acts.iter().filter(|act| act.job == had.job).collect();
    acts.sort_by_key(|act| act.asked_us);
    let mut paused_us = None;
    for act in acts {
        match act.deed {
            Deed::Pause if act.done() => paused_us = paused_us.or(act.answered_us),
            Deed::Resume => all.extend(paused_us.take().map(|since| (since, act.asked_us))),
            _ => {}
        }
    }
    all
}

/// How much of the time between two moments these cover, which may overlap.
fn lasted(outages: &[(i64, i64)], from_us: i64, until_us: i64) -> i64 {
    let mut outages = outages.to_vec();
    outages.sort_unstable();
    let (mut covered_to, mut lasted) = (from_us, 0);
    for (from, until) in outages {
        let (from, until) = (from.max(covered_to), until.min(until_us));
        lasted += (until - from).max(0);
        covered_to = covered_to.max(until);
    }
    lasted
}

#[cfg(test)]
mod tests {
    use super::lasted;

    #[test]
    fn outages_that_overlap_count_once_and_only_between_the_two_moments() {
        let outages = [(50, 60), (10, 20), (15, 25), (90, 200)];
        assert_eq!(lasted(&outages, 0, 100), 15 + 10 + 10);
        assert_eq!(lasted(&outages, 18, 55), 7 + 5);
        assert_eq!(lasted(&outages, 26, 49), 0);
        assert_eq!(lasted(&[(0, 100)], 10, 20), 10);
        assert_eq!(lasted(&[], 10, 20), 0);
    }
}
