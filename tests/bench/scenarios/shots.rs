//! Firings through all three transitions, of which no finish could claim another: each job fires once. A firing that is due
//! already when it is claimed may start in the same commit.

use carillon_tests::databases::Brand;

use crate::ceilings::{Around, Sql};
use crate::found::{Found, Row};
use crate::lab::Lab;
use crate::meter::{Cost, Meter};
use crate::records;
use crate::site::{Setting, Site, Work, time_to_create};

pub fn run(lab: &Lab, found: &mut Found) {
    let (must, aim) = bounds(lab.server.brand());
    let mut before = Sql::measure(lab).firings;
    for isolation in ["process", "in_process"] {
        let in_flight = lab.size.in_flight;
        let setting = Setting { isolation, limits: (in_flight, in_flight), ..Setting::default() };
        let (rate, cost) = fire(lab, &setting, Work::Noop, lab.size.noop_shots);
        let after = Sql::measure(lab).firings;
        let what = format!("firings/s through all three transitions, plugin {isolation}");
        found.row(
            Row::new(what, rate, "firings/s")
                .at_least(must, aim)
                .beside("bare client", Around { before, after })
                .share_at_least(40.0, 80.0)
                .note(format!(
                    "{} jobs, max_in_flight = max_executing = {in_flight}; what was due when it was claimed may have \
                     started in that commit",
                    lab.size.noop_shots
                )),
        );
        found.cost(&format!("one-shot jobs, plugin {isolation}"), &cost);
        before = after;
    }
}

/// The rates that are promised on each database.
fn bounds(brand: Brand) -> (f64, f64) {
    match brand {
        Brand::MariaDb => (10_000.0, 25_000.0),
        Brand::MySql => (6_000.0, 15_000.0),
    }
}

/// Lets so many one-shot jobs come due at once. The node may have claimed as many as it can hold before they were due, so those
/// do not count: the rate is that of firings of which every transition fell between the first start and the last end.
pub fn fire(lab: &Lab, setting: &Setting, work: Work, count: usize) -> (f64, Cost) {
    let site = Site::new(lab, setting);
    site.shoot(work, count, time_to_create(count), "shot");
    let meter = Meter::start(lab, &site);
    site.wait_for_finished(count);
    let mut cost = meter.stop(&site);
    let (first, last, succeeded) = records::span(&site.scratch);
    assert_eq!(succeeded, count as u64, "each job has succeeded once");
    cost.seconds = (last - first).max(1) as f64 / 1_000.0;
    let whole = count.saturating_sub(setting.limits.0).max(1);
    (whole as f64 / cost.seconds, cost)
}
