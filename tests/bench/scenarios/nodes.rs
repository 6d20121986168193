//! What it costs that several nodes share a database.

use crate::ceilings::Around;
use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::machine::now_ms;
use crate::records::{Stretch, lateness};

use super::interval::{crowded, measure};

pub fn run(lab: &Lab, found: &mut Found) {
    let mut points = Vec::new();
    for count in lab.size.nodes {
        points.push((*count as f64, together(lab, found, *count, "")));
    }
    // Of three nodes, where so many were tried.
    let most = points.iter().rev().find(|(count, _)| *count <= 3.0);
    if let (Some((_, before)), Some((count, most))) = (points.first(), most) {
        // One node before and after the others, as the machine's speed changes meanwhile.
        let after = together(lab, found, lab.size.nodes[0], ", again");
        let one = Around { before: *before, after };
        let lost = 100.0 - most * 100.0 / one.mean().max(1.0);
        let what = format!("throughput lost going from 1 to {count} nodes");
        found
            .row(Row::new(what, lost, "%").at_most(20.0, 10.0).note("1 node: the mean of before and after the others"));
    }
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
