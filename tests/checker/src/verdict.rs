//! The findings, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use crate::alerts::Counts;
use crate::finding::{Finding, Group};
use crate::lateness::Lateness;
use crate::percentiles::Percentiles;
use crate::takeover::Takeover;

/// The fate of every due time, and everything that should not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Due times that had to be accounted for.
    pub due: u64,
    /// How many of them met which fate: the status of the last attempt, or `skipped: REASON`.
    pub fates: BTreeMap<String, u64>,
    /// Runs that started, by their own word.
    pub starts: usize,
    /// The findings that should not be.
    pub findings: Vec<Finding>,
    /// How the alerts came out.
    pub alerts: Counts,
    /// How late runs started.
    pub lateness: Lateness,
    /// How long others took to do what a dead node had to do.
    pub takeovers: Vec<Takeover>,
    /// Effective faults by class.
    pub faults: BTreeMap<String, u64>,
}

impl Verdict {
    /// Whether nothing was found that should not be.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings count as this.
    pub fn count(&self, group: Group) -> usize {
        self.findings.iter().filter(|finding| finding.kind.group() == group).count()
    }

    /// From each fault to the first start of one of the node's jobs elsewhere, and to the start of the last of them. The last kind leaves out
    /// the time in which a job could not start.
    pub fn takeover_ms(&self) -> [(&'static str, Percentiles); 4] {
        let first = self.takeovers.iter().filter_map(|one| one.waits_ms.first()).copied().collect();
        let last = self.takeovers.iter().filter_map(|one| one.waits_ms.last()).copied().collect();
        let each = self.takeovers.iter().flat_map(|one| &one.waits_ms).copied().collect();
        let able = self.takeovers.iter().flat_map(|one| &one.able_ms).copied().collect();
        [
            ("first job of a node", first),
            ("last job of a node", last),
            ("each job", each),
            ("each job, without the time in which it could not start", able),
        ]
    }

    /// All of it but the single takeovers.
    pub fn to_json(&self) -> Value {
        let groups: BTreeMap<&str, usize> = Group::ALL.iter().map(|group| (group.name(), self.count(*group))).collect();
        let spread = |kinds: &[(&str, &Percentiles)]| -> Value {
            kinds
                .iter()
                .map(|(name, values)| ((*name).to_owned(), values.to_json()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        };
        let takeover = self.takeover_ms();
        json!({
            "clean": self.is_clean(), "due": self.due, "fates": self.fates, "starts": self.starts, "found": groups,
            "findings": self.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "lateness_ms": spread(&self.lateness.kinds()),
            "takeover_ms": spread(&takeover.each_ref().map(|(name, values)| (*name, values))),
            "takeovers": self.takeovers.len(), "faults": self.faults,
            "alerts": {"sent": self.alerts.sent, "repeated": self.alerts.repeated, "on their way": self.alerts.on_their_way},
        })
    }
}

/// So many findings of a group are shown to people.
const SHOWN: usize = 20;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Verdict: {}\n", if self.is_clean() { "clean" } else { "NOT clean" })?;
        writeln!(
            f,
            "{} due times, {} starts by the jobs' own files, {} faults.\n",
            self.due,
            self.starts,
            self.faults.values().sum::<u64>()
        )?;
        let Counts { sent, repeated, on_their_way } = self.alerts;
        writeln!(
            f,
            "{sent} alerts sent, {repeated} calls that repeated one, {on_their_way} on their way at the end.\n"
        )?;
        writeln!(f, "| due times | |\n|---|---|")?;
        for (fate, count) in &self.fates {
            writeln!(f, "| {fate} | {count} |")?;
        }
        writeln!(f, "\n| found | |\n|---|---|")?;
        for group in Group::ALL {
            writeln!(f, "| {} | {} |", group.name(), self.count(group))?;
        }
        for group in Group::ALL {
            for finding in self.findings.iter().filter(|finding| finding.kind.group() == group).take(SHOWN) {
                writeln!(f, "- {finding}")?;
            }
        }
        writeln!(f, "\n| ms | count | p50 | p90 | p99 | p99.9 | max |\n|---|---|---|---|---|---|---|")?;
        let takeover = self.takeover_ms();
        let late = self.lateness.kinds().map(|(name, values)| (format!("late: {name}"), values));
        let taken = takeover.each_ref().map(|(name, values)| (format!("takeover: {name}"), values));
        for (name, values) in late.into_iter().chain(taken) {
            let at = |share| values.at(share).map_or(String::new(), |value| value.to_string());
            let shown = [0.5, 0.9, 0.99, 0.999, 1.0].map(at).join(" | ");
            writeln!(f, "| {name} | {} | {shown} |", values.count())?;
        }
        Ok(())
    }
}
