//! Claims that may be folded into finishes: the next due time of each job is near when a run of it ends.

use std::time::Instant;

use crate::ceilings::{Around, Sql};
use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::meter::{Cost, Meter};
use crate::site::{Setting, Site, Work, pause_until};

pub fn run(lab: &Lab, found: &mut Found) {
    let mut before = Sql::measure(lab).firings;
    for isolation in ["process", "in_process"] {
        let site = crowded(lab, isolation, 1);
        let cost = measure(lab, &site);
        drop(site);
        let after = Sql::measure(lab).firings;
        let what = format!("firings/s, jobs at short intervals, plugin {isolation}");
        found.row(
            Row::new(what, cost.rate(), "firings/s")
                .at_least(20_000.0, 60_000.0)
                .beside("bare client, nothing folded", Around { before, after })
                .note(format!(
                    "{} jobs at `@every 1s`, {} ms; what has come due before the run ahead of it is recorded starts in that \
                     commit",
                    lab.size.crowd,
                    lab.size.window.as_millis()
                )),
        );
        found.cost(&format!("jobs at `@every 1s`, plugin {isolation}"), &cost);
        before = after;
    }
}

/// So many nodes with more jobs than they can run on time. One that is full claims nothing along with a finish, and where
/// places are short it starts nothing along, so each may hold more firings than there are jobs, and execute all of them.
pub fn crowded<'a>(lab: &'a Lab, isolation: &'static str, nodes: usize) -> Site<'a> {
    let setting = Setting { isolation, limits: (2 * lab.size.crowd, lab.size.crowd), ..Setting::default() };
    let site = Site::with_nodes(lab, &setting, nodes);
    site.create(lab.size.crowd, |n| Work::Noop.job(&format!("job-{n}"), "@every 1s"));
    site
}

/// The cost of a site in the window, once it is warm.
pub fn measure(lab: &Lab, site: &Site<'_>) -> Cost {
    pause_until(Instant::now() + lab.size.warm);
    let meter = Meter::start(lab, site);
    pause_until(Instant::now() + lab.size.window);
    meter.stop(site)
}
