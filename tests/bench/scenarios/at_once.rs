//! Many runs that are due in the same second.

use carillon_domain::mechanism::Mechanism;

use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::lags::Lags;
use crate::records::{Lateness, Stretch, lateness};
use crate::site::{Setting, Site, Work, time_to_create};

pub fn run(lab: &Lab, found: &mut Found) {
    let (few, few_times) = lab.size.few_at_once;
    let (many, many_times) = lab.size.many_at_once;
    for (name, work) in [("noop", Work::NoopTime), ("shell", Work::BashTime)] {
        let setting = Setting { limits: (many * 2, many), ..Setting::default() };
        let site = Site::new(lab, &setting);
        let few_late = rounds(&site, work, few, few_times, "few");
        tell(found, name, few, &few_late);
        if name == "noop" {
            let late = [(50.0, 10.0, 5.0), (99.0, 30.0, 12.0), (99.9, 50.0, 20.0)];
            for (percent, must, aim) in late {
                let what = format!("lag p{percent}, {few} due at the same second");
                found.row(judged(what, &few_late, percent, must, aim));
            }
        }
        // A shell takes so long that once is enough.
        let times = if name == "noop" { many_times } else { 1 };
        let many_late = rounds(&site, work, many, times, "many");
        tell(found, name, many, &many_late);
        if name == "noop" {
            found.row(judged(format!("lag p99, {many} due at once"), &many_late, 99.0, 200.0, 50.0));
        }
    }
}

/// The lags of many firings due at once, of a plugin that does nothing.
pub fn many_at_once(lab: &Lab, without: Option<Mechanism>) -> (usize, Lateness) {
    let (many, times) = lab.size.many_at_once;
    let setting = Setting { limits: (many * 2, many), without, ..Setting::default() };
    (many, rounds(&Site::new(lab, &setting), Work::NoopTime, many, times, "many"))
}

fn judged(what: String, late: &Lateness, percent: f64, must: f64, aim: f64) -> Row {
    let note = format!("at the executor {:.1} ms", late.executor.ms(percent));
    Row::new(what, late.recorded.ms(percent), "ms").at_most(must, aim).note(note)
}

fn tell(found: &mut Found, name: &str, count: usize, late: &Lateness) {
    let load = format!("{count} at once, {name}");
    found.lags(&load, "recorded", &late.recorded);
    found.lags(&load, "at the executor", &late.executor);
}

/// Several times so many at once, after a smaller time that warms everything up and does not count.
fn rounds(site: &Site<'_>, work: Work, count: usize, times: usize, name: &str) -> Lateness {
    let mut all = Lateness { recorded: Lags::new(), executor: Lags::new() };
    for round in 0..=times {
        let count = if round == 0 { count.div_ceil(10) } else { count };
        let before = site.finished() as usize;
        let due = site.shoot(work, count, time_to_create(count), &format!("{name}-{round}"));
        site.wait_for_finished(before + count);
        let late = lateness(&site.scratch, Stretch { from: due, until: i64::MAX });
        assert_eq!((late.recorded.count(), late.executor.count()), (count as u64, count as u64), "runs that tell");
        if round > 0 {
            all.recorded.add_all(&late.recorded);
            all.executor.add_all(&late.executor);
        }
    }
    all
}
