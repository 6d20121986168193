//! Where every due time must be at the end: in exactly one record (S6).
//!
//! The due times come from each definition's timeline, between the moment from which it was in force and its end. They never come from
//! a row's cursor.

use std::collections::{BTreeMap, BTreeSet};

use carillon_domain::id::JobId;
use carillon_domain::invariants::{Invariant, Violation};
use carillon_domain::run::{RunRecord, Trigger};
use carillon_domain::schedule::Timeline;
use carillon_domain::time::Timestamp;

/// A definition's due times while it was in force.
struct Era {
    timeline: Timeline,
    /// Due times up to here are of no concern.
    after: Timestamp,
    /// Due times up to here must be accounted for.
    until: Timestamp,
}

/// A record of due times, or of an attempt at one.
struct Entry {
    first: Timestamp,
    last: Timestamp,
    count: u64,
    attempt: u32,
}

#[derive(Default)]
struct Account {
    eras: Vec<Era>,
    entries: Vec<Entry>,
    /// The latest due time that was recorded, and the latest time at which its row was written.
    dealt_with: Timestamp,
}

/// The accounts of all jobs.
#[derive(Default)]
pub struct Accounts(BTreeMap<JobId, Account>);

impl Accounts {
    /// A new definition, in force from `now` on if it changes the due times.
    pub fn define(&mut self, job: JobId, timeline: &Timeline, now: Timestamp) {
        let account = self.0.entry(job).or_default();
        if account.eras.last().is_some_and(|era| era.timeline == *timeline) {
            return;
        }
        if let Some(before) = account.eras.last_mut() {
            before.until = before.until.min(now);
        }
        let after = if account.eras.is_empty() { timeline.anchor } else { now.max(account.dealt_with) };
        account.eras.push(Era { timeline: timeline.clone(), after, until: Timestamp::MAX });
    }

    /// Nothing of it is due any more.
    pub fn end(&mut self, job: JobId, now: Timestamp) {
        if let Some(era) = self.0.get_mut(&job).and_then(|account| account.eras.last_mut()) {
            era.until = era.until.min(now);
        }
    }

    /// Somebody wrote to the row at that time of the database.
    pub fn written(&mut self, job: JobId, now: Timestamp) {
        let account = self.0.entry(job).or_default();
        account.dealt_with = account.dealt_with.max(now);
    }

    /// A record was written.
    pub fn record(&mut self, record: &RunRecord) {
        if record.trigger == Trigger::Manual {
            return;
        }
        let account = self.0.entry(record.job).or_default();
        let (first, last, count, attempt) = (record.first_due_at, record.due_at, record.count, record.attempt);
        account.dealt_with = account.dealt_with.max(last);
        account.entries.push(Entry { first, last, count, attempt });
    }

    /// S6: answers how many due times there were.
    pub fn check(&self) -> Result<u64, Violation> {
        self.0.iter().map(|(job, account)| account.check(*job)).sum()
    }
}

impl Account {
    fn check(&self, job: JobId) -> Result<u64, Violation> {
        let violated = |sentence: String| Err(Violation { invariant: Invariant::S6, sentence });
        let mut covered: BTreeSet<Timestamp> = BTreeSet::new();
        let mut attempted: BTreeSet<Timestamp> = BTreeSet::new();
        for entry in &self.entries {
            let Some(dues) = self.dues_of(entry) else {
                let Entry { first, last, count, .. } = entry;
                return violated(format!(
                    "a record of job {job} stands for {count} due times from {first} to {last}, which are not"
                ));
            };
            for due in dues {
                attempted.insert(due);
                if entry.attempt == 1 && !covered.insert(due) {
                    return violated(format!("the due time {due} of job {job} is in two records"));
                }
            }
        }
        let mut due_times = 0;
        for era in &self.eras {
            for due in era.timeline.after(era.after).take_while(|due| *due <= era.until) {
                due_times += 1;
                if !attempted.contains(&due) {
                    return violated(format!("the due time {due} of job {job} is in no record"));
                }
            }
        }
        Ok(due_times)
    }

    /// The due times that a record stands for; `None` where no definition of the job has them.
    fn dues_of(&self, entry: &Entry) -> Option<Vec<Timestamp>> {
        self.eras.iter().find_map(|era| {
            let before = Timestamp::from_ms(entry.first.as_ms() - 1);
            let dues: Vec<Timestamp> = era.timeline.after(before).take_while(|due| *due <= entry.last).collect();
            let whole = dues.first() == Some(&entry.first) && dues.last() == Some(&entry.last);
            (whole && dues.len() as u64 == entry.count).then_some(dues)
        })
    }
}
