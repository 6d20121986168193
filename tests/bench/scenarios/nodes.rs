//! The cost of several nodes that share a database.

use crate::ceilings::Around;
use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::machine::now_ms;
use crate::records::{Stretch, lateness};

use super::interval::{crowded, measure};

/// One node comes right before and right after the number of nodes that it is compared with, as the machine's speed changes
/// within minutes; the numbers that are only shown come first.
pub fn run(lab: &Lab, found: &mut Found) {
    let counts = lab.size.nodes;
    let compared = counts.iter().copied().filter(|count| *count <= 3).max().unwrap_or(1);
    let shown = counts.iter().copied().filter(|count| *count != 1 && *count != compared);
    let mut points: Vec<(f64, f64)> = shown.map(|count| (count as f64, together(lab, found, count, ""))).collect();

    let before = together(lab, found, 1, "");
    let several = together(lab, found, compared, "");
    let one = Around { before, after: together(lab, found, 1, ", again") };
    let lost = 100.0 - several * 100.0 / one.mean().max(1.0);
    let what = format!("throughput lost going from 1 to {compared} nodes");
    found.row(Row::new(what, lost, "%").at_most(20.0, 10.0).note("1 node: the mean of right before and right after"));

    points.extend([(1.0, one.mean()), (compared as f64, several)]);
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.series("firings a second by nodes", &points);
}

/// Firings a second of so many nodes.
fn together(lab: &Lab, found: &mut Found, count: usize, again: &str) -> f64 {
    let site = crowded(lab, "process", count);
    let from = now_ms() + i64::try_from(lab.size.warm.as_millis()).unwrap_or(0);
    let cost = measure(lab, &site);
    let load = format!("jobs at `@every 1s`, nodes: {count}{again}");
    found.lags(&load, "recorded", &lateness(&site.scratch, Stretch { from, until: now_ms() }).recorded);
    found.cost(&load, &cost);
    found.row(Row::new(format!("firings/s of all, nodes: {count}{again}"), cost.rate(), "firings/s"));
    cost.rate()
}
