//! Where every due time of an `@every` job must be: in exactly one record (S6). Reads only what the API says.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::time::Timestamp;
use serde_json::Value;

/// The totals over the records of a set of jobs.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Account {
    /// Due times accounted for.
    pub due: u64,
    /// Runs by status.
    pub runs: BTreeMap<String, u64>,
    /// Due times skipped, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Due times that started more than once (retries and reruns aside).
    pub duplicates: Vec<String>,
    /// Due times without a record.
    pub silent_misses: Vec<String>,
    /// Lag of each run in milliseconds, ascending.
    pub lags_ms: Vec<i64>,
}

impl Account {
    /// The lag below which `share` of the runs stayed.
    pub fn lag_ms(&self, share: f64) -> Option<i64> {
        let last = self.lags_ms.len().checked_sub(1)?;
        self.lags_ms.get((last as f64 * share).ceil() as usize).copied()
    }
}

/// Accounts for the due times of jobs that come due each `every_ms`; `runs` are all their runs as the API lists them.
pub fn account(runs: &[Value], every_ms: i64) -> Account {
    let mut account = Account::default();
    let mut due_times: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for run in runs {
        let job = run["job"].as_str().expect("a run has a job");
        let status = run["status"].as_str().expect("a run has a status");
        if run["trigger"] == "manual" || run["attempt"].as_u64() > Some(1) {
            continue;
        }
        let ms = |field: &str| run[field].as_str().and_then(Timestamp::parse_rfc3339).map(Timestamp::as_ms);
        let last = ms("due_at").expect("a run has a due time");
        let count = run["count"].as_u64().unwrap_or(1);
        let first = ms("first_due_at").unwrap_or(last);
        assert_eq!(last - first, (count as i64 - 1) * every_ms, "a stretch stands for each due time in it: {run}");
        account.due += count;
        match status {
            "skipped" => {
                let reason = run["reason"].as_str().expect("what was skipped has a reason").to_owned();
                *account.skipped.entry(reason).or_default() += count;
            }
            _ => {
                *account.runs.entry(status.to_owned()).or_default() += 1;
                account.lags_ms.extend(run["lag_ms"].as_i64());
            }
        }
        let of_job = due_times.entry(job).or_default();
        for step in 0..count as i64 {
            if !of_job.insert(first + step * every_ms) {
                account.duplicates.push(format!("{job} at {}", Timestamp::from_ms(first + step * every_ms)));
            }
        }
    }
    for (job, due) in due_times {
        let pairs = due.iter().zip(due.iter().skip(1));
        for (before, after) in pairs.filter(|(before, after)| **after - **before != every_ms) {
            let (before, after) = (Timestamp::from_ms(*before), Timestamp::from_ms(*after));
            account.silent_misses.push(format!("{job} between {before} and {after}"));
        }
    }
    account.lags_ms.sort_unstable();
    account
}
