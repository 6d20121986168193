//! The same number of firings each second, spread over some moments of the second as those of `@every`, all together as those
//! of a crontab, or each at a moment of its own, as jitter makes it: how late they begin, and how many statements they take.

use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::machine::now_ms;
use crate::records::{Stretch, lateness};
use crate::site::{Setting, Site, Work};

use super::interval::measure;

pub fn run(lab: &Lab, found: &mut Found) {
    for pace in lab.size.paces {
        steady(lab, found, pace, "", |site| site.spread(Work::NoopTime, pace));
    }
    let pace = lab.size.paces[1];
    let due = |site: &Site<'_>| site.create(pace, |n| Work::NoopTime.job(&format!("second-{n}"), "* * * * * *"));
    steady(lab, found, pace, ", all at the full second", due);
    let due = |site: &Site<'_>| {
        site.create(pace, |n| {
            let mut job = Work::NoopTime.job(&format!("jitter-{n}"), "* * * * * *");
            job["jitter"] = "1s".into();
            job
        });
    };
    steady(lab, found, pace, ", each at a moment of its own", due);
}

fn steady(lab: &Lab, found: &mut Found, pace: usize, how: &str, create: impl FnOnce(&Site<'_>)) {
    let setting = Setting { limits: (pace.max(5_000) * 2, pace.max(1_000)), ..Setting::default() };
    let site = Site::new(lab, &setting);
    create(&site);
    let from = now_ms() + i64::try_from(lab.size.warm.as_millis()).unwrap_or(0);
    let cost = measure(lab, &site);
    let late = lateness(&site.scratch, Stretch { from, until: now_ms() });
    let load = format!("{pace} firings/s{how}, noop");
    found.lags(&load, "recorded", &late.recorded);
    found.lags(&load, "at the executor", &late.executor);
    found.cost(&load, &cost);
    let what = format!("statements per 1,000 firings, {pace} a second{how}");
    let row = Row::new(what, cost.statements(), "statements");
    let row = if pace >= 1_000 { row.at_most(60.0, 15.0) } else { row };
    found.row(row.note(format!("{:.0} firings/s came about", cost.rate())));
}
