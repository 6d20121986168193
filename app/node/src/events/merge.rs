//! The order in which the events of one look are told.
//!
//! Each journal keeps its own order. An entry of the audit log goes among the runs of its job by its time, as far as the entries
//! before it allow.

use std::collections::BTreeMap;

use carillon_domain::time::Timestamp;
use carillon_store::JobKey;
use carillon_store::feed::{Entry, Journal};

use super::event::{Event, end_of};

/// One thing to tell.
#[derive(Debug)]
pub(super) enum Item {
    /// It is in no journal.
    Event(Event),
    /// A row of a journal, with its number.
    Row(Journal, u64, Entry),
}

impl Item {
    /// Which job it is about, and when that happened; `None` for what goes anywhere.
    fn moment(&self) -> Option<(&JobKey, Timestamp)> {
        match self {
            Self::Event(event) => Some((event.about.as_ref()?, event.at?)),
            Self::Row(_, _, Entry::Run(view)) => Some((&view.key, end_of(view)?)),
            Self::Row(_, _, Entry::Audit(line)) => {
                line.generation?;
                Some((line.job.as_ref()?, line.at))
            }
        }
    }
}

/// Tells each change right behind what its job did until then, and no sooner than the changes before it.
pub(super) fn merged(runs: Vec<Item>, changes: Vec<Item>) -> Vec<Item> {
    let mut of_job: BTreeMap<JobKey, Vec<(Timestamp, usize)>> = BTreeMap::new();
    if !changes.is_empty() {
        for (place, item) in runs.iter().enumerate() {
            if let Some((job, at)) = item.moment() {
                of_job.entry(job.clone()).or_default().push((at, place + 1));
            }
        }
    }
    let behind = |change: &Item| {
        let (job, at) = change.moment()?;
        of_job.get(job)?.iter().rev().find(|(done_at, _)| *done_at <= at).map(|(_, place)| *place)
    };
    let places = changes.iter().scan(0, |from, change| {
        *from = behind(change).map_or(*from, |place| place.max(*from));
        Some(*from)
    });
    let places: Vec<usize> = places.collect();
    let mut changes = places.into_iter().zip(changes).peekable();
    let mut merged = Vec::with_capacity(runs.len() + changes.len());
    for (place, item) in runs.into_iter().enumerate() {
        while let Some((_, change)) = changes.next_if(|(before, _)| *before <= place) {
            merged.push(change);
        }
        merged.push(item);
    }
    merged.extend(changes.map(|(_, change)| change));
    merged
}
