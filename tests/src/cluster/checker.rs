//! What became of every due time, judged by what the jobs wrote themselves and by the records of the API.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::witness::Life;
use crate::accounting::{Account, account};

/// What a cluster did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// What the records say.
    pub account: Account,
    /// Runs that started, by their own word.
    pub started: usize,
    /// Firings that started twice, or a run that two processes had.
    pub duplicates: Vec<String>,
    /// Two runs of one job that lived at the same time.
    pub overlaps: Vec<String>,
    /// What started and has no record of a start, or is recorded as ended well and never started.
    pub contradictions: Vec<String>,
}

impl Verdict {
    /// Whether nothing started twice, nothing overlapped and no due time was missed silently.
    pub fn is_clean(&self) -> bool {
        self.duplicates.is_empty()
            && self.overlaps.is_empty()
            && self.contradictions.is_empty()
            && self.account.duplicates.is_empty()
            && self.account.silent_misses.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let account = &self.account;
        writeln!(f, "due times accounted for: {}; started, by the jobs' own files: {}", account.due, self.started)?;
        writeln!(f, "runs: {:?}; skipped: {:?}", account.runs, account.skipped)?;
        let lag = |share| account.lag_ms(share).unwrap_or(0);
        writeln!(f, "lag p50 {} ms, p90 {} ms, p99 {} ms", lag(0.5), lag(0.9), lag(0.99))?;
        for (what, found) in [
            ("started twice", &self.duplicates),
            ("overlaps", &self.overlaps),
            ("contradictions", &self.contradictions),
            ("recorded twice", &account.duplicates),
            ("silent misses", &account.silent_misses),
        ] {
            writeln!(f, "{what}: {}", found.len())?;
            for one in found.iter().take(5) {
                writeln!(f, "    {one}")?;
            }
        }
        Ok(())
    }
}

/// Judges jobs that come due each `every_ms` and may not overlap: `lives` is what they wrote, `runs` all their records.
pub fn check(lives: &[Life], runs: &[Value], every_ms: i64) -> Verdict {
    let mut verdict = Verdict { account: account(runs, every_ms), started: lives.len(), ..Verdict::default() };
    let of_id: BTreeMap<&str, &Value> = runs.iter().map(|run| (run["id"].as_str().unwrap_or_default(), run)).collect();
    let mut firings: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut by_job: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
    for life in lives {
        if life.starts != 1 {
            verdict.duplicates.push(format!("run {} has {} starts", life.run, life.starts));
        }
        let attempt = of_id.get(life.run.as_str()).and_then(|run| run["attempt"].as_u64()).unwrap_or(1);
        if attempt == 1
            && let Some(other) = firings.insert((&life.job, &life.due_at), &life.run)
        {
            verdict.duplicates.push(format!("{} at {} as {other} and {}", life.job, life.due_at, life.run));
        }
        match of_id.get(life.run.as_str()).map(|run| run["status"].as_str().unwrap_or_default()) {
            None | Some("skipped" | "waiting") => {
                verdict.contradictions.push(format!("{} at {}: {} has no record", life.job, life.due_at, life.run));
            }
            Some("succeeded") if !life.ended => {
                verdict.contradictions.push(format!("{} succeeded and never ended", life.run));
            }
            Some(_) => {}
        }
        by_job.entry(&life.job).or_default().push(life);
    }
    let known: std::collections::BTreeSet<&str> = lives.iter().map(|life| life.run.as_str()).collect();
    for run in runs.iter().filter(|run| run["status"] == "succeeded") {
        let id = run["id"].as_str().unwrap_or_default();
        if !known.contains(id) {
            verdict.contradictions.push(format!("{id} is recorded as succeeded and never started"));
        }
    }
    for (job, mut of_job) in by_job {
        of_job.sort_by_key(|life| life.first_us);
        for pair in of_job.windows(2) {
            if pair[1].first_us < pair[0].last_us {
                verdict.overlaps.push(format!("{job}: {} still lived when {} began", pair[0].run, pair[1].run));
            }
        }
    }
    verdict
}
