//! A due time may only be skipped for a reason that existed.

use std::collections::BTreeMap;

use super::{BLUR_US, Case};
use crate::finding::{Finding, Kind};
use crate::plan::Deed;
use crate::record::Record;
use crate::time::show;

/// Skipped due times without a reason.
pub fn check(case: &Case) -> Vec<Finding> {
    let lived = lived(case);
    let skipped = case.evidence.records.iter().filter(|record| record.is_skipped() && !record.is_manual());
    let unexplained = skipped.filter(|record| !is_explained(case, record, &lived));
    unexplained
        .map(|record| {
            let (first, last) = (show(record.first_due_us), show(record.due_us));
            let what = format!("{}: {first} to {last} skipped as {:?}", record.id, record.reason);
            Finding::new(Kind::UnexplainedSkip, &record.job, what)
        })
        .collect()
}

/// For each job, from when to when each of its firings was on its way or ran, further attempts included.
fn lived<'a>(case: &Case<'a>) -> BTreeMap<&'a str, Vec<(i64, i64)>> {
    let mut lived: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for ((job, due_us, _), records) in &case.attempts {
        let ran = records.iter().filter(|record| record.started_us.is_some());
        if let Some(until) = ran.filter_map(|record| record.finished_us).max() {
            lived.entry(job).or_default().push((*due_us, until));
        }
    }
    lived
}

fn is_explained(case: &Case, record: &Record, lived: &BTreeMap<&str, Vec<(i64, i64)>>) -> bool {
    let (first, last) = (record.first_due_us, record.due_us);
    if case.evidence.clock_moved(last) || case.evidence.commits_lost(last) {
        return true;
    }
    let recorded = record.finished_us.unwrap_or(last);
    let acts = || case.evidence.plan.acts.iter().filter(|act| act.job == record.job && act.may_be_done());
    match &*record.reason {
        "overlap" => {
            let spans = lived.get(&*record.job).map_or(&[][..], Vec::as_slice);
            spans.iter().any(|(from, until)| *from <= first && last <= *until)
        }
        "paused" => acts().any(|act| act.deed == Deed::Pause && act.asked_us <= recorded + BLUR_US),
        "deleted" => acts().any(|act| act.deed == Deed::Delete && act.asked_us <= recorded + BLUR_US),
        "updated" => acts().any(|act| {
            let until = act.answered_us.filter(|_| act.done()).unwrap_or(i64::MAX - BLUR_US);
            act.deed == Deed::Update && (act.asked_us - BLUR_US..=until + BLUR_US).contains(&recorded)
        }),
        // Nobody could start it in time; the record cannot be older than the due time. A batch of late ones ends with the one that is due in
        // the very millisecond in which they are found.
        "misfire" => recorded >= last,
        _ => false,
    }
}
